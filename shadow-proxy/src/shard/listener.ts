/**
 * Accepts the clients of a shard: opens the address, reads PROXY headers, does TLS, and answers a client beyond the
 * maximum with an error.
 */
import type { Logger } from 'pino';
import { newFrontListener, type FrontListener } from '../front/front-listener.js';
import type { Native } from '../front/native.js';
import { ProxyDoor } from '../front/proxy-door.js';
import type { HeaderProblem } from '../front/proxy-header.js';
import type { ClientSocket, Connect } from '../io/client-socket.js';
import { monotonicMs } from '../io/clock.js';
import { createTcpServer } from '../io/sockets.js';
import { after, sleep } from '../io/timers.js';
import type { Plan, ShardPlan } from '../plan/plan.js';
import { error } from '../resp/encode.js';
import type { Clients } from '../session/clients.js';
import { accept } from '../session/session.js';

const RETRY_MS = 50;
/**
 * How long a client beyond the maximum may take to read the error, in ms, and how many such clients there may be at a
 * time.
 */
const REFUSED_MS = 1_000;
const REFUSED_AT_A_TIME = 100;
/** A problem with PROXY headers is logged this often, in ms. */
const LOG_MS = 60_000;

const PROBLEMS: Readonly<Record<HeaderProblem, string>> = {
  missing: 'the connection does not begin with a PROXY header, which proxyProtocol of the plan requires',
  malformed: 'the PROXY header is malformed',
  oversized: 'the PROXY header is too long',
  late: 'the PROXY header did not arrive within limits.loginMs of the plan',
  cut: 'the connection ended within the PROXY header',
  outside:
    'the address is not in proxyProtocol.from of the plan: only load balancers may connect to send PROXY headers',
};

/** Why clients cannot connect to the address now; null if it is free. */
export function whyTaken({ host, port, label }: ShardPlan['listen']): Promise<Error | null> {
  const server = createTcpServer((client) => client.destroy());
  return new Promise((resolve) => {
    server.once('error', ({ message }: Error) => resolve(new Error(`${label} cannot be opened: ${message}`)));
    server.listen({ host, port }, () => server.close(() => resolve(null)));
  });
}

export class Listener {
  #front: FrontListener | undefined;
  readonly #door: ProxyDoor | null;
  #isClosed = false;
  /** When each problem was logged last, in ms of the monotonic clock, and how many connections had it since. */
  readonly #logged = new Map<HeaderProblem, { at: number; since: number }>();

  constructor(
    private readonly listen: ShardPlan['listen'],
    private readonly clients: Clients,
    /** The limits as in the present plan. */
    private readonly limits: () => Pick<Plan['limits'], 'clients' | 'loginMs'>,
    /** Number of front threads. */
    private readonly threads: number,
    /** The module that reads and writes the sockets; null: Node. */
    private readonly native: Native | null,
    private readonly logger: Logger,
    /** Whether the proxy acts as a replica of its cluster at this address. */
    private readonly isReplica = false,
  ) {
    this.#door =
      listen.proxyProtocol === null || listen.tls !== null
        ? null
        : new ProxyDoor(
            listen.proxyProtocol,
            () => this.limits().loginMs,
            (socket, problem, from) => this.#refuse(socket, problem, from),
          );
  }

  /** Whether the listener was ever opened: then clients may have come. */
  get wasOpened(): boolean {
    return this.#front !== undefined;
  }

  get port(): number {
    return this.#front!.port;
  }

  /** @throws {Error} if the address is in use, and still is at `deadline` (ms of the monotonic clock) */
  async open(deadline: number): Promise<void> {
    const { tls, proxyProtocol } = this.listen;
    const { closed } = this.clients.limits;
    const handshakeMs = this.limits().loginMs;
    const options = { tls, proxyProtocol, maxConnections: this.#maxConnections, handshakeMs };
    const front = newFrontListener(this.threads, this.native, this.clients.intake, options, {
      connected: (connect) => {
        // A front thread has accepted it before it stopped.
        if (this.#isClosed) connect(() => undefined).destroy();
        else if (this.#door === null) this.#accept(connect);
        else this.#door.enter(connect, (admitted) => this.#accept(admitted));
      },
      dropped: () => closed.connections++,
      late: () => closed.login++,
      refused: (problem, from) => this.#note(problem, from),
    });
    this.#front = front;
    for (;;) {
      try {
        return await front.listen(this.listen);
      } catch (problem) {
        if ((problem as NodeJS.ErrnoException).code !== 'EADDRINUSE' || monotonicMs() > deadline) throw problem;
        await sleep(RETRY_MS);
      }
    }
  }

  /** Takes over the limits and the certificate of a reloaded plan. */
  reload({ tls }: ShardPlan['listen']): void {
    this.#front?.renew({ tls, maxConnections: this.#maxConnections });
  }

  /** Takes no new clients; resolves when the last one has left. */
  close(): Promise<void> {
    this.#isClosed = true;
    this.#door?.close();
    return this.#front?.close() ?? Promise.resolve();
  }

  #accept(connect: Connect): void {
    if (this.clients.sessions.size < this.limits().clients) return void accept(this.clients, connect, this.isReplica);
    this.clients.limits.closed.connections++;
    answerAndClose(
      connect(() => undefined),
      'ERR max number of clients reached',
    );
  }

  #refuse(socket: ClientSocket, problem: HeaderProblem, from: string): void {
    this.#note(problem, from);
    answerAndClose(socket, `ERR shadow-proxy: ${PROBLEMS[problem]}`);
  }

  #note(problem: HeaderProblem, from: string): void {
    this.clients.limits.closed.header++;
    const now = monotonicMs();
    const logged = this.#logged.get(problem);
    if (logged !== undefined && now - logged.at < LOG_MS) return void logged.since++;
    this.#logged.set(problem, { at: now, since: 0 });
    const { label } = this.listen;
    this.logger.warn(
      { address: from, listen: label, others: logged?.since ?? 0 },
      `a connection was closed: ${PROBLEMS[problem]}`,
    );
  }

  /** Connections in a TLS handshake, and clients that are being refused, count, too. */
  get #maxConnections(): number {
    const { clients } = this.limits();
    return this.listen.tls === null ? clients + REFUSED_AT_A_TIME : clients;
  }
}

/** Answers a client that is not admitted, and closes its connection. */
function answerAndClose(socket: ClientSocket, message: string): void {
  if (socket.destroyed) return;
  socket.resume();
  socket.write(error(message));
  socket.end();
  after(REFUSED_MS, () => socket.destroy()).unref();
}
