/**
 * What is known by hand about one Redis command, beside what `COMMAND` lists (table.generated.ts) and what the proxy
 * does with it (RULES of policy.ts). The rows are in rows/, by family; the table makes columns of them.
 */
import type { CountingKind } from './counting-kind.js';
import type { CommandEffect } from './effect.js';
import type { KeyReader } from './keys.js';
import type { Blocking } from './policy.js';
import type { TtlReader } from './ttl-argument.js';

/** What Lua makes of a command's reply: `text` is a text or false. */
export type ReplyKind = 'number' | 'text' | 'table';

/** What a repeated script may do with a command. */
export interface Repeatable {
  /** Of each argument: `k` key, `v` value, `n` number; `x` for options; in brackets what may come again. */
  readonly arguments: string;
  /** Null if the reply may not be used: its form depends on the server. */
  readonly reply: ReplyKind | null;
  /** The options at `x` with how many values each has; all of them are written as texts. */
  readonly options: Readonly<Record<string, number>>;
}

/** A command that has no row, or a row without one of these, has nothing of the kind. */
export interface Row {
  /** Finds the keys where specifications do not tell. */
  readonly readKeys?: KeyReader;
  /**
   * READS and WRITES for each key specification, where the server's flags tell of the data but not of what depends on
   * it, or more than is so.
   */
  readonly access?: readonly number[];
  /** How it blocks, if it does or may. */
  readonly blocking?: Blocking;
  /** What the mirror gets instead of the command as it was asked. */
  readonly effect?: CommandEffect;
  /** Reads a time to live that counts from the moment when the command runs. */
  readonly relativeTtl?: TtlReader;
  /** Reads an absolute expiry. */
  readonly absoluteTtl?: TtlReader;
  /** Whether the mirror is to keep a key's time to live while its value changes. */
  readonly keepsTtl?: (args: readonly Buffer[]) => boolean;
  /** The same, for commands that do not read the key first: KeyDB may lose what it writes (expired.ts). */
  readonly keepsTtlBlindly?: (args: readonly Buffer[]) => boolean;
  /**
   * Afterwards it is the same whether or not the key was there. GETSET does not: its reply differs, and no question
   * afterwards shows why.
   */
  readonly replaces?: true;
  /** The time to live goes with the value to another key or database. */
  readonly movesTtl?: true;
  /** Of its keys it changes one (XREADGROUP each by itself), and the reply names it: nothing comes from another. */
  readonly namedByReply?: true;
  /** Writes nothing that a blocked client waits for. */
  readonly takesOnly?: true;
  /** Each key is for itself, so that the command can be split. MSET is atomic, and has it not. */
  readonly splittable?: true;
  /** Is about all keys of a database, and says so by what it answers. */
  readonly asksForAllKeys?: true;
  /** Changes all keys of a database. */
  readonly changesAllKeys?: true;
  /** Leaves the database, or writes to another one. */
  readonly leavesDatabase?: true;
  /** What it counts by, so that two nodes that both accept writes would lose it. */
  readonly counts?: CountingKind;
  /**
   * What a script that is repeated may do with it. It has the same effect, and the same reply, on two servers with the
   * same data, whatever their versions. What has none is not repeated.
   */
  readonly repeatable?: Repeatable;
}

export type Rows = Readonly<Record<string, Row>>;

/** @param args as `Repeatable.arguments` */
export const inScript = (args: string, reply: ReplyKind | null, options: Repeatable['options'] = {}): Repeatable => ({
  arguments: args,
  reply,
  options,
});
