/** Random commands, by kind. Keys of one kind share a prefix; commands of several kinds meet on some of them. */
import type { Random } from '../world/random.js';
import { partsOf, type KeyName } from '../world/key-name.js';
import { Draw, type Command } from './draw.js';
import { fresh } from './kinds/fresh.js';
import { foreign } from './kinds/foreign.js';
import { HASH, HASH_BY_CHANCE } from './kinds/hashes.js';
import {
  floods,
  forbidden,
  keyspace,
  large,
  lasting,
  longNames,
  mixed,
  ofRedisOnly,
  several,
  unwritten,
} from './kinds/keys.js';
import { blocking, LIST } from './kinds/lists.js';
import { pairs } from './kinds/pairs.js';
import { SET, severalSets } from './kinds/sets.js';
import { swaps } from './kinds/swaps.js';
import { certainWaits, longWait, sleepers, waits } from './kinds/waits.js';
import { hidden, lock, longScript, script } from './kinds/scripts.js';
import { databases, logins, session } from './kinds/sessions.js';
import { severalSortedSets, SORTED_SET } from './kinds/sorted-sets.js';
import { blockingRead, CERTAIN_STREAM, FOLLOWED_STREAM, STREAM } from './kinds/streams.js';
import { secondWriter } from './kinds/second-writer.js';
import { absolute, COUNTER, EXPIRING, FLOAT, STRING } from './kinds/strings.js';
import { certainTransaction, followedTransaction, hoarded, transaction } from './kinds/transactions.js';

type Kinds = Readonly<Record<string, (draw: Draw, unixMs: number) => Command | readonly Command[]>>;

const KINDS = {
  strings: (draw) => draw.form(STRING, draw.key('s')),
  counters: (draw) => draw.form(COUNTER, draw.key('c')),
  floats: (draw) => draw.form(FLOAT, draw.key('f')),
  expiring: (draw, unixMs) => draw.form(draw.random.chance(0.2) ? absolute(unixMs) : EXPIRING, draw.key('e')),
  lists: (draw) => draw.form(LIST, draw.key('l')),
  blocking,
  hashes: (draw) => draw.form(draw.random.chance(0.1) ? HASH_BY_CHANCE : HASH, draw.key('h')),
  sets: (draw) => (draw.random.chance(0.2) ? severalSets(draw) : draw.form(SET, draw.key('t'))),
  sortedSets: (draw) => (draw.random.chance(0.3) ? severalSortedSets(draw) : draw.form(SORTED_SET, draw.key('z'))),
  streams: (draw) => (draw.random.chance(0.2) ? blockingRead(draw) : draw.form(STREAM, draw.key('x'))),
  transactions: (draw) => transaction(draw),
  certainTransactions: certainTransaction,
  certainStreams: (draw) => draw.form(CERTAIN_STREAM, draw.key('x')),
  several,
  mixed,
  keyspace,
  large,
  lasting,
  floods,
  forbidden,
  ofRedisOnly,
  scripts: script,
  locks: lock,
  hidden,
  longScripts: longScript,
  databases,
  logins,
  longNames,
  unwritten,
  pairs,
  secondWriter,
  foreign,
  fresh,
  longWaits: longWait,
  waits,
  certainWaits,
  sleepers,
  swaps,
  publish: (draw) => draw.of(['PUBLISH', `ch${draw.random.below(3)}`, draw.value()]),
} satisfies Kinds;

/** Single commands on keys whose histories are checked, those that wait alone, and every kind above. */
export type Kind = keyof typeof KINDS | 'followed' | 'followedWaits';

/** By kind: how often it is drawn. */
export type Mix = Readonly<Record<Kind, number>>;

/** By the prefix of their group's name: commands on followed keys. All keys of a group have one history. */
const FOLLOWED = {
  ls: (draw) => draw.form(STRING, draw.key('s')),
  lc: (draw) => draw.form(COUNTER, draw.key('c')),
  ll: (draw) => draw.form(LIST, draw.key('l')),
  lb: blocking,
  lw: waits,
  lh: (draw) => draw.form(HASH, draw.key('h')),
  lt: (draw) => (draw.random.chance(0.3) ? severalSets(draw) : draw.form(SET, draw.key('t'))),
  lz: (draw) => (draw.random.chance(0.3) ? severalSortedSets(draw) : draw.form(SORTED_SET, draw.key('z'))),
  lx: (draw) => draw.form(FOLLOWED_STREAM, draw.key('x')),
  le: (draw) => draw.form(EXPIRING, draw.key('e')),
  lq: followedTransaction,
} satisfies Kinds;
const PREFIXES = Object.keys(FOLLOWED) as (keyof typeof FOLLOWED)[];

/** In later databases are commands on all keys at once. */
const FOLLOWED_DATABASES = 2;

export class Commands {
  readonly draw: Draw;
  readonly #kinds: readonly Kind[];
  readonly #until: readonly number[];
  readonly #generations = new Map<string, number>();

  constructor(
    private readonly random: Random,
    mix: Partial<Mix>,
    keys: number,
    private readonly unixMs: () => number,
    tags: readonly string[],
  ) {
    this.draw = new Draw(random, keys, tags);
    this.#kinds = Object.keys(mix) as Kind[];
    let sum = 0;
    this.#until = this.#kinds.map((kind) => (sum += mix[kind]!));
  }

  /** One command, or those of a transaction. */
  next(): readonly Command[] {
    const drawn = this.random.share() * this.#until[this.#until.length - 1];
    const kind = this.#kinds[this.#until.findIndex((until) => drawn < until)];
    const next =
      kind === 'followed' || kind === 'followedWaits' ? this.#followed(kind) : KINDS[kind](this.draw, this.unixMs());
    return 'args' in next ? [next] : next;
  }

  /** A pipeline that does something to the connection, or to another client's. */
  session(): readonly Command[] {
    return session(this.draw, () => this.next());
  }

  /** The next of a transaction that takes more memory than all clients may together. */
  hoard(queued?: readonly (readonly string[])[]): Command {
    return hoarded(this.draw, queued);
  }

  /** Uses another group of keys in the place of this one. */
  retire(name: KeyName): void {
    const [group, generation] = partsOf(name).name.split('.');
    this.#generations.set(group, Math.max(this.#generations.get(group) ?? 0, Number(generation) + 1));
  }

  #followed(kind: 'followed' | 'followedWaits'): Command | readonly Command[] {
    if (this.draw.database >= FOLLOWED_DATABASES) return KINDS.strings(this.draw);
    const prefix = kind === 'followedWaits' ? 'lw' : this.random.pick(PREFIXES);
    const group = this.draw.key(prefix);
    const run: Kinds[string] = FOLLOWED[prefix];
    return this.draw.within(`${group}.${this.#generations.get(group) ?? 0}`, () => run(this.draw, this.unixMs()));
  }
}
