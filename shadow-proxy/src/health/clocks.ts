/**
 * The two servers' clocks: what ends at a moment ends by the clock of the server that holds it. Both are looked at each
 * second, because a server whose clock is set says so to nobody.
 */
import type { Logger } from 'pino';
import { monotonicMs } from '../io/clock.js';
import { sleep } from '../io/timers.js';
import type { Authorities } from '../pipeline/authorities.js';
import type { MirrorLane } from '../pipeline/mirror.js';
import type { SuspectWorkloads } from '../suspects/workloads.js';
import type { Server } from '../upstream/server.js';
import type { Side } from '../route/stage.js';

const POLL_MS = 1_000;
/** By less than this, beyond the error of the looks, they do not differ. */
const TOLERANCE_MS = 20;
/**
 * A server that gets no processor shows an old time: by less than this they differ only when every look for so long
 * says so.
 */
const SURE_MS = 500;
const LASTING_MS = 2_500;

export interface ClocksContext {
  readonly servers: Readonly<Record<Side, Server>>;
  readonly mirrors: Readonly<Record<Side, MirrorLane>>;
  /** A server that clients are sent to is looked for while it is disconnected: nothing else may look for it. */
  readonly authorities: Pick<Authorities, 'isNeeded'>;
  readonly suspectWorkloads: Pick<SuspectWorkloads, 'markAll'>;
  /** By how many ms the target's clock was ahead when the last process looked; null where none did. */
  readonly knownAheadMs: number | null;
  /** Notes, durably, by how much it is ahead now. */
  changed(): void;
  readonly logger: Logger;
}

export class Clocks {
  #stopped = false;
  /** Since when looks contradict what is believed; null where the last one did not. */
  #offSince: number | null = null;
  /** Whether both were looked at. */
  #compared = false;

  constructor(private readonly context: ClocksContext) {
    this.#believe(context.knownAheadMs ?? 0);
  }

  watch(): void {
    for (const server of Object.values(this.context.servers)) void this.#watch(server);
  }

  stop(): void {
    this.#stopped = true;
  }

  async #watch(server: Server): Promise<void> {
    while (!this.#stopped) {
      await sleep(POLL_MS, undefined, { ref: false });
      const { authorities, mirrors } = this.context;
      // A mirror may go on when the connection of questions is lost: then nothing else asks the server what it is.
      if (server.up || mirrors[server.side].connected || authorities.isNeeded(server.side))
        await server.identify().catch(() => undefined);
    }
  }

  /**
   * One was looked at. Moments go to a mirror by its own clock; what was believed of the two stays until a look
   * contradicts it.
   */
  compare(): void {
    const { servers, mirrors, logger, changed } = this.context;
    const { source, target } = servers;
    const errorMs = source.clock.errorMs + target.clock.errorMs;
    if (errorMs === Infinity) return;
    const aheadMs = target.clock.unixTimeAtZero - source.clock.unixTimeAtZero;
    if (!this.#compared) this.#setMeanwhile(aheadMs, errorMs);
    this.#compared = true;
    const offMs = Math.abs(aheadMs - mirrors.target.clockAheadMs);
    const now = monotonicMs();
    this.#setOff(offMs > errorMs + TOLERANCE_MS ? (this.#offSince ?? now) : null);
    if (this.#offSince === null || (offMs < SURE_MS && now - this.#offSince < LASTING_MS)) return;
    this.#setOff(null);
    this.#believe(Math.abs(aheadMs) > errorMs + TOLERANCE_MS ? Math.round(aheadMs) : 0);
    changed();
    logger.warn(
      { targetAheadMs: mirrors.target.clockAheadMs },
      'the clocks of the two servers differ: absolute expiries are converted for each server',
    );
  }

  /** Until it is known which of the two is right, keys with an absolute expiry are copied (`suspects/expiry.ts`). */
  #setOff(since: number | null): void {
    if ((since === null) === (this.#offSince === null)) return;
    this.#offSince = since;
    for (const mirror of Object.values(this.context.mirrors))
      mirror.clockKnownFrom = since === null ? monotonicMs() : Infinity;
  }

  #believe(aheadMs: number): void {
    const { mirrors } = this.context;
    mirrors.target.clockAheadMs = aheadMs;
    mirrors.source.clockAheadMs = -aheadMs;
  }

  /** While no process looked, a clock may have been set: then the two differ by something else than before. */
  #setMeanwhile(aheadMs: number, errorMs: number): void {
    const { knownAheadMs, logger, suspectWorkloads } = this.context;
    if (knownAheadMs === null) return;
    const byMs = Math.round(aheadMs - knownAheadMs);
    if (Math.abs(byMs) <= errorMs + SURE_MS) return;
    logger.warn({ byMs }, 'the clock of a server was set while no proxy was running');
    suspectWorkloads.markAll(
      `the clock of a server was set by ${byMs} ms while no proxy was running: TTLs of its keys changed`,
    );
  }

  /**
   * What has a time to live ends sooner or later there than on the other server, and nothing but a look at every key
   * reports it.
   */
  set({ side }: Server, byMs: number): void {
    this.context.logger.warn({ server: side, byMs: Math.round(byMs) }, 'the clock of the server was set');
    this.context.suspectWorkloads.markAll(
      `the clock of the ${side} was set by ${Math.round(byMs)} ms: TTLs of its keys changed`,
    );
  }
}
