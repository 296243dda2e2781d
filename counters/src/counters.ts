/** The counters of a process: its identity as a writer, and its own keys. */
import { counterShape, GrowOnlyCounter, UpDownCounter, type CounterOptions, type CounterPlace } from './counter.js';
import { CounterError, demand } from './errors.js';
import { Keys, newEpoch, writerId } from './layout.js';
import {
  fixed,
  Limiter,
  sliding,
  windowShape,
  type LimiterOptions,
  type LimiterPlace,
  type SlidingOptions,
  type Window,
} from './limiter.js';
import { Members, type View } from './members.js';
import { OwnedKey, type Look, type Seen, type Shape } from './owned-key.js';
import { rewrite, type Which } from './repair.js';
import { GRACE_MS, PlainCounters, plainShape, type PlainOptions, type PlainPlace } from './plain.js';
import type { PlainPart } from './plain-layout.js';
import type { Store } from './store.js';
import { NODE_TIME, type Time } from './time.js';
import { Upkeep, type UpkeepOptions } from './upkeep.js';

export interface CountersOptions {
  /** The region: all processes that use the same server. Letters, digits, `_`, `-`. */
  readonly region: string;
  /** A name of this process, for people who inspect the store; it need not be unique. Default `app`. */
  readonly writer?: string;
  /** The prefix of all keys. It must be the same in all regions. Default `counters`. */
  readonly prefix?: string;
  /** Maximum age of the list of writers, in ms; `open` waits as long. Default 1000. */
  readonly refreshMs?: number;
  /** After this many ms of silence a region counts as out of sight. Default 5 × `refreshMs`. */
  readonly blindAfterMs?: number;
  /**
   * How often this process checks that its server still has what it wrote, in ms; 0: it repairs only when asked.
   * Default 10,000.
   */
  readonly repairMs?: number;
  /** How often it writes all of its keys again, even without a sign of a loss, in ms. Default 600,000. */
  readonly rewriteMs?: number;
  /** Unix ms; for tests. */
  readonly now?: () => number;
  /** Clock, timers and randomness, for a simulation. Default: Node's. */
  readonly time?: Time;
}

/** How long, beyond its window, a limiter still reads the part of a writer that is silent, in ms. */
const SILENT_MS = 60_000;

export class Counters {
  readonly #owned = new Map<string, OwnedKey<unknown>>();
  #plain: PlainCounters | null = null;
  #closed = false;
  readonly #upkeep: Upkeep;

  private constructor(
    private readonly store: Store,
    private readonly keys: Keys,
    private readonly members: Members,
    /** `<region>.<writer>.<epoch>` */
    readonly id: string,
    private readonly now: () => number,
    private readonly time: Time,
    upkeep: Omit<UpkeepOptions, 'time'>,
  ) {
    this.#upkeep = new Upkeep((which) => this.#rewrite(which), { ...upkeep, time });
  }

  /**
   * Joins, which takes `refreshMs`: afterwards every process knows this one.
   * @throws {CounterError} OPTION; errors of the client library
   */
  static async open(store: Store, options: CountersOptions): Promise<Counters> {
    const {
      region,
      writer = 'app',
      prefix = 'counters',
      refreshMs = 1000,
      time = NODE_TIME,
      now = time.unixMs,
    } = options;
    const { blindAfterMs = 5 * refreshMs, repairMs = 10_000, rewriteMs = 600_000 } = options;
    demand(refreshMs >= 10, `refreshMs ${refreshMs}: at least 10 ms`);
    demand(blindAfterMs > refreshMs, `blindAfterMs ${blindAfterMs}: more than refreshMs (${refreshMs})`);
    demand(repairMs === 0 || repairMs >= 10, `repairMs ${repairMs}: 0, or at least 10 ms`);
    demand(rewriteMs >= repairMs, `rewriteMs ${rewriteMs}: at least repairMs (${repairMs})`);
    const keys = new Keys(prefix);
    const id = writerId({ region, writer, epoch: newEpoch(now(), time.randomShare()) });
    const members: Members = new Members({
      store,
      keys,
      region,
      id,
      refreshMs,
      blindAfterMs,
      now,
      time,
      onGap: () => counters.#upkeep.sawGap(),
    });
    const counters = new Counters(store, keys, members, id, now, time, { repairMs, rewriteMs });
    await members.join();
    counters.#upkeep.start();
    return counters;
  }

