/**
 * Accepts the clients of a shard: opens the address, does TLS, and answers a client beyond the maximum with an error.
 */
import { newFrontListener, type FrontListener } from '../front/front-listener.js';
import type { Native } from '../front/native.js';
import type { Connect } from '../io/client-socket.js';
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

  constructor(
    private readonly listen: ShardPlan['listen'],
    private readonly clients: Clients,
    /** The limits as in the present plan. */
    private readonly limits: () => Pick<Plan['limits'], 'clients' | 'loginMs'>,
    /** Number of front threads. */
    private readonly threads: number,
    /** The module that reads and writes the sockets; null: Node. */
    private readonly native: Native | null,
    /** Whether the proxy acts as a replica of its cluster at this address. */
    private readonly isReplica = false,
  ) {}

  /** Whether the listener was ever opened: then clients may have come. */
  get wasOpened(): boolean {
    return this.#front !== undefined;
  }

  get port(): number {
    return this.#front!.port;
  }

  /** @throws {Error} if the address is in use, and still is at `deadline` (ms of the monotonic clock) */
  async open(deadline: number): Promise<void> {
    const { tls } = this.listen;
    const { closed } = this.clients.limits;
    const options = { tls, maxConnections: this.#maxConnections, handshakeMs: this.limits().loginMs };
    const front = newFrontListener(this.threads, this.native, this.clients.intake, options, {
      connected: (connect) => this.#accept(connect),
      dropped: () => closed.connections++,
      late: () => closed.login++,
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
    return this.#front?.close() ?? Promise.resolve();
  }

  #accept(connect: Connect): void {
    if (this.clients.sessions.size < this.limits().clients) return void accept(this.clients, connect, this.isReplica);
    this.clients.limits.closed.connections++;
    const socket = connect(() => undefined);
    socket.resume();
    socket.write(error('ERR max number of clients reached'));
    socket.end();
    after(REFUSED_MS, () => socket.destroy()).unref();
  }

  /** Connections in a TLS handshake, and clients that are being refused, count, too. */
  get #maxConnections(): number {
    const { clients } = this.limits();
    return this.listen.tls === null ? clients + REFUSED_AT_A_TIME : clients;
  }
}
