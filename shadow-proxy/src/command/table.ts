/**
 * The commands of the two servers: the entries of `COMMAND` (table.generated.ts), what the proxy does with each
 * (policy.ts), and what is known by hand (rows/).
 *
 * Room: command: what is known about each Redis command: keys, handling, effect on the mirror.
 * Called by: every room after it.
 * Calls: resp, route, plan.
 */
import { text, type Reply } from '../resp/decode.js';
import { watchedAs } from './counting.js';
import { formsOf, newerForm, type Form } from './forms.js';
import { lower, READS, WRITES, type KeyReader, type KeySpec } from './keys.js';
import { handlingOf, mayRefuse, namesInRules, type Blocking, type Handling } from './policy.js';
import { copied, effect as effectOf, type CommandEffect } from './effect.js';
import { rightsCheckOf, type RightsCheck } from './rights.js';
import { newerCommands, widestArity } from './releases.js';
import { namesInRows, rowOf } from './rows.js';
import type { TtlReader } from './ttl-argument.js';
import { COMMANDS, type GeneratedCommand } from './table.generated.js';

export interface CommandSpec {
  /** The name in lower case: `get`, `xgroup|create`. */
  readonly name: string;
  /** The index in `CommandTable.all`. */
  readonly id: number;
  /** Number of arguments, including the name and the subcommand; negative: minimum number. */
  readonly arity: number;
  /** The arity at the target; 0 if it lacks the command. For a subcommand it is unknown, so the source's is used. */
  readonly targetArity: number;
  readonly flags: readonly string[];
  /** Whether the server lists the flag `write`. Scripts do not have it, whatever they do. */
  readonly write: boolean;
  /** Whether Redis 7.0.15 knows it; `supportedCommands` asks an actual server. */
  readonly inSource: boolean;
  /** Whether KeyDB 6.3.4 knows it. */
  readonly inTarget: boolean;
  /** Empty if only `readKeys` finds the keys. */
  readonly keySpecs: readonly KeySpec[];
  readonly readKeys: KeyReader | null;
  /**
   * The argument index of the key, if the command has exactly one, always at the same place; else 0. Check `argc`
   * before using it.
   */
  readonly singleKey: number;
  readonly handling: Handling;
  /** Whether `refusal` must be asked. */
  readonly refusable: boolean;
  /** The right that KeyDB does not check as Redis 7 does; null if both check the same. */
  readonly rightsCheck: RightsCheck | null;
  // Fields of the command's row (row.ts); null or false if the row lacks them.
  readonly blocking: Blocking | null;
  readonly effect: CommandEffect | null;
  readonly relativeTtl: TtlReader | null;
  readonly absoluteTtl: TtlReader | null;
  readonly keepsTtl: ((args: readonly Buffer[]) => boolean) | null;
  readonly keepsTtlBlindly: ((args: readonly Buffer[]) => boolean) | null;
  readonly replaces: boolean;
  readonly movesTtl: boolean;
  readonly takesOnly: boolean;
  readonly splittable: boolean;
  readonly asksForAllKeys: boolean;
  /** Whether it is a write that may take its value from another key or database. */
  readonly derives: boolean;
  /** Whether it changes the scripts or functions of a server, and no key. */
  readonly aboutCode: boolean;
  /** Whether it is EVAL_RO or EVALSHA_RO. */
  readonly readOnlyScript: boolean;
  /** The index of its kind in `KINDS`; one after the last for GET; -1 if it shows nothing about counters. */
  readonly watched: number;
  /** Forms of the command that only one of the two servers supports; null if it has none. */
  readonly forms: readonly Form[] | null;
  /** The subcommands of a container such as XGROUP. */
  readonly subcommands: WordIndex | null;
}

/** Finds commands by their first one or two words in a frame, in any case, without creating a string. */
export class CommandTable {
  /** All commands, containers and subcommands; `all[spec.id]` is `spec`. */
  readonly all: readonly CommandSpec[];
  readonly #byName = new Map<string, CommandSpec>();
  readonly #words: WordIndex;

