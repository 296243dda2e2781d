/** What reading its text shows about a script or a function. */
import { countingKind } from '../command/counting.js';
import { READS, WRITES, type KeySpec } from '../command/keys.js';
import { isWider, mentionsWider } from '../command/rights.js';
import { rowOf } from '../command/rows.js';
import type { Row } from '../command/row.js';
import type { CommandSpec, CommandTable } from '../command/table.js';
import { MANY, mentionsDatabases, NOT_UNDERSTOOD, readText, tooManyFrom, type Call, type Reading } from './text.js';
import type { KeyName } from './values.js';

/** The access of a call to a key. */
export interface NamedKey {
  readonly access: number;
  readonly name: KeyName;
}

/** The keys that the calls of a text name; null if some are unknown. */
export interface NamedKeys {
  readonly reads: readonly NamedKey[] | null;
  readonly writes: readonly NamedKey[] | null;
}

export const UNKNOWN_NAMES: NamedKeys = { reads: null, writes: null };

const leavesDatabase = (name: string): boolean => rowOf(name)?.leavesDatabase === true;

const KEEPTTL = 'keepttl';

/** A script or a function, and what its text shows. */
export class Routine {
  readonly #reading: Reading;
  readonly #mentionsDatabases: boolean;
  readonly #mentionsSwapping: boolean;
  readonly #mentionsKeepTtl: boolean;
  readonly #mentionsWider: boolean;
  #named: NamedKeys | undefined;
  readonly #tooManyFrom: number;
  /** Whether the script may give a key a TTL. */
  readonly setsTtl: boolean;
  /** Whether the script may set an absolute expiry, which depends on the server's clock. */
  readonly setsMoment: boolean;

