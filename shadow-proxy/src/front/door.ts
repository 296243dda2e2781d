/** Where clients come in: on the sequencing thread itself, or on front threads. */
import { createServer, type Server } from 'node:net';
import { Worker } from 'node:worker_threads';
import { prepare, type Connect } from '../io/client-socket.js';
import { readInto, type Intake } from '../io/intake.js';
import type { Address } from '../plan/endpoint.js';
import { FrontSocket } from './front-socket.js';
import { Link } from './link.js';
import { FROM_FRONT, type Addresses } from './records.js';
import { ringMemory } from './ring.js';
import { listenAt, newServer, renew, type ServerOptions } from './server.js';
import type { Order, Report, ThreadData } from './thread.js';

/** Of each of the two rings of a thread. */
const RING_BYTES = 1 << 20;

export interface DoorEvents {
  connected(connect: Connect): void;
  /** One more than `maxConnections`: it was closed. */
  dropped(): void;
  /** Its TLS handshake took too long: it was closed. */
  late(): void;
}

export interface Door {
  readonly port: number;
  /** @throws {Error} code `EADDRINUSE` when the address is taken */
  listen(address: Address): Promise<void>;
  renew(options: Pick<ServerOptions, 'tls' | 'maxConnections'>): void;
  /** Takes no new clients; resolves when the last one has left. */
  close(): Promise<void>;
}

/** @param threads front threads; 0: the clients are on this one */
export const newDoor = (threads: number, intake: Intake, options: ServerOptions, events: DoorEvents): Door =>
  threads === 0 ? new OwnDoor(intake, options, events) : new FrontDoor(threads, intake, options, events);

class OwnDoor implements Door {
  readonly #server: Server;
  #port = 0;

  constructor(intake: Intake, options: ServerOptions, events: DoorEvents) {
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

class FrontDoor implements Door {
  readonly #threads: readonly FrontThread[];
  #port = 0;
  #closing: Promise<void> | undefined;

  constructor(threads: number, intake: Intake, options: ServerOptions, events: DoorEvents) {
    this.#threads = Array.from({ length: threads }, () => new FrontThread(intake, options, events));
  }

  get port(): number {
    return this.#port;
  }

  async listen({ host, port }: Address): Promise<void> {
    const [only, ...more] = this.#threads;
    if (more.length === 0) {
      this.#port = await only.listen({ host, port }, false);
      return;
    }
    // The threads share the address, and would share it with another process: that it is free is tried first.
    const first = createServer();
    this.#port = await listenAt(first, { host, port });
    await new Promise((resolve) => first.close(resolve));
    await Promise.all(this.#threads.map((thread) => thread.listen({ host, port: this.#port }, true)));
  }

  renew(options: Pick<ServerOptions, 'tls' | 'maxConnections'>): void {
    for (const thread of this.#threads) thread.order({ what: 'renew', server: options });
  }

  close(): Promise<void> {
    this.#closing ??= Promise.all(this.#threads.map((thread) => thread.close())).then(() => undefined);
    return this.#closing;
  }
}

/** A front thread, as the sequencing thread sees it. */
class FrontThread {
  readonly #worker: Worker;
  readonly #link: Link;
  readonly #sockets = new Map<number, FrontSocket>();
  #listening: { resolve(port: number): void; reject(problem: Error): void } | undefined;
  #closed: () => void = () => undefined;

  constructor(
    private readonly intake: Intake,
    server: ServerOptions,
    private readonly events: DoorEvents,
  ) {
    const memory = { out: ringMemory(RING_BYTES), in: ringMemory(RING_BYTES) };
    const data: ThreadData = { memory: { out: memory.in, in: memory.out }, server };
    this.#worker = new Worker(new URL('./thread.js', import.meta.url), { workerData: data });
    this.#link = new Link(
      memory,
      (kind, id, bytes, start, end) => this.#received(kind, id, bytes, start, end),
      () => this.order(null),
      (callback) => process.nextTick(callback),
    );
    this.#worker.on('message', (report: Report) => this.#reported(report));
    // A fault of the program: as on the sequencing thread, it ends the process.
    this.#worker.on('error', (problem) => {
      throw problem;
    });
    this.#link.open();
  }

  order(order: Order): void {
    this.#worker.postMessage(order);
  }

  /** @returns the port. @param shared other threads listen there, too */
  listen({ host, port }: Address, shared: boolean): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#listening = { resolve, reject };
      this.order({ what: 'listen', host, port, shared });
    });
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#closed = resolve;
      this.order({ what: 'close' });
    });
    await this.#worker.terminate();
    // What it sent last may not be read yet.
    this.#link.rung();
    for (const socket of this.#sockets.values()) socket.closed();
  }

  #reported(report: Report): void {
    if (report === null) this.#link.rung();
    else if (report.what === 'listening') this.#listening?.resolve(report.port);
    else if (report.what === 'failed')
      this.#listening?.reject(Object.assign(new Error(report.message), { code: report.code }));
    else if (report.what === 'closed') this.#closed();
    else this.events[report.what]();
  }

  #received(kind: number, id: number, bytes: Uint8Array, start: number, end: number): void {
    const socket = this.#sockets.get(id);
    if (kind === FROM_FRONT.opened) return this.#opened(id, Buffer.from(bytes.subarray(start, end)).toString());
    if (socket === undefined) return;
    if (kind === FROM_FRONT.closed) this.#sockets.delete(id);
    // The session has left: what its client sent meanwhile is not run.
    if (socket.destroyed) return;
    if (kind === FROM_FRONT.data) {
      this.intake.add(bytes, start, end, socket.take);
      socket.received();
    } else if (kind === FROM_FRONT.ended) socket.emit('end');
    else if (kind === FROM_FRONT.closed) socket.closed();
    else
      socket.sent(
        new DataView(bytes.buffer, bytes.byteOffset + start, 4).getUint32(0, true),
        kind === FROM_FRONT.sentAll,
      );
  }

  #opened(id: number, addresses: string): void {
    const socket = new FrontSocket(this.#link, id, JSON.parse(addresses) as Addresses);
    this.#sockets.set(id, socket);
    this.events.connected((take) => {
      socket.take = take;
      return socket;
    });
  }
}