  /** @throws {Error} if a rule or a row names a command that is not in the table */
  constructor() {
    const later = newerCommands();
    const newer = new Set(later.map(([name]) => name));
    const rows = [...COMMANDS.filter(([name]) => !newer.has(name)), ...later].sort((a, b) => (a[0] < b[0] ? -1 : 1));
    const containers = new Set(rows.flatMap(([name]) => (name.includes('|') ? [name.split('|')[0]] : [])));
    this.all = rows.map((row, id) =>
      specOf(row, id, newer.has(row[0]), containers.has(row[0]) ? new WordIndex() : null),
    );
    this.#words = new WordIndex();
    for (const spec of this.all) {
      this.#byName.set(spec.name, spec);
      const [word, subcommand] = spec.name.split('|');
      if (subcommand === undefined) this.#words.add(word, spec);
    }
    for (const spec of this.all) {
      const [container, subcommand] = spec.name.split('|');
      if (subcommand !== undefined) this.#byName.get(container)!.subcommands!.add(subcommand, spec);
    }
    const strange = [...namesInRules(), ...namesInRows()].filter((name) => !this.#byName.has(name));
    if (strange.length > 0) throw new Error(`policy.ts or rows/ name unknown commands: ${strange.join(', ')}`);
  }

  /**
   * The command of the frame whose arguments are at `argStart[i]` to `argEnd[i]`. A container without a subcommand is
   * found as itself. Undefined for a command or subcommand that neither server knows.
   */
  find(frame: Buffer, argStart: readonly number[], argEnd: readonly number[], argc: number): CommandSpec | undefined {
    const spec = this.#words.find(frame, argStart[0], argEnd[0]);
    if (spec === undefined || spec.subcommands === null || argc < 2) return spec;
    return spec.subcommands.find(frame, argStart[1], argEnd[1]);
  }

  /** The command with this name in lower case, `container|subcommand`. */
  byName(name: string): CommandSpec | undefined {
    return this.#byName.get(name);
  }
}

/**
 * The lower-case names of a server's commands and subcommands, from its reply to `COMMAND`. Servers before Redis 7
 * (including KeyDB) list no subcommands: those of KeyDB 6.3.4 are assumed.
 */
export function supportedCommands(reply: Reply): Set<string> {
  const names = new Set<string>();
  const unnamed = new Set<string>();
  for (const { items } of reply.items ?? []) {
    const name = text(items![0]).toLowerCase();
    names.add(name);
    if (items!.length < SUBCOMMANDS_AT + 1) unnamed.add(name);
    for (const subcommand of items![SUBCOMMANDS_AT]?.items ?? []) names.add(text(subcommand.items![0]).toLowerCase());
  }
  for (const [name, , targetArity] of COMMANDS)
    if (targetArity !== 0 && unnamed.has(name.split('|')[0])) names.add(name);
  return names;
}

/**
 * The ACL categories (such as `read`) of the commands and subcommands that a server lists in its reply to `COMMAND`.
 */
export function commandCategories(reply: Reply): Map<string, ReadonlySet<string>> {
  const found = new Map<string, ReadonlySet<string>>();
  const add = ({ items }: Reply): void => {
    found.set(
      text(items![0]).toLowerCase(),
      new Set(items![CATEGORIES_AT]?.items?.map((each) => text(each).replace(/^@/, '').toLowerCase())),
    );
    for (const subcommand of items![SUBCOMMANDS_AT]?.items ?? []) add(subcommand);
  };
  for (const each of reply.items ?? []) add(each);
  return found;
}

/** Index of the ACL categories in an entry of `COMMAND`, since Redis 6. */
const CATEGORIES_AT = 6;
/** Index of the subcommands in an entry of `COMMAND`, since Redis 7. */
const SUBCOMMANDS_AT = 9;

/** Finds lower-case words in any case by their bytes: an open-addressed hash table (FNV-1a), at most a quarter full. */
export class WordIndex {
  readonly specs: CommandSpec[] = [];
  #slots: (Slot | undefined)[] = new Array<Slot | undefined>(16).fill(undefined);

  add(word: string, spec: CommandSpec): void {
    this.specs.push(spec);
    if (this.specs.length * 4 > this.#slots.length) {
      const slots = this.#slots.filter((slot) => slot !== undefined);
      this.#slots = new Array<Slot | undefined>(this.#slots.length * 2).fill(undefined);
      for (const slot of slots) this.#place(slot);
    }
    this.#place({ word: Buffer.from(word, 'latin1'), spec });
  }

  #place(slot: Slot): void {
    const mask = this.#slots.length - 1;
    let at = hash(slot.word, 0, slot.word.length) & mask;
    while (this.#slots[at] !== undefined) at = (at + 1) & mask;
    this.#slots[at] = slot;
  }

