/** What can be said of a script, or of a function, by reading its text. */
import { countingKind } from '../command/counting.js';
import type { CommandTable } from '../command/table.js';
import { callsOf, keysNamed, optionGiven, tooManyFrom, UNTOLD, withoutComments, type NamedKeys, type Names } from './script-text.js';

/** Commands whose reply or effect is not the same on two servers with the same data, or not in the same order. */
const NOT_REPEATABLE = new Set(
  ('time randomkey srandmember spop hrandfield zrandmember scan sscan hscan zscan info keys dbsize lastsave object memory debug config client ' +
    'smembers sinter sunion sdiff hkeys hvals hgetall dump restore xadd xtrim xclaim xautoclaim xreadgroup xinfo xpending incrbyfloat hincrbyfloat ' +
    'ttl pttl expiretime pexpiretime publish spublish')
    .split(' '),
);

/** A script or a function, as far as its text tells what it does. */
export class Routine {
  readonly #code: string;
  readonly #calls: ReadonlySet<string> | null;
  /** Whether what it does may depend on more than the data and the arguments. */
  readonly #chance: boolean;
  #named: NamedKeys | undefined;
  readonly #tooManyFrom: number;
  /** Whether it may give a key a time to live. */
  readonly setsTtl: boolean;
  /** Whether it may give it as a moment, which is another one by another clock. */
  readonly setsMoment: boolean;

  /** @param names null where it is not known what the text calls its keys */
  constructor(
    text: string,
    private readonly names: Names | null,
  ) {
    this.#code = withoutComments(text);
    this.#calls = callsOf(this.#code);
    this.#chance = /\bx?pcall\b|\bmath\s*\.\s*random|redis\s*\.\s*(setresp|replicate_commands|set_repl)\b/.test(this.#code);
    this.#tooManyFrom = tooManyFrom(this.#code);
    const calls = (...names: string[]): boolean => this.#calls === null || names.some((name) => this.#calls!.has(name));
    this.setsMoment = calls('expireat', 'pexpireat') || optionGiven(text);
    this.setsTtl = calls('expire', 'pexpire', 'setex', 'psetex') || this.setsMoment;
  }

  /** Whether KeyDB may end at it, where Redis goes on, when it is given so many arguments. */
  endsKeydb(given: number): boolean {
    return given >= this.#tooManyFrom;
  }

  /** Whether it does the same on a server with the same data that knows `commands`. */
  repeatable(commands: ReadonlySet<string>): boolean {
    if (this.#calls === null || this.#chance) return false;
    for (const name of this.#calls) {
      if (NOT_REPEATABLE.has(name)) return false;
      if (commands.size > 0 && !commands.has(name)) return false;
    }
    return true;
  }

  /** Whether it calls what touches every key of a database, as far as its text tells. */
  get flushes(): boolean {
    return this.#callsOneOf('flushall', 'flushdb', 'swapdb');
  }

  /** Whether it may swap databases, as far as its text tells. */
  get swapsDatabases(): boolean {
    return /swapdb/i.test(this.#code);
  }

  /** Whether it asks what keys there are, as far as its text tells. */
  get asksForAllKeys(): boolean {
    return this.#callsOneOf('scan', 'keys', 'dbsize', 'randomkey');
  }

  #callsOneOf(...names: readonly string[]): boolean {
    return names.some((name) => this.#calls?.has(name) === true);
  }

  /** Whether its text names no command that writes to another database than its own. */
  get staysInDatabase(): boolean {
    return !/(["'])(select|move|copy|swapdb)\1/i.test(this.#code);
  }

  /** Whether it calls any command at all. */
  get callsCommands(): boolean {
    return this.#calls === null || this.#calls.size > 0;
  }

  /** Whether its text shows that it calls no command that writes. */
  writesNothing(table: CommandTable): boolean {
    return this.#calls !== null && [...this.#calls].every((name) => table.byName(name)?.write === false);
  }

  /** Whether, as far as its text tells, it writes by what it has read, or counts. */
  readsAndWrites(table: CommandTable): boolean {
    const calls = this.#calls;
    if (calls === null) return true;
    const specs = [...calls].map((name) => table.byName(name));
    return [...calls].some((name) => countingKind(name) !== null) || (specs.some((spec) => spec?.write === true) && specs.some((spec) => spec?.write === false && spec.handling === 'keyed'));
  }

  /** The keys that its calls name. */
  named(table: CommandTable): NamedKeys {
    return (this.#named ??= this.#calls === null || this.names === null ? UNTOLD : keysNamed(this.#code, table, this.names));
  }
}