  /** @param text its bytes as latin1; null if it is too long to be read */
  constructor(text: string | null, isLibrary: boolean) {
    this.#reading = text === null ? NOT_UNDERSTOOD : readText(text, isLibrary);
    this.#mentionsDatabases = text === null || mentionsDatabases(text);
    this.#mentionsSwapping = text === null || /swapdb/i.test(text);
    this.#mentionsKeepTtl = text === null || /keepttl/i.test(text);
    this.#mentionsWider = text === null || mentionsWider(text);
    this.#tooManyFrom = text === null ? MANY : tooManyFrom(text);
    this.setsMoment = this.#mayCall(
      ({ name, names, open }) =>
        /^p?expireat$/.test(name) ||
        (name === 'set' && (names.length > 2 || open)) ||
        (name === 'getex' && (names.length > 1 || open)),
    );
    this.setsTtl = this.setsMoment || this.#mayCall(({ name }) => /^(p?expire|p?setex)$/.test(name));
  }

  /** Whether one of its calls may be such a call; true if its calls are unknown. */
  #mayCall(isSuch: (call: Call) => boolean): boolean {
    return this.#reading.calls === null || this.#reading.calls.some(isSuch);
  }

  /** Whether KeyDB may crash when it runs the script with this number of arguments, and Redis does not. */
  endsKeydb(given: number): boolean {
    return given >= this.#tooManyFrom;
  }

  /** Whether the script certainly does the same on a server with the same data that supports `commands`. */
  repeatable(commands: ReadonlySet<string>): boolean {
    const { calls, repeatable } = this.#reading;
    return repeatable && (commands.size === 0 || calls!.every(({ name }) => commands.has(name)));
  }

  /** Whether the script passes a computed number to a command: its text depends on the server's version. */
  get writesNumbers(): boolean {
    return this.#reading.writesNumbers;
  }

  /** Whether its text shows a command that affects every key of a database. */
  get flushes(): boolean {
    return this.#callsOne((row) => row.changesAllKeys);
  }

  /** Whether its text shows that it may swap databases. */
  get swapsDatabases(): boolean {
    return this.#reading.calls === null
      ? this.#mentionsSwapping
      : this.#reading.calls.some(({ name }) => name === 'swapdb');
  }

  /** Whether the script may publish. */
  get mayPublish(): boolean {
    return this.#mayCall(({ name }) => name === 'publish' || name === 'spublish');
  }

  /**
   * Whether the script calls commands that KeyDB does not check against a user's key patterns. For a text that cannot
   * be parsed: whether it contains the name of such a command.
   */
  get callsWider(): boolean {
    return this.#reading.calls === null ? this.#mentionsWider : this.#reading.calls.some(({ name }) => isWider(name));
  }

  /** Whether its text shows that it asks which keys exist. */
  get asksForAllKeys(): boolean {
    return this.#callsOne((row) => row.asksForAllKeys);
  }

  #callsOne(isSuch: (row: Row) => true | undefined): boolean {
    return this.#reading.calls?.some(({ name }) => isSuch(rowOf(name) ?? {})) === true;
  }

  /**
   * Whether the script writes to no database but its own. For a text that cannot be parsed: whether neither the text
   * nor the arguments name a command that could.
   */
  staysInDatabase(args: readonly Buffer[]): boolean {
    if (this.#reading.calls !== null) return !this.#reading.calls.some(({ name }) => leavesDatabase(name));
    return (
      !this.#mentionsDatabases &&
      !args.some((arg) => arg.length < 8 && leavesDatabase(arg.toString('latin1').toLowerCase()))
    );
  }

  /** The commands that its text calls. */
  get called(): readonly string[] {
    return [...new Set(this.#reading.calls?.map(({ name }) => name))];
  }

  /** Whether the script may SET … KEEPTTL: its text, or an argument, contains the option. */
  mayKeepTtl(args: readonly Buffer[]): boolean {
    return (
      this.#mentionsKeepTtl ||
      args.some((arg) => arg.length === KEEPTTL.length && arg.toString('latin1').toLowerCase() === KEEPTTL)
    );
  }

  /** Whether the script may call commands. */
  get callsCommands(): boolean {
    return this.#mayCall(() => true);
  }

  /** Whether its text shows that it calls no write. */
  writesNothing(table: CommandTable): boolean {
    return !this.#mayCall((call) => specOf(call, table)?.write !== false);
  }

  /** Whether its text shows that its writes depend on what it reads, or that it counts. */
  readsAndWrites(table: CommandTable): boolean {
    const { calls } = this.#reading;
    if (calls === null) return true;
    const specs = calls.map((call) => specOf(call, table));
    return (
      calls.some(({ name }) => countingKind(name) !== null) ||
      (specs.some((spec) => spec?.write === true) &&
        specs.some((spec) => spec?.write === false && spec.handling === 'keyed'))
    );
  }

  /** The keys that its calls name. */
  named(table: CommandTable): NamedKeys {
    return (this.#named ??= this.#reading.calls === null ? UNKNOWN_NAMES : keysNamed(this.#reading.calls, table));
  }
}

/** The command of a call; undefined if it is unknown. */
function specOf({ name, subcommand }: Call, table: CommandTable): CommandSpec | undefined {
  const spec = table.byName(name);
  if (spec === undefined || spec.subcommands === null) return spec;
  return subcommand === null ? undefined : table.byName(`${name}|${subcommand}`);
}

function keysNamed(calls: readonly Call[], table: CommandTable): NamedKeys {
  const reads: NamedKey[] = [];
  const writes: NamedKey[] = [];
  const unnamed = { reads: false, writes: false };
  for (const call of calls) {
    const spec = specOf(call, table);
    // After a SELECT, a name belongs to another database.
    if (spec === undefined || spec.name === 'select') return UNKNOWN_NAMES;
    for (const each of keysOf(call, spec)) {
      // SORT and GEORADIUS with STORE also read unknown keys.
      if (each === null) unnamed.reads = true;
      if (each === null && spec.write) unnamed.writes = true;
      if (each !== null)
        (spec.write ? writes : reads).push({ access: spec.write ? READS | WRITES : READS, name: each });
    }
  }
  return { reads: unnamed.reads ? null : reads, writes: unnamed.writes ? null : writes };
}

/** The arguments that may be keys; null for each that is unknown. */
function keysOf({ names, open }: Call, spec: CommandSpec): readonly (KeyName | null)[] {
  const { keySpecs, readKeys, singleKey } = spec;
  if (keySpecs.length === 0 && readKeys === null) return spec.write ? [null] : [];
  if (spec.handling === 'exclusive' || (spec.name === 'copy' && names.length > 2)) return [null];
  if (singleKey > 0) return [names[singleKey - 1] ?? null];
  // The options decide which arguments are keys.
  if (keySpecs.length === 0 || keySpecs.some(({ counted }) => counted)) return [null];
  if (open) return names;
  return keySpecs.flatMap((each) => placesOf(each, names.length)).map((at) => names[at] ?? null);
}

/** Positions of the keys among this number of arguments, from 0. */
function placesOf({ begin, last, step }: KeySpec, count: number): number[] {
  const end = last < 0 ? count + last : begin - 1 + last;
  const places: number[] = [];
  for (let at = begin - 1; at <= end; at += step) places.push(at);
  return places;
}