  growOnly(name: string, options: CounterOptions = {}): GrowOnlyCounter {
    return new GrowOnlyCounter(this.#counterPlace(name, options));
  }

  upDown(name: string, options: CounterOptions = {}): UpDownCounter {
    return new UpDownCounter(this.#counterPlace(name, options));
  }

  /**
   * Windows side by side: 0:00 to 0:59, 1:00 to 1:59, … An interval that spans two windows may have twice the limit.
   */
  fixedWindow(name: string, options: LimiterOptions): Limiter {
    return this.#limiter(name, options, fixed(options.windowMs));
  }

  /** Any interval as long as the window has at most the limit. */
  slidingWindow(name: string, options: SlidingOptions): Limiter {
    const { buckets = 10, windowMs } = options;
    demand(
      Number.isInteger(buckets) && buckets >= 1 && buckets <= 100,
      `buckets ${buckets} of ${JSON.stringify(name)}: 1 to 100 are allowed`,
    );
    demand(
      windowMs % buckets === 0,
      `buckets ${buckets} of ${JSON.stringify(name)}: windowMs (${windowMs}) divided by it must be a whole number of ms`,
    );
    return this.#limiter(name, options, sliding(windowMs, buckets));
  }

  /**
   * Counters with the behaviour of Redis's own, all parts of one name together. Their keys are those of the other
   * counters: do not use a name for both. No two processes with this `region` and `writer` may run at the same time: a
   * process takes over the counts of earlier starts.
   */
  plain({ graceMs = GRACE_MS, tendMs = 1000 }: PlainOptions = {}): PlainCounters {
    this.#open();
    demand(this.#plain === null, 'plain counters: they were made already');
    demand(graceMs >= 1000, `graceMs ${graceMs}: at least 1000 ms`);
    demand(
      tendMs === 0 || (tendMs >= 10 && tendMs <= graceMs / 4),
      `tendMs ${tendMs}: 0, or from 10 ms to a quarter of graceMs (${graceMs})`,
    );
    return (this.#plain = new PlainCounters(this.#plainPlace({ graceMs, tendMs })));
  }

  /** Regions that this process cannot see. */
  blind(): string[] {
    return this.members.blind();
  }

  /** Announces that a region has left, if it ended without closing. Then no process waits for that region any more. */
  async dismiss(region: string): Promise<void> {
    this.#open();
    await this.members.dismiss(region);
  }

  /**
   * Writes again all that this process has counted, because a server may have lost it. This happens automatically, see
   * `repairMs`.
   * @returns how many keys were written again
   * @throws {CounterError} REFUSED, UNCONFIRMED, CLOSED; errors of the client library
   */
  async repair(): Promise<number> {
    this.#open();
    return this.#rewrite('all');
  }

  /**
   * Repairs a last time, and leaves. The client stays open. The counters are closed in any case. @throws errors of the
   * client library
   */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#upkeep.stop();
    this.members.stop();
    this.#plain?.stop();
    try {
      await this.repair();
      await this.members.leave();
    } finally {
      this.#closed = true;
    }
  }

  async #rewrite(which: Which): Promise<number> {
    if (which === 'all') await this.members.restate();
    return rewrite(this.#owned, this.store, this.now(), which);
  }

  #counterPlace(name: string, { expiresAt }: CounterOptions): CounterPlace {
    demand(name.length > 0, 'the name of a counter: at least one character');
    const until = expiresAt === undefined ? null : Number(expiresAt);
    demand(
      until === null || Number.isSafeInteger(until),
      `expiresAt ${String(expiresAt)} of ${JSON.stringify(name)}: a date, or Unix ms`,
    );
    const keyOf = (id: string): string => this.keys.part(name, id);
    const shape = counterShape(until);
    return {
      id: this.id,
      name,
      keyOf,
      owned: () => this.#own(keyOf(this.id), shape),
      read: async () => this.#read(await this.members.view(), keyOf),
    };
  }

  #limiter(name: string, options: LimiterOptions, window: Window): Limiter {
    const { limit, windowMs, whenBlind = 'admit' } = options;
    demand(name.length > 0, 'the name of a limiter: at least one character');
    demand(
      Number.isSafeInteger(limit) && limit > 0,
      `limit ${limit} of ${JSON.stringify(name)}: a positive whole number`,
    );
    demand(
      Number.isSafeInteger(windowMs) && windowMs >= 1,
      `windowMs ${windowMs} of ${JSON.stringify(name)}: a positive whole number of ms`,
    );
    demand(
      whenBlind === 'admit' || whenBlind === 'deny',
      `whenBlind ${String(whenBlind)} of ${JSON.stringify(name)}: admit or deny`,
    );
    return new Limiter(this.#limiterPlace(name, windowMs, windowShape(window)), { limit, windowMs, whenBlind }, window);
  }

  #limiterPlace(name: string, windowMs: number, shape: ReturnType<typeof windowShape>): LimiterPlace {
    const keyOf = (subject: string, id: string): string => this.keys.part(`${name}:${subject}`, id);
    const recent = (view: View): View => this.members.recent(view, 2 * windowMs + SILENT_MS);
    return {
      name,
      now: this.now,
      keyOf,
      owned: (subject) => this.#own(keyOf(subject, this.id), shape),
      look: async (subject) => {
        await this.members.view();
        return this.#look((id) => keyOf(subject, id), recent);
      },
      fresh: ({ view }) => this.members.fresh(view),
      read: async (subject) => this.#read(recent(await this.members.view()), (id) => keyOf(subject, id)),
      blind: () => this.members.blind(),
    };
  }

  #plainPlace(options: Required<PlainOptions>): PlainPlace {
    const shape = plainShape(options.graceMs);
    const keyOf = (name: string, id: string): string => this.keys.part(name, id);
    const own = (name: string): string => keyOf(name, this.id);
    return {
      id: this.id,
      options,
      now: this.now,
      time: this.time,
      keyOf,
      known: (name) => (this.#owned.get(own(name)) as OwnedKey<PlainPart> | undefined) ?? null,
      owned: (name) => this.#own(own(name), shape),
      forget: (name) => void this.#owned.delete(own(name)),
      view: () => this.members.view(),
      read: (view, names) =>
        this.#readAll(
          view,
          names.map((name) => (id: string) => keyOf(name, id)),
        ),
      discard: async (keys) => void (keys.length > 0 && (await this.store.send(['DEL', ...keys]))),
      unseenSince: () => this.members.unseenSince(),
    };
  }

