/**
 * What is known by hand about one Redis command, in addition to `COMMAND` (table.generated.ts) and to the rules of
 * policy.ts. The rows are in rows/, by family; the table joins all of it.
 */
import type { CountingKind } from './counting-kind.js';
import type { CommandEffect } from './effect.js';
import type { KeyReader } from './keys.js';
import type { Blocking } from './policy.js';
import type { TtlReader } from './ttl-argument.js';

/** What Lua makes of a command's reply: `text` is a text or false. */
export type ReplyKind = 'number' | 'text' | 'table';

/** How a replicated script may use a command. */
export interface Repeatable {
  /** The kind of each argument: `k` key, `v` value, `n` number, `x` options; those in brackets may be repeated. */
  readonly arguments: string;
  /** Null if the script may not use the reply, because its form depends on the server. */
  readonly reply: ReplyKind | null;
  /** The options at `x`, with the number of values of each; the values are passed as texts. */
  readonly options: Readonly<Record<string, number>>;
}

/** If a command has no row, or its row lacks a field, the field does not apply to it. */
export interface Row {
  /** Finds the keys if no specifications do. */
  readonly readKeys?: KeyReader;
  /** READS and WRITES for each key specification, if the server's flags are incomplete or too wide. */
  readonly access?: readonly number[];
  /** How the command blocks, if it does or may. */
  readonly blocking?: Blocking;
  /** What the mirror gets instead of the command. */
  readonly effect?: CommandEffect;
  /** Reads a TTL that counts from the time when the command runs. */
  readonly relativeTtl?: TtlReader;
  /** Reads an absolute expiry. */
  readonly absoluteTtl?: TtlReader;
  /** Whether the mirror must keep a key's TTL while its value changes. */
  readonly keepsTtl?: (args: readonly Buffer[]) => boolean;
  /** The same, for commands that do not read the key first: KeyDB may lose what they write (expired.ts). */
  readonly keepsTtlBlindly?: (args: readonly Buffer[]) => boolean;
  /**
   * The key's value afterwards does not depend on whether the key existed. GETSET lacks this field: its reply differs,
   * and no later question shows why.
   */
  readonly replaces?: true;
  /** The TTL moves with the value to another key or database. */
  readonly movesTtl?: true;
  /**
   * The command changes one of its keys (XREADGROUP: each separately), and the reply names it. No value comes from
   * another key.
   */
  readonly namedByReply?: true;
  /** The command writes nothing that a blocked client waits for. */
  readonly takesOnly?: true;
  /** Each key is independent, so the command can be split. MSET is atomic, and lacks this field. */
  readonly splittable?: true;
  /** The reply depends on all keys of a database. */
  readonly asksForAllKeys?: true;
  /** The command changes all keys of a database. */
  readonly changesAllKeys?: true;
  /** The command changes the selected database, or writes to another one. */
  readonly leavesDatabase?: true;
  /** The kind of counting: two nodes that both accept writes would lose changes. */
  readonly counts?: CountingKind;
  /**
   * How a replicated script may use the command. It has the same effect and reply on two servers with the same data,
   * whatever their versions. A script with a command that lacks this field is not replicated.
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
