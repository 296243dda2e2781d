/**
 * Rule 20: a connection can go silent without closing, because a firewall or a connection table forgot it, while new
 * ones work. If a connection waits for replies and has brought nothing for `limits.silentMs`, the server is asked about
 * it on another connection:
 *
 *   waits, and brings nothing ─▶ CLIENT LIST beside ─┬─ no answer, BUSY, LOADING ─▶ the server is slow or down, not the connection
 *                                                    ├─ it blocks, or still sends ─▶ it may take its time
 *                                                    └─ neither, three times ─────▶ closed: its replies are lost, its keys suspect
 *
 * The server answers a question that was sent long after the command: so it has run that command, or never received it.
 */
import type { Connection } from './connection.js';
import { clientField } from './handshake.js';
import { listenedMs } from '../io/clock.js';
import { afterReading, sleep } from '../io/timers.js';
import type { Side } from '../route/stage.js';
import type { ServerConnections } from './server-connections.js';

const CHECK_MS = 200;
/**
 * How many times the server must have answered on the other connection. A KeyDB has threads, and a blocked client may
 * just have been woken.
 */
const STRIKES = 3;
/** After this much silence, in ms, a connection that only listens is asked for a sign of life. */
const LISTENER_MS = 15_000;

/** A server, and the connections to it that are watched. */
export interface WatchedServer {
  readonly side: Side;
  readonly connections: Pick<ServerConnections, 'list' | 'glance'>;
}

export interface LivenessContext {
  /** How long a connection may wait for a reply, in ms, before the server is asked about it. */
  silentMs(): number;
  /** The connection was closed after `silentMs` of silence. */
  closed(server: WatchedServer, connection: Connection, silentMs: number): void;
}

interface ConnectionActivity {
  /** `Connection.chunks` at that time. */
  chunks: number;
  /** Since when the connection has brought nothing, and whether it was waiting then; in ms of `listenedMs`. */
  since: number;
  waited: boolean;
  strikes: number;
}

/** Whether the connection is silent, by its line in the server's CLIENT LIST; undefined if it is not listed. */
export function isSilent(line: string | undefined): boolean {
  if (line === undefined) return true;
  // In a blocking command, or in CLIENT PAUSE.
  if (clientField(line, 'flags').includes('b')) return false;
  // A command that is still being received.
  return clientField(line, 'qbuf') === '0' || Number(clientField(line, 'idle')) > 1;
}

export class Liveness {
  readonly #seen = new WeakMap<Connection, ConnectionActivity>();
  #stopped = false;

  constructor(
    private readonly server: WatchedServer,
    private readonly context: LivenessContext,
  ) {}

  async watch(): Promise<void> {
    while (!this.#stopped) {
      await sleep(CHECK_MS, undefined, { ref: false });
      await afterReading();
      const silent = this.#silent(listenedMs());
      if (silent.length > 0 && !this.#stopped) await this.#ask(silent);
    }
  }

  stop(): void {
    this.#stopped = true;
  }

  /** Connections that have waited for too long. */
  #silent(now: number): Connection[] {
    const silent: Connection[] = [];
    for (const connection of this.server.connections.list()) {
      const { chunks, waits } = connection;
      let seen = this.#seen.get(connection);
      if (seen === undefined) this.#seen.set(connection, (seen = { chunks, since: now, waited: waits, strikes: 0 }));
      if (seen.chunks !== chunks || (waits && !seen.waited)) Object.assign(seen, { chunks, since: now, strikes: 0 });
      seen.waited = waits;
      if (waits && now - seen.since >= this.context.silentMs()) silent.push(connection);
      else if (!waits && now - seen.since >= LISTENER_MS) connection.askForLife();
    }
    return silent;
  }

  async #ask(silent: readonly Connection[]): Promise<void> {
    const lines = await this.server.connections.glance(silent);
    // Bytes that have arrived meanwhile are still in the sockets: they are read first.
    await afterReading();
    for (const connection of silent) {
      const seen = this.#seen.get(connection)!;
      if (connection.ended || connection.chunks !== seen.chunks) continue;
      if (lines === null) seen.strikes = 0;
      else if (!isSilent(lines.get(connection.clientId))) Object.assign(seen, { since: listenedMs(), strikes: 0 });
      else if (++seen.strikes >= STRIKES) {
        this.context.closed(this.server, connection, listenedMs() - seen.since);
        connection.destroy(new Error('the connection does not answer, but the server answers on another one'));
      }
    }
  }
}
