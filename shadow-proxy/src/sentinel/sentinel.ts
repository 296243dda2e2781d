/**
 * The address at which the process answers as a Sentinel of Redis. Clients that are configured with Sentinels ask it
 * which proxy has a shard, and get an event of each takeover. It is not on the way of any command on data.
 *
 *   lease/ ── looks ──▶ Masters ── events ──▶ subscribers
 *                          ▲
 *   client ── bytes ──▶ RequestParser ──▶ answer ── reply ──▶ client
 *
 * Room: sentinel: the Sentinel that clients ask for the proxy that serves.
 * Called by: shard.
 * Calls: text, io, resp, route, plan, front, lease, session.
 */
import { newServer, listenAt, renew } from '../front/tcp-server.js';
import { prepare } from '../io/client-socket.js';
import { monotonicMs } from '../io/clock.js';
import type { TcpServer, TcpSocket } from '../io/sockets.js';
import { after } from '../io/timers.js';
import { formatAddress } from '../plan/endpoint.js';
import type { Plan, SentinelPlan } from '../plan/plan.js';
import { error } from '../resp/encode.js';
import { RequestParser } from '../resp/request.js';
import { ProtocolError } from '../resp/frame-scanner.js';
import { FailedLogins } from '../session/failed-logins.js';
import { SentinelClient } from './client.js';
import { answer, type Surroundings } from './sentinel-commands.js';
import { Masters } from './masters.js';

/** Longest argument, and most arguments, of a command; most bytes of one that is not whole yet. */
const MAX_ARGUMENT = 16 * 1024;
const MAX_ARGUMENTS = 1_024;
const MAX_HELD = 256 * 1024;
/** Most bytes that wait for a client that does not read. */
const MAX_UNREAD = 1024 * 1024;
/** How long a client beyond the maximum may take to read the error, in ms. */
const REFUSED_MS = 1_000;

/** The address cannot be opened. */
export class SentinelError extends Error {
  override readonly name = 'SentinelError';
  readonly code = 'listen';
}

export class Sentinel {
  readonly masters: Masters;
  readonly #sessions = new Set<SentinelSession>();
  readonly #server: TcpServer;
  readonly #failed = new FailedLogins();
  readonly #startedAt = monotonicMs();
  #lastId = 0;
  #port = 0;

  constructor(
    private plan: SentinelPlan,
    private limits: Plan['limits'],
    migration: string,
  ) {
    this.masters = new Masters(migration, plan, (channel, message) => {
      for (const session of this.#sessions) session.publish(channel, message);
    });
    const { clients: maxConnections, loginMs: handshakeMs } = limits;
    this.#server = newServer(
      // One more, so that a client beyond the maximum gets an error.
      { tls: plan.listen.tls, proxyProtocol: null, maxConnections: maxConnections + 1, handshakeMs },
      {
        connected: (socket) => this.#accept(socket),
        dropped: () => undefined,
        late: () => undefined,
        refused: () => undefined,
      },
    );
  }

  /** Number of clients that are connected. */
  get clients(): number {
    return this.#sessions.size;
  }

  /** May be called again. @throws {SentinelError} if the address cannot be opened */
  async open(): Promise<void> {
    const { listen } = this.plan;
    try {
      this.#port = await listenAt(this.#server, listen);
    } catch (problem) {
      const { code, message } = problem as NodeJS.ErrnoException;
      const why = code === 'EADDRINUSE' ? 'is taken' : `cannot be opened: ${message}`;
      throw new SentinelError(
        `the Sentinel's address ${formatAddress(listen)} ${why}: set another sentinel.listen (each process needs its own)`,
      );
    }
  }

  get port(): number {
    return this.#port;
  }

  /** Takes over the certificate, the password and the limits of a reloaded plan. */
  reload({ limits }: Plan, plan: SentinelPlan): void {
    this.plan = plan;
    this.limits = limits;
    renew(this.#server, { tls: plan.listen.tls, maxConnections: limits.clients + 1 });
  }

  /** Closes the address and all clients. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const session of this.#sessions) session.destroy();
    await closed;
  }

  #accept(socket: TcpSocket): void {
    prepare(socket);
    if (this.#sessions.size >= this.limits.clients) {
      socket.resume();
      socket.end(error('ERR max number of clients reached'));
      after(REFUSED_MS, () => socket.destroy()).unref();
      return;
    }
    const around: Surroundings = {
      masters: this.masters,
      login: () => this.plan,
      clients: () => this.clients,
      maxClients: this.limits.clients,
      port: this.#port,
      startedAt: this.#startedAt,
    };
    const session = new SentinelSession(new SentinelClient(++this.#lastId), socket, around, this.#failed);
    this.#sessions.add(session);
    socket.on('close', () => this.#sessions.delete(session));
    after(this.limits.loginMs, () => session.loginIsLate()).unref();
  }
}

/** The connection of a client. */
class SentinelSession {
  readonly #parser = new RequestParser();
  /** Whether the answer to a wrong password waits, and with it all that the client has sent after it. */
  #isLate = false;

  constructor(
    private readonly client: SentinelClient,
    private readonly socket: TcpSocket,
    private readonly around: Surroundings,
    private readonly failed: FailedLogins,
  ) {
    this.#parser.maxBulk = MAX_ARGUMENT;
    this.#parser.maxArguments = MAX_ARGUMENTS;
    socket.on('data', (chunk: Buffer) => {
      this.#parser.feed(chunk);
      this.#run();
    });
    socket.on('end', () => socket.end());
  }

  get #mustLogIn(): boolean {
    return this.around.login().password !== null && !this.client.isLoggedIn;
  }

  publish(channel: string, message: string): void {
    if (this.client.subscriptions > 0 && !this.#mustLogIn) this.#write(this.client.messages(channel, message));
  }

  loginIsLate(): void {
    if (this.#mustLogIn) this.destroy();
  }

  destroy(): void {
    this.socket.destroy();
  }

  #run(): void {
    const parser = this.#parser;
    try {
      while (!this.#isLate && !this.socket.destroyed) {
        parser.unauthenticated = this.#mustLogIn;
        if (!parser.next()) break;
        this.#answer();
      }
    } catch (problem) {
      if (!(problem instanceof ProtocolError)) throw problem;
      this.socket.end(problem.toReply());
      this.socket.destroySoon();
    }
    if (parser.held > MAX_HELD) this.destroy();
  }

  #answer(): void {
    const { frame, argStart, argEnd, argc } = this.#parser;
    const args = Array.from({ length: argc }, (_, i) => frame.subarray(argStart[i], argEnd[i]));
    const reply = answer({ args, client: this.client, around: this.around });
    if (!reply.subarray(0, WRONGPASS.length).equals(WRONGPASS)) return this.#write(reply);
    const lateMs = this.failed.failed(this.socket.remoteAddress ?? '', '');
    if (lateMs === 0) return this.#write(reply);
    this.#isLate = true;
    this.socket.pause();
    after(lateMs, () => {
      this.#isLate = false;
      this.#write(reply);
      this.socket.resume();
      this.#run();
    }).unref();
  }

  #write(bytes: Buffer): void {
    if (bytes.length === 0 || this.socket.destroyed) return;
    this.socket.write(bytes);
    if (this.socket.writableLength > MAX_UNREAD) this.destroy();
  }
}

const WRONGPASS = Buffer.from('-WRONGPASS ');
