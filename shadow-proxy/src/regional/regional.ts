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
import { PARTS } from '../route/counter-keys.js';
import { ServerStore } from './store.js';

/** Maximum age of the list of writers, in ms. The start takes as long. */
const REFRESH_MS = 500;
const BLIND_AFTER_MS = 5_000;
/** For one of this number of commands, the target is checked for a plain key. */
const LOOK_EVERY = 16;

/** The counters use the proxy's clock and random numbers. */
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

  /** The counters. The first call waits for the other writers. @throws if the target cannot be reached */
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
   * Checks now and then whether the target has the key as a plain one: only a client that bypasses the proxies can have
   * written it.
   */
  lookBeside(key: string, found: () => void): void {
    if (this.#looks++ % LOOK_EVERY === 0)
      this.#store.send(['EXISTS', key]).then(
        (there) => void (there === 1 && found()),
        () => undefined,
      );
  }

  /** Databases were swapped at the target: an older connection may use another database now. */
  renew(): void {
    this.#store.renew();
  }

  /** Writes everything a last time, and announces to the other regions that this region leaves. */
  async leave(): Promise<void> {
    if (this.#opening !== null) await (await this.#opening).counters.close();
  }

  /** Closes at once. */
  close(): void {
    this.#store.close();
    void this.leave().catch(() => undefined);
  }
}
