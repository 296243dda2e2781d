/**
 * Checks twice a second whether the servers demand a password from clients that have not logged in. For new clients
 * `pipeline/lanes.ts admit` asks; this covers connected clients, and the status.
 */
import type { Logger } from 'pino';
import { clearTimer, every, type Timer } from '../io/timers.js';
import type { Authorities } from '../pipeline/authorities.js';
import type { Sequencer } from '../pipeline/sequencer.js';
import type { Server } from '../upstream/server.js';
import { SIDES, type Side } from '../route/stage.js';
import type { Clients } from '../session/clients.js';

export interface LoginsContext {
  readonly sequencer: Sequencer;
  readonly clients: Pick<Clients, 'sessions' | 'side' | 'passwordNeeded'>;
  readonly authorities: Pick<Authorities, 'isNeeded'>;
  readonly logger: Logger;
}

const CHECK_MS = 500;

export class Logins {
  #timer: Timer | undefined;
  /** The authority of `default` at the last check. */
  #side: Side | undefined;

  constructor(private readonly context: LoginsContext) {}

  watch(): void {
    this.#timer = every(CHECK_MS, () => this.#check()).unref();
  }

  stop(): void {
    clearTimer(this.#timer);
  }

  changed(server: Server): void {
    const { clients, logger } = this.context;
    clients.passwordNeeded(server);
    // The first answer of a server is no change.
    if (this.#timer === undefined) return;
    const { side, needsPassword } = server;
    logger.warn(
      { server: side, needsPassword },
      needsPassword ? 'new clients must log in from now on' : 'clients need not log in any more',
    );
  }

  #check(): void {
    const { sequencer, clients, authorities } = this.context;
    if (this.#side !== clients.side) for (const session of clients.sessions.values()) session.checkLimits();
    this.#side = clients.side;
    for (const side of SIDES) {
      const server = sequencer.servers[side];
      if (server.needsPassword) sequencer.lanes[side].retireUnauthenticated();
      // `health/monitor.ts` handles a server that does not answer.
      if (authorities.isNeeded(side)) server.askNeedsPassword().catch(() => undefined);
    }
  }
}