  #look(keyOf: (id: string) => string, narrow: (view: View) => View): Look {
    return () => {
      const view = narrow(this.members.last);
      return { view, keys: view.ids.map(keyOf) };
    };
  }

  async #read(view: View, keyOf: (id: string) => string): Promise<Seen> {
    return (await this.#readAll(view, [keyOf]))[0];
  }

  /** Reads the parts of several names with one command. */
  async #readAll(view: View, keysOf: readonly ((id: string) => string)[]): Promise<Seen[]> {
    this.#open();
    const { ids } = view;
    const keys = keysOf.flatMap((keyOf) => ids.map(keyOf));
    const values = keys.length === 0 ? [] : ((await this.store.send(['MGET', ...keys])) as (string | null)[]);
    return keysOf.map((_, i) => ({ view, values: values.slice(i * ids.length, (i + 1) * ids.length) }));
  }

  #own<S>(key: string, shape: Shape<S>): OwnedKey<S> {
    this.#open();
    let owned = this.#owned.get(key) as OwnedKey<S> | undefined;
    if (owned === undefined) this.#owned.set(key, (owned = new OwnedKey(this.store, key, shape)) as OwnedKey<unknown>);
    return owned;
  }

  #open(): void {
    if (this.#closed) throw new CounterError('CLOSED', 'these counters were closed: open new ones');
  }
}
