/**
 * This region's part of the counters whose layout is `per-region`: the shard is a writer of the counters package.
 *
 * Room: regional: counters that several regions write: the shard as a writer of the counters package.
 * Called by: session, shard.
 * Calls: io, resp, route, upstream.
 */
import { Counters, type PlainCounters, type Time } from '../../../counters/src/index.js';
import { monotonicMs, unixMs } from '../io/clock.js';
import { randomShare } from '../io/random.js';
import { clearTimer, every, sleep } from '../io/timers.js';
import type { Server } from '../upstream/server.js';
import { PARTS } from '../route/parts.js';
import { ServerStore } from './store.js';

/** How old the list of writers may be, in ms; as long does it take to begin. */
const REFRESH_MS = 500;
const BLIND_AFTER_MS = 5_000;
/** Of so many commands, one is taken for a look at what is beside. */
const LOOK_EVERY = 16;

/** The counters get time and chance where the proxy does. */
const TIME: Time = {
  unixMs,
  monotonicMs,
  sleep: (ms) => sleep(ms),
  every(ms, run) {
    const timer = every(ms, run).unref();
    return () => clearTimer(timer);
  },
  randomShare,
};

export interface RegionalOptions {
  /** The target. */
  readonly server: Server;
  readonly region: string;
  readonly shard: string;
}

export class Regional {
  readonly #store: ServerStore;
  #looks = 0;
  #opening: Promise<{ readonly counters: Counters; readonly plain: PlainCounters }> | null = null;

  constructor(private readonly options: RegionalOptions) {
    const { server } = options;
    this.#store = new ServerStore(() => server.open({ db: 0, protocol: 2, credentials: server.endpoint.credentials }));
  }

  /** The counters; the first time, the other writers are waited for. @throws where the target cannot be reached */
  async counters(): Promise<PlainCounters> {
    this.#opening ??= this.#open().catch((problem: unknown) => {
      this.#opening = null;
      throw problem;
    });
    return (await this.#opening).plain;
  }

  async #open(): Promise<{ readonly counters: Counters; readonly plain: PlainCounters }> {
    const { region, shard } = this.options;
    const counters = await Counters.open(this.#store, {
      region,
      writer: shard,
      prefix: PARTS,
      refreshMs: REFRESH_MS,
      blindAfterMs: BLIND_AFTER_MS,
      time: TIME,
    });
    return { counters, plain: counters.plain() };
  }

  /**
   * Now and then looks whether the target has the key as a plain one, which only a client that bypasses the proxies can
   * have written.
   */
  lookBeside(key: string, found: () => void): void {
    if (this.#looks++ % LOOK_EVERY === 0)
      this.#store.send(['EXISTS', key]).then(
        (there) => void (there === 1 && found()),
        () => undefined,
      );
  }

  /** Databases were swapped at the target: a connection from before may hold what its own held then. */
  renew(): void {
    this.#store.renew();
  }

  /** Writes everything a last time, and announces to the other regions that it leaves. */
  async leave(): Promise<void> {
    if (this.#opening !== null) await (await this.#opening).counters.close();
  }

  /** Ends at once. */
  close(): void {
    this.#store.close();
    void this.leave().catch(() => undefined);
  }
}
