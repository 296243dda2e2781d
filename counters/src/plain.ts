/**
 * Counters with the meaning of Redis's own: a number under a name, which can be added to, deleted, and given an end.
 * For a program that stands between applications and a server, such as a proxy, and is its region's one writer.
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
  standing,
  tend,
  wantsTending,
  type PlainPart,
  type PlainParts,
  type Scene,
  type Standing,
  type Step,
  type Tended,
} from './plain-layout.js';
import type { Time } from './time.js';

/** For so long after its end a part is kept, in ms: others hear of the end meanwhile. */
export const GRACE_MS = 60_000;
/** How many names are tended at once, with one read. */
const TENDED_AT_ONCE = 500;
const LOOKED_AT = 50_000;

export interface PlainOptions {
  /** For how long a part is kept after its end, in ms: others must hear of the end within that time. Default 60,000. */
  readonly graceMs?: number;
  /** How often parts are tended that nobody writes, in ms; 0: only by `tend`. Default 1000. */
  readonly tendMs?: number;
}

/** What plain counters need of the `Counters` that made them. */
export interface PlainPlace {
  readonly id: string;
  readonly options: Required<PlainOptions>;
  now(): number;
  readonly time: Time;
  keyOf(name: string, id: string): string;
  /** Null where this process never wrote the name. */
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
  // Only who tends it knows.
  isOver: () => false,
});

/** All of them; made by `Counters.plain`. */
export class PlainCounters {
  readonly #keys = new Map<string, PlainKey>();
  readonly #stopTending: () => void = () => undefined;
  #iterator: Iterator<PlainKey> | null = null;
  #tending = false;

  constructor(private readonly place: PlainPlace) {
    const { tendMs } = place.options;
    // What fails here is tended again at the next look.
    if (tendMs > 0) this.#stopTending = place.time.every(tendMs, () => void this.#tendSome().catch(() => undefined));
  }

  /** How many names are held in memory. */
  get size(): number {
    return this.#keys.size;
  }

  /**
   * INCRBY. Of those who add in this region, no two get the same value while nothing is reset.
   * @returns the value after it, as this region's server knew it
   * @throws {CounterError} OPTION, REFUSED, UNCONFIRMED, FOREIGN_VALUE, CLOSED; what the client throws where nothing
   * was written
   */
  async add(name: string, by = 1): Promise<number> {
    return this.run(name, add(by));
  }

  /** DEL. @returns whether there was such a counter. @throws as `add` */
  async delete(name: string): Promise<boolean> {
    return this.run(name, remove);
  }

  /** PEXPIREAT, or with null PERSIST. @param at Unix ms. @returns whether that changed anything. @throws as `add` */
  async expireAt(name: string, at: number | null): Promise<boolean> {
    return this.run(name, expireAt(at));
  }

  /** Makes one change. @throws as `add` */
  async run<T>(name: string, step: Step<T>): Promise<T> {
    return (await this.runAll(name, [step]))[0];
  }

  /** Several changes, with nothing of this region in between: all are written, or none. @throws as `add` */
  runAll<T>(name: string, steps: readonly Step<T>[]): Promise<T[]> {
    let key = this.#keys.get(name);
    if (key === undefined) this.#keys.set(name, (key = new PlainKey(this.place, name)));
    return key.run(steps);
  }

  /** How they stand now. @throws {CounterError} FOREIGN_VALUE, CLOSED; what the client throws */
  async look(names: readonly string[]): Promise<Standing[]> {
    const seen = await this.place.read(await this.place.view(), names);
    const now = this.place.now();
    return names.map((name, i) => {
      const own = this.place.known(name);
      const others = decode(this.place, name, seen[i]);
      return standing(own === null ? others : new Map([...others, [this.place.id, own.state]]), now);
    });
  }

  /** Tends every part of this process. Happens by itself, see `tendMs`. */
  async tend(): Promise<void> {
    await this.#tend([...this.#keys.values()]);
  }

  stop(): void {
    this.#stopTending();
  }

  /** Round and round, so that many names are no burden. */
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
 * One name. What comes while it is busy shares the next look and the next write.
 *
 * It looks first and writes then: of two regions that begin a counter at a time, one cannot have seen the other's part,
 * so that one of them gets 1. (Had they written first, both might see 2, and nobody would give it an end.)
 */
class PlainKey {
  #waiting: Waiting[] = [];
  #busy = false;
  /** Whether nobody needs it any more. */
  #done = false;
  /** When it is looked at next, where nothing else is known, in Unix ms; and how long after that. */
  #lookAt = 0;
  #lookMs = 0;

  constructor(
    private readonly place: PlainPlace,
    readonly name: string,
  ) {}

  /** Forgets it, if nobody needs it any more and the store has let it go; whether it did. */
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

  /** @returns keys that are of no use to anybody */
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
    // Callers in the same turn of the event loop share a read.
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

/** A part is looked after every so many times the grace at least: more often than what it must hear of is kept. */
const LOOK_GRACES = 9;
