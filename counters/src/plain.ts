/**
 * Counters with the behaviour of Redis's own: a number under a name, which can be increased, deleted, and given an
 * expiry. They are for a program between applications and a server, such as a proxy, which is the only writer of its
 * region.
 */
import type { View } from './members.js';
import type { OwnedKey, Seen, Shape } from './owned-key.js';
import {
  add,
  decodePlain,
  EMPTY_PLAIN,
  encodePlain,
  expireAt,
  keptUntil,
  remove,
  counterState,
  tend,
  wantsTending,
  type PlainPart,
  type PlainParts,
  type Scene,
  type CounterState,
  type Step,
  type Tended,
} from './plain-layout.js';
import type { Time } from './time.js';

/** How long a part is kept after its expiry, in ms, so that other writers notice the expiry. */
export const GRACE_MS = 60_000;
/** Maximum number of names that are tended at once, with one read. */
const TENDED_AT_ONCE = 500;
const LOOKED_AT = 50_000;

export interface PlainOptions {
  /**
   * How long a part is kept after its expiry, in ms: other writers must notice the expiry within that time. Default
   * 60,000.
   */
  readonly graceMs?: number;
  /** How often parts that are not written are tended, in ms; 0: only by `tend`. Default 1000. */
  readonly tendMs?: number;
}

/** What plain counters need from the `Counters` object that made them. */
export interface PlainPlace {
  readonly id: string;
  readonly options: Required<PlainOptions>;
  now(): number;
  readonly time: Time;
  keyOf(name: string, id: string): string;
  /** Null if this process never wrote the name. */
  known(name: string): OwnedKey<PlainPart> | null;
  owned(name: string): OwnedKey<PlainPart>;
  forget(name: string): void;
  view(): Promise<View>;
  /** The other writers' parts of these names, in their order. */
  read(view: View, names: readonly string[]): Promise<Seen[]>;
  /** Removes keys of writers that have ended. */
  discard(keys: readonly string[]): Promise<void>;
  /** See `Members.unseenSince`. */
  unseenSince(): number | null;
}

export const plainShape = (graceMs: number): Shape<PlainPart> => ({
  empty: EMPTY_PLAIN,
  encode: encodePlain,
  expiresAt: (part) => keptUntil(part, graceMs),
  // Only tending shows whether a part is over.
  isOver: () => false,
});

/** All plain counters; made by `Counters.plain`. */
export class PlainCounters {
  readonly #keys = new Map<string, PlainKey>();
  readonly #stopTending: () => void = () => undefined;
  #iterator: Iterator<PlainKey> | null = null;
  #tending = false;

  constructor(private readonly place: PlainPlace) {
    const { tendMs } = place.options;
    // A name that fails here is tended again at the next check.
    if (tendMs > 0) this.#stopTending = place.time.every(tendMs, () => void this.#tendSome().catch(() => undefined));
  }

  /** How many names are held in memory. */
  get size(): number {
    return this.#keys.size;
  }

  /**
   * INCRBY. Two callers of this region never get the same value unless the counter is reset.
   * @returns the value after it, as this region's server knew it
   * @throws {CounterError} OPTION, REFUSED, UNCONFIRMED, FOREIGN_VALUE, CLOSED; if nothing was written, errors of the
   * client library
   */
  async add(name: string, by = 1): Promise<number> {
    return this.run(name, add(by));
  }

  /** DEL. @returns whether there was such a counter. @throws the errors of `add` */
  async delete(name: string): Promise<boolean> {
    return this.run(name, remove);
  }

  /**
   * PEXPIREAT, or with null PERSIST. @param at Unix ms. @returns whether that changed anything. @throws the errors of
   * `add`
   */
  async expireAt(name: string, at: number | null): Promise<boolean> {
    return this.run(name, expireAt(at));
  }

  /** Makes one change. @throws the errors of `add` */
  async run<T>(name: string, step: Step<T>): Promise<T> {
    return (await this.runAll(name, [step]))[0];
  }

  /**
   * Makes several changes, with no other change of this region in between: all are written, or none. @throws the errors
   * of `add`
   */
  runAll<T>(name: string, steps: readonly Step<T>[]): Promise<T[]> {
    let key = this.#keys.get(name);
    if (key === undefined) this.#keys.set(name, (key = new PlainKey(this.place, name)));
    return key.run(steps);
  }

  /** The present state of the counters. @throws {CounterError} FOREIGN_VALUE, CLOSED; errors of the client library */
  async look(names: readonly string[]): Promise<CounterState[]> {
    const seen = await this.place.read(await this.place.view(), names);
    const now = this.place.now();
    return names.map((name, i) => {
      const own = this.place.known(name);
      const others = decode(this.place, name, seen[i]);
      return counterState(own === null ? others : new Map([...others, [this.place.id, own.state]]), now);
    });
  }

  /** Tends every part of this process. This happens automatically, see `tendMs`. */
  async tend(): Promise<void> {
    await this.#tend([...this.#keys.values()]);
  }

  stop(): void {
    this.#stopTending();
  }

