/**
 * Where the clients of a shard connect: the address, TLS, and the client that is one too many, which gets an error.
 */
import { createServer as createTcpServer, type AddressInfo, type Server as NetServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer as createTlsServer, Server as TlsServer } from 'node:tls';
import type { Plan, ShardPlan } from '../plan/plan.js';
import { error } from '../resp/encode.js';
import type { Clients } from '../session/clients.js';
import { accept } from '../session/session.js';

const RETRY_MS = 50;
/** How long a client that is one too many may take to read the error, and how many of them may read it at a time. */
const REFUSED_MS = 1_000;
const REFUSED_AT_A_TIME = 100;

export class Listener {
  #server: NetServer | undefined;

  constructor(
    private readonly listen: ShardPlan['listen'],
    private readonly clients: Clients,
    /** As the plan has them now. */
    private readonly limits: () => Pick<Plan['limits'], 'clients' | 'loginMs'>,
  ) {}

  /** Whether it was opened: clients may have come. */
  get wasOpened(): boolean {
    return this.#server !== undefined;
  }

  get port(): number {
    return (this.#server!.address() as AddressInfo).port;
  }

  /** @throws {Error} when the address is taken, and still is at `deadline` (ms of the monotonic clock) */
  async open(deadline: number): Promise<void> {
    const server = this.#newServer();
    server.maxConnections = this.#maxConnections;
    server.on('drop', () => this.clients.limits.closed.connections++);
    // Node reports a handshake that takes too long, and leaves the socket open.
    server.on('tlsClientError', (problem: NodeJS.ErrnoException, socket: Socket) => {
      if (problem.code === 'ERR_TLS_HANDSHAKE_TIMEOUT') this.clients.limits.closed.login++;
      socket.destroy();
    });
    this.#server = server;
    for (;;) {
      try {
        return await this.#listen(server);
      } catch (problem) {
        if ((problem as NodeJS.ErrnoException).code !== 'EADDRINUSE' || performance.now() > deadline) throw problem;
        await sleep(RETRY_MS);
      }
    }
  }

  /** Takes over the limits and the certificate of a reloaded plan. */
  reload({ tls }: ShardPlan['listen']): void {
    if (this.#server === undefined) return;
    this.#server.maxConnections = this.#maxConnections;
    if (tls !== null && this.#server instanceof TlsServer)
      this.#server.setSecureContext({ cert: tls.cert, key: tls.key, ca: tls.ca });
  }

  /** Takes no new clients; resolves when the last one has left. */
  close(): Promise<void> {
    return new Promise((resolve) => (this.#server === undefined ? resolve() : this.#server.close(() => resolve())));
  }

  #newServer(): NetServer {
    const { tls } = this.listen;
    const onClient = (socket: Socket): void => this.#accept(socket);
    if (!tls) return createTcpServer({ noDelay: true }, onClient);
    return createTlsServer(
      {
        handshakeTimeout: this.limits().loginMs,
        cert: tls.cert,
        key: tls.key,
        ca: tls.ca,
        requestCert: tls.requireClientCert,
        rejectUnauthorized: tls.requireClientCert,
      },
      onClient,
    );
  }

  #accept(socket: Socket): void {
    if (this.clients.sessions.size < this.limits().clients) return void accept(this.clients, socket);
    this.clients.limits.closed.connections++;
    socket.on('error', () => undefined);
    socket.resume().end(error('ERR max number of clients reached'));
    setTimeout(() => socket.destroy(), REFUSED_MS).unref();
  }

  #listen(server: NetServer): Promise<void> {
    const { host, port } = this.listen;
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host, port }, () => {
        server.off('error', reject);
        resolve();
      });
    });
  }

  /** TLS handshakes and clients that are being refused are connections, too. */
  get #maxConnections(): number {
    const { clients } = this.limits();
    return this.listen.tls === null ? clients + REFUSED_AT_A_TIME : clients;
  }
}
