/**
 * The commands that the two servers know: what `COMMAND` lists of them (table.generated.ts), with what the proxy
 * does with each (policy.ts) and what is known of it by hand (rows/).
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
  /** In lower case: `get`, `xgroup|create`. */
  readonly name: string;
  /** A small integer, dense: the index in `CommandTable.all`. */
  readonly id: number;
  /** Number of arguments, the name and the subcommand among them; negative: at least. */
  readonly arity: number;
  /**
   * The arity at the target, 0 if it has no such command. That of a subcommand is unknown, and taken from the source.
   */
  readonly targetArity: number;
  readonly flags: readonly string[];
  /** Has the `write` flag. Scripts have not, whatever they do. */
  readonly write: boolean;
  /** Known to Redis 7.0.15; `supportedCommands` asks a server at hand. */
  readonly inSource: boolean;
  /** Known to KeyDB 6.3.4. */
  readonly inTarget: boolean;
  /** Empty if only `readKeys` finds the keys. */
  readonly keySpecs: readonly KeySpec[];
  readonly readKeys: KeyReader | null;
  /** The key's argument index, if the command has just one and always there; else 0. Look at `argc` before using it. */
  readonly singleKey: number;
  readonly handling: Handling;
  /** Whether `refusal` must be asked. */
  readonly refusable: boolean;
  /** What KeyDB does not check of it, as Redis 7 does; null if both check the same. */
  readonly rightsCheck: RightsCheck | null;
  // What its row says (row.ts): null or false if that says nothing.
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
  /** A write that may take what it writes from another key, or from another database. */
  readonly derives: boolean;
  /** Changes what scripts or functions a server knows, and no key. */
  readonly aboutCode: boolean;
  /** EVAL_RO and EVALSHA_RO. */
  readonly readOnlyScript: boolean;
  /** The place of its kind in `KINDS`, one behind them for GET; -1 for what says nothing of counters. */
  readonly watched: number;
  /** The command's forms that only one of the two servers supports; null if it has none. */
  readonly forms: readonly Form[] | null;
  /** The subcommands of a container such as XGROUP. */
  readonly subcommands: WordIndex | null;
}

/** Finds commands by their first word or two in a frame, whatever the case, without making a string. */
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
   * The command of the frame whose arguments lie at `argStart[i]` to `argEnd[i]`. A container alone is found as itself;
   * undefined for a command or subcommand that neither server knows.
   */
  find(frame: Buffer, argStart: readonly number[], argEnd: readonly number[], argc: number): CommandSpec | undefined {
    const spec = this.#words.find(frame, argStart[0], argEnd[0]);
    if (spec === undefined || spec.subcommands === null || argc < 2) return spec;
    return spec.subcommands.find(frame, argStart[1], argEnd[1]);
  }

  /** By the name in lower case, `container|subcommand`. */
  byName(name: string): CommandSpec | undefined {
    return this.#byName.get(name);
  }
}

/**
 * The names, in lower case, of the commands and subcommands that a server has, from its reply to `COMMAND`.
 * Servers before Redis 7 (KeyDB among them) list no subcommands: theirs are taken to be those of KeyDB 6.3.4.
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

/** Where an entry of `COMMAND` has its ACL categories, since Redis 6. */
const CATEGORIES_AT = 6;
/** Where an entry of `COMMAND` lists its subcommands, since Redis 7. */
const SUBCOMMANDS_AT = 9;

/**
 * Words in lower case, found in any case by their bytes: an open-addressed hash table (FNV-1a), at most a quarter full.
 */
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

/** No command's word is longer; a longer argument is not worth hashing. */
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

/** A write that KeyDB does not have, and of which nothing more is known. */
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

/** The key specifications of a row; none where the keys need a reader of their own. */
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

/** OW overwrites, RM removes, unread; an insert depends on whether the key is there. */
function accessOf(flags: readonly string[]): number {
  if (flags[0] === 'RO') return READS;
  return flags[0] === 'RW' || flags.includes('insert') ? READS | WRITES : WRITES;
}