  /** Tends a few names at a time, in turn, so that many names cost little. */
  async #tendSome(): Promise<void> {
    if (this.#tending) return;
    this.#tending = true;
    try {
      this.#iterator ??= this.#keys.values();
      const some: PlainKey[] = [];
      for (let i = 0; i < LOOKED_AT; i++) {
        const { done, value } = this.#iterator.next();
        if (done === true) {
          this.#iterator = null;
          break;
        }
        some.push(value);
      }
      await this.#tend(some);
    } finally {
      this.#tending = false;
    }
  }

  async #tend(keys: readonly PlainKey[]): Promise<void> {
    const now = this.place.now();
    for (const key of keys) if (key.letGo(now)) this.#keys.delete(key.name);
    const due = keys.filter((key) => key.isDue(now));
    for (let from = 0; from < due.length; from += TENDED_AT_ONCE) {
      const useless = await Promise.all(due.slice(from, from + TENDED_AT_ONCE).map((key) => key.tend()));
      await this.place.discard(useless.flat());
    }
  }
}

function decode(place: PlainPlace, name: string, { view, values }: Seen): PlainParts {
  const parts = new Map<string, PlainPart>();
  values.forEach((value, i) => {
    if (value !== null)
      parts.set(
        view.ids[i],
        decodePlain(value, () => place.keyOf(name, view.ids[i])),
      );
  });
  return parts;
}

interface Waiting {
  readonly steps: readonly Step<unknown>[];
  readonly resolve: (replies: unknown[]) => void;
  readonly reject: (problem: unknown) => void;
}

/**
 * One name. Changes that come while it is busy share the next read and the next write.
 *
 * It reads first, and writes then. If two regions begin a counter at the same time, one of them cannot have seen the
 * other's part, so one gets 1. (If they wrote first, both might see 2, and neither would set an expiry.)
 */
class PlainKey {
  #waiting: Waiting[] = [];
  #busy = false;
  /** Whether the part is no longer needed. */
  #done = false;
  /** When the name is checked next if nothing else happens, in Unix ms; and the interval after that. */
  #lookAt = 0;
  #lookMs = 0;

  constructor(
    private readonly place: PlainPlace,
    readonly name: string,
  ) {}

  /** Forgets the name if it is no longer needed and the store has removed it. @returns whether it did */
  letGo(now: number): boolean {
    const own = this.place.known(this.name);
    const over =
      own === null ||
      own.untouched ||
      (this.#done && own.idle && keptUntil(own.state, this.place.options.graceMs)! <= now);
    if (this.#busy || !over) return false;
    this.place.forget(this.name);
    return true;
  }

  /** Whether the name is due to be tended. The interval grows while nothing happens. */
  isDue(now: number): boolean {
    const own = this.place.known(this.name);
    if (this.#busy || this.#done || own === null || own.untouched) return false;
    return now >= this.#lookAt && wantsTending(own.state, this.place.options.graceMs, now);
  }

  /** @returns keys that are no longer needed */
  async tend(): Promise<string[]> {
    const { graceMs, tendMs } = this.place.options;
    this.#lookMs = Math.min(Math.max(tendMs, 2 * this.#lookMs), LOOK_GRACES * graceMs);
    this.#lookAt = this.place.now() + this.#lookMs;
    this.#done = true;
    const [{ done, useless }] = (await this.#queue([tend(graceMs, this.place.unseenSince())])) as Tended[];
    // A caller that came meanwhile needs the part.
    this.#done &&= done;
    return useless.map((id) => this.place.keyOf(this.name, id));
  }

  run<T>(steps: readonly Step<T>[]): Promise<T[]> {
    this.#lookAt = this.#lookMs = 0;
    this.#done = false;
    return this.#queue(steps) as Promise<T[]>;
  }

  #queue(steps: readonly Step<unknown>[]): Promise<unknown[]> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ steps, resolve, reject });
      if (!this.#busy) void this.#work();
    });
  }

  async #work(): Promise<void> {
    this.#busy = true;
    // Calls in the same turn of the event loop share a read.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0);
      await this.#runBatch(batch).catch((problem: unknown) => batch.forEach(({ reject }) => reject(problem)));
    }
    this.#busy = false;
  }

  async #runBatch(batch: readonly Waiting[]): Promise<void> {
    const { place, name } = this;
    const [seen] = await place.read(await place.view(), [name]);
    const owned = place.owned(name);
    const now = place.now();
    const mine = place.id.slice(0, place.id.lastIndexOf('.') + 1);
    let scene: Scene = {
      id: place.id,
      own: owned.state,
      others: decode(place, name, seen),
      now,
      isPredecessor: (id) => id.startsWith(mine) && id !== place.id,
    };
    const done: (() => void)[] = [];
    for (const { steps, resolve, reject } of batch) {
      try {
        let at = scene;
        const replies = steps.map((step) => {
          const { own, reply } = step(at);
          at = { ...at, own };
          return reply;
        });
        scene = at;
        done.push(() => resolve(replies));
      } catch (problem) {
        reject(problem);
      }
    }
    const { own } = scene;
    if (own !== owned.state) await owned.write(() => ({ first: now, ...own }));
    for (const resolve of done) resolve();
  }
}

/**
 * A part is checked at least once in this number of grace periods: more often than the time for which entries are kept
 * for it.
 */
const LOOK_GRACES = 9;