  find(frame: Buffer, start: number, end: number): CommandSpec | undefined {
    if (end - start > MAX_WORD) return undefined;
    const slots = this.#slots;
    const mask = slots.length - 1;
    for (let at = hash(frame, start, end) & mask; ; at = (at + 1) & mask) {
      const slot = slots[at];
      if (slot === undefined) return undefined;
      if (sameWord(slot.word, frame, start, end)) return slot.spec;
    }
  }
}

interface Slot {
  readonly word: Uint8Array;
  readonly spec: CommandSpec;
}

/** Maximum length of a command's word; a longer argument need not be hashed. */
const MAX_WORD = 32;

function hash(frame: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ lower(frame[i]), 0x01000193);
  return hash ^ (hash >>> 15);
}

function sameWord(word: Uint8Array, frame: Uint8Array, start: number, end: number): boolean {
  if (word.length !== end - start) return false;
  for (let i = 0; i < word.length; i++) if (word[i] !== lower(frame[start + i])) return false;
  return true;
}

/** The effect of a write that KeyDB lacks, if nothing more is known about it. */
const COPIED = effectOf(copied, 'the key is copied');

function specOf(generated: GeneratedCommand, id: number, newer: boolean, subcommands: WordIndex | null): CommandSpec {
  const [name, sourceArity, targetArity, flagText, ...keyTexts] = generated;
  const flags = flagText === '' ? [] : flagText.split(' ');
  const row = rowOf(name) ?? {};
  const readKeys = row.readKeys ?? null;
  const least = flags.includes('no_mandatory_keys') ? 0 : 1;
  const keySpecs = keySpecsOf(name, keyTexts, least, readKeys !== null, row.access);
  const handling = handlingOf(name, keySpecs.length > 0 || readKeys !== null, subcommands !== null);
  const [only] = keySpecs;
  const singleKey = keySpecs.length === 1 && !only.counted && only.last === 0 ? only.begin : 0;
  return {
    name,
    id,
    arity: sourceArity === 0 ? targetArity : widestArity(name, sourceArity),
    targetArity,
    flags,
    write: flags.includes('write'),
    inSource: sourceArity !== 0 && !newer,
    inTarget: targetArity !== 0,
    keySpecs,
    readKeys,
    singleKey,
    handling,
    refusable: mayRefuse(name, handling),
    rightsCheck: rightsCheckOf(name, handling),
    blocking: row.blocking ?? null,
    effect: row.effect ?? (newer && handling === 'keyed' && flags.includes('write') ? COPIED : null),
    relativeTtl: row.relativeTtl ?? null,
    absoluteTtl: row.absoluteTtl ?? null,
    keepsTtl: row.keepsTtl ?? null,
    keepsTtlBlindly: row.keepsTtlBlindly ?? null,
    replaces: row.replaces ?? false,
    movesTtl: row.movesTtl ?? false,
    takesOnly: row.takesOnly ?? false,
    splittable: row.splittable ?? false,
    asksForAllKeys: row.asksForAllKeys ?? false,
    derives: (singleKey === 0 && row.namedByReply !== true) || handling === 'exclusive',
    aboutCode: name.startsWith('script|') || name.startsWith('function|'),
    readOnlyScript: handling === 'script' && name.endsWith('_ro'),
    watched: watchedAs(name),
    forms: newer ? [newerForm(name)] : formsOf(name),
    subcommands,
  };
}

/** The key specifications of a row; empty if the keys need their own reader. */
function keySpecsOf(
  name: string,
  texts: readonly string[],
  least: number,
  hasReader: boolean,
  access: readonly number[] = [],
): readonly KeySpec[] {
  const keys = texts.filter((spec) => !spec.startsWith('not_key'));
  const plain = keys.every((spec) => /^\S+ \d/.test(spec));
  if (!plain && hasReader) return [];
  if (!plain) throw new Error(`the row of ${name} has no readKeys, and its keys depend on its options`);
  return keys.map((spec, i) => keySpecOf(spec, least, access[i] as number | undefined));
}

/** Parses `flags begin [last/step/limit]` or `flags begin #numkeys/first/step`. */
function keySpecOf(spec: string, least: number, access: number | undefined): KeySpec {
  const [flags, begin, find = '0/1/0'] = spec.split(' ');
  const counted = find.startsWith('#');
  const [a, b, c] = find.replace('#', '').split('/').map(Number);
  const range = counted ? { last: a, first: b, step: c } : { last: a, first: 0, step: b };
  return { access: access ?? accessOf(flags.split(',')), begin: Number(begin), counted, least, ...range };
}

/** OW overwrites, RM removes, without reading; an insert depends on whether the key exists. */
function accessOf(flags: readonly string[]): number {
  if (flags[0] === 'RO') return READS;
  return flags[0] === 'RW' || flags.includes('insert') ? READS | WRITES : WRITES;
}
