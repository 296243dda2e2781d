/**
 * Compares the clocks of the two servers. An absolute expiry is judged by the clock of the server that holds the key.
 * Both clocks are read each second, because a server does not announce that its clock was set.
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
/** Clocks that differ by less than this, beyond the error of measurement, count as equal. */
const TOLERANCE_MS = 20;
/**
 * A server that gets no CPU time shows an old time. A difference is believed only if every reading during this time
 * shows it.
 */
const SURE_MS = 500;
const LASTING_MS = 2_500;

export interface ClocksContext {
  readonly servers: Readonly<Record<Side, Server>>;
  readonly mirrors: Readonly<Record<Side, MirrorLane>>;
  /** A server that answers clients is looked for by others while it is disconnected; all others are looked for here. */
  readonly authorities: Pick<Authorities, 'isNeeded'>;
  readonly suspectWorkloads: Pick<SuspectWorkloads, 'markAll'>;
  /** How far the target's clock was ahead in the last process, in ms; null if it was not measured. */
  readonly knownAheadMs: number | null;
  /** Saves the new difference. */
  changed(): void;
  readonly logger: Logger;
}

export class Clocks {
  #stopped = false;
  /** Since when readings contradict the known difference; null if the last one did not. */
  #offSince: number | null = null;
  /** Whether both clocks were read. */
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
      // A mirror's lane may still work when the connection for questions is lost. Then nothing else asks the server who
      // it is.
      if (server.up || mirrors[server.side].connected || authorities.isNeeded(server.side))
        await server.identify().catch(() => undefined);
    }
  }

  /**
   * Called after each reading. An absolute expiry is sent to a mirror by the mirror's own clock. The known difference
   * is used until a reading contradicts it.
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

  /** Until it is known which difference is right, keys with an absolute expiry are copied (`suspects/expiry.ts`). */
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

  /** A clock may have been set while no process was running: then the difference is another than before. */
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
   * A key with a TTL expires earlier or later there than on the other server, and only a check of every key shows it.
   */
  set({ side }: Server, byMs: number): void {
    this.context.logger.warn({ server: side, byMs: Math.round(byMs) }, 'the clock of the server was set');
    this.context.suspectWorkloads.markAll(
      `the clock of the ${side} was set by ${Math.round(byMs)} ms: TTLs of its keys changed`,
    );
  }
}
