/**
 * Checks that the servers that answer clients are up. A server that does not answer is asked repeatedly. When it has
 * been silent for `limits.downAfterMs`, it is down, and the failover decides what follows. The delay of our own event
 * loop does not count as silence (`io/clock.ts listenedMs`).
 *
 * Room: health: servers that fail, restart or are replaced: detection, failover, trust, clocks.
 * Called by: admin, shard.
 * Calls: io, resp, route, plan, telemetry, storage, upstream, pipeline, suspects, session, copy, stages.
 */
import { listenedMs, monotonicMs } from '../io/clock.js';
import { afterReading, sleep } from '../io/timers.js';
import type { Authorities } from '../pipeline/authorities.js';
import type { Server } from '../upstream/server.js';
import { isError, text, type Reply } from '../resp/decode.js';
import { SIDES, type Side } from '../route/stage.js';

const POLL_MS = 250;

export interface HealthMonitorContext {
  readonly servers: Readonly<Record<Side, Server>>;
  readonly authorities: Pick<Authorities, 'isNeeded'>;
  /** Whether the server may be working on a command, and therefore answers no other: then it is not down. */
  mayBeBusy(side: Side): boolean;
  /** When the server last replied to a command or an effect, in ms of the monotonic clock. */
  repliedAt(side: Side): number;
  /** How long a server may be silent before it is down, in ms. */
  downAfterMs(): number;
  /** Called when the server is down, and again at each check, until the server answers or is no longer needed. */
  down(side: Side): void;
}

export class HealthMonitor {
  /** In ms of `listenedMs`. */
  readonly #silentSince: Record<Side, number | null> = { source: null, target: null };
  /** Whether the server's last answer was that it is loading its data: then it runs no command. */
  readonly #loads: Record<Side, boolean> = { source: false, target: false };
  #stopped = false;

  constructor(private readonly context: HealthMonitorContext) {}

  watch(): void {
    for (const side of SIDES) void this.#watch(this.context.servers[side]);
  }

  stop(): void {
    this.#stopped = true;
  }

  /** How long the server has not answered, in ms; 0 if it answers, or is not needed. */
  silentMs(side: Side): number {
    const since = this.#silentSince[side];
    return since === null || !this.context.authorities.isNeeded(side) ? 0 : listenedMs() - since;
  }

  isDown(side: Side): boolean {
    const silentMs = this.silentMs(side);
    const { context } = this;
    const downAfterMs = context.downAfterMs();
    if (silentMs === 0 || silentMs < downAfterMs) return false;
    if (this.#loads[side]) return true;
    // A command may have kept it from the question for that long, and be over.
    return monotonicMs() - context.repliedAt(side) >= downAfterMs && !context.mayBeBusy(side);
  }

  async #watch(server: Server): Promise<void> {
    let asked: Promise<void> | null = null;
    while (!this.#stopped) {
      await sleep(POLL_MS, undefined, { ref: false });
      if (!this.context.authorities.isNeeded(server.side)) {
        this.#heard(server);
        continue;
      }
      const since = listenedMs();
      // One question at a time: a server that hangs may still answer it.
      asked ??= this.#ask(server, since).finally(() => (asked = null));
      await Promise.race([asked, sleep(POLL_MS, undefined, { ref: false })]);
      await afterReading();
      if (asked !== null) {
        this.#silentSince[server.side] ??= since;
        this.#loads[server.side] = false;
      }
      if (!this.#stopped && this.isDown(server.side)) this.context.down(server.side);
    }
  }

  async #ask(server: Server, since: number): Promise<void> {
    const answer = await this.#answerOf(server).catch(() => null);
    const loads = answer !== null && isError(answer) && text(answer).startsWith('LOADING');
    this.#loads[server.side] = loads;
    if (answer === null || loads) this.#silentSince[server.side] ??= since;
    else this.#heard(server);
    if (answer !== null) server.refuse(null);
  }

  /** KeyDB answers PING while it loads its data, but refuses clients. During loading neither server answers DBSIZE. */
  async #answerOf(server: Server): Promise<Reply> {
    const answer = await server.ask('PING');
    return isError(answer) ? answer : server.ask('DBSIZE');
  }

  #heard(server: Server): void {
    this.#silentSince[server.side] = null;
    server.refuse(null);
  }
}
