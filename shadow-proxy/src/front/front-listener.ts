/** Accepts clients: on the sequencing thread itself, or on fronts. */
import type { AddressInfo } from 'node:net';
import { prepare } from '../io/client-socket.js';
import { readInto, type Intake } from '../io/intake.js';
import { createTcpServer, type TcpServer } from '../io/sockets.js';
import type { Address } from '../plan/endpoint.js';
import type { Front, FrontEvents } from './front.js';
import { NativeFront } from './native-front.js';
import type { Native } from './native.js';
import { listenAt, newServer, renew, type ServerOptions } from './tcp-server.js';
import { WorkerFront } from './worker-front.js';

export interface FrontListener {
  readonly port: number;
  /** @throws {Error} code `EADDRINUSE` if the address is in use */
  listen(address: Address): Promise<void>;
  renew(options: Pick<ServerOptions, 'tls' | 'maxConnections'>): void;
  /** Takes no new clients; resolves when the last one has left. */
  close(): Promise<void>;
}

/**
 * @param threads number of front threads; 0: clients are served on this thread
 * @param native null: Node's sockets are used
 */
export function newFrontListener(
  threads: number,
  native: Native | null,
  intake: Intake,
  options: ServerOptions,
  events: FrontEvents,
): FrontListener {
  const fronts = (each: () => Front): FrontListener =>
    new ThreadsListener(Array.from({ length: Math.max(1, threads) }, each));
  if (native !== null && options.tls === null)
    return fronts(() => new NativeFront(native, threads > 0, intake, options, events));
  if (threads > 0) return fronts(() => new WorkerFront(intake, options, events));
  return new NodeListener(intake, options, events);
}

class NodeListener implements FrontListener {
  readonly #server: TcpServer;
  #port = 0;

  constructor(intake: Intake, options: ServerOptions, events: FrontEvents) {
    this.#server = newServer(options, {
      ...events,
      connected: (connected) =>
        events.connected((take) => {
          const socket = readInto(intake, connected, take);
          prepare(socket);
          return socket;
        }),
    });
  }

  get port(): number {
    return this.#port;
  }

  async listen({ host, port }: Address): Promise<void> {
    this.#port = await listenAt(this.#server, { host, port });
  }

  renew(options: Pick<ServerOptions, 'tls' | 'maxConnections'>): void {
    renew(this.#server, options);
  }

  close(): Promise<void> {
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}

class ThreadsListener implements FrontListener {
  #port = 0;
  #closing: Promise<void> | undefined;

  constructor(private readonly fronts: readonly Front[]) {}

  get port(): number {
    return this.#port;
  }

  async listen(address: Address): Promise<void> {
    // Checks that the address is free, and resolves its name. Otherwise fronts that share an address would also share
    // it with another process.
    const first = createTcpServer((socket) => socket.destroy());
    this.#port = await listenAt(first, { host: address.host, port: address.port });
    const { address: host, port } = first.address() as AddressInfo;
    if (this.fronts.length === 1) return this.fronts[0].listen({ host, port, first });
    await new Promise((resolve) => first.close(resolve));
    await Promise.all(this.fronts.map((front) => front.listen({ host, port, first: null })));
  }

  renew(options: Pick<ServerOptions, 'tls' | 'maxConnections'>): void {
    for (const front of this.fronts) front.renew(options);
  }

  close(): Promise<void> {
    this.#closing ??= Promise.all(this.fronts.map((front) => front.close())).then(() => undefined);
    return this.#closing;
  }
}
