/**
 * A front thread: accepts clients, reads and writes their sockets, and does TLS. Data from clients goes unchanged to
 * the sequencing thread, which sends the data for clients.
 *
 *   socket ─▶ ring ─▶ session         session ─▶ ring ─▶ outbox ─▶ socket, once a turn
 */
import { parentPort, workerData } from 'node:worker_threads';
import { prepare } from '../io/client-socket.js';
import { Intake, readEach } from '../io/intake.js';
import { Outbox } from '../io/outbox.js';
import type { TcpSocket } from '../io/sockets.js';
import { clearTimer, every, nextTurn, type Timer } from '../io/timers.js';
import { Turn, type Flushable } from '../io/turn.js';
import { Link, type LinkMemory, type Sender } from './link.js';
import type { HeaderProblem } from './proxy-header.js';
import { FROM_FRONT, TO_FRONT, type Addresses } from './records.js';
import { listenAt, newServer, renew, type ServerOptions } from './tcp-server.js';

/** A message to the thread; `null`: there are new records in the ring. */
export type FrontRequest =
  | null
  | { readonly what: 'listen'; readonly host: string; readonly port: number; readonly shared: boolean }
  | { readonly what: 'renew'; readonly server: Pick<ServerOptions, 'tls' | 'maxConnections'> }
  | { readonly what: 'close' };

/** A message from the thread; `null`: there are new records in the ring. */
export type Report =
  | null
  | { readonly what: 'listening'; readonly port: number }
  | { readonly what: 'failed'; readonly code: string | undefined; readonly message: string }
  | { readonly what: 'dropped' | 'late' | 'closed' }
  | { readonly what: 'refused'; readonly problem: HeaderProblem; readonly from: string };

export interface ThreadData {
  readonly memory: LinkMemory;
  readonly server: ServerOptions;
}

/** How often to report how much a slow client was sent, in ms. */
const REPORT_MS = 100;

const { memory, server: options } = workerData as ThreadData;
const port = parentPort!;
const report = (what: Report): void => port.postMessage(what);

const turn = new Turn();
const intake = new Intake();
const clients = new Map<number, Client>();
/** Clients that read slowly. */
const slow = new Set<Client>();
/** Clients that are not read because the sequencing thread is behind. */
const ahead = new Set<Client>();
const number = Buffer.alloc(4);
let lastId = 0;
let reporting: Timer | undefined;

class Client implements Flushable, Sender {
  marked = false;
  queued = 0;
  /** Whether the sequencing thread has paused the client. */
  paused = false;
  readonly socket: TcpSocket;
  readonly #outbox: Outbox;
  /** Modulo 2^32. */
  #written = 0;
  #reported = 0;

  constructor(
    connected: TcpSocket,
    readonly id: number,
  ) {
    const { remoteAddress, remotePort, localAddress, localPort } = connected;
    const addresses: Addresses = { remoteAddress, remotePort, localAddress, localPort };
    const said = Buffer.from(JSON.stringify(addresses));
    link.send(FROM_FRONT.opened, id, said, 0, said.length, this);
    const socket = readEach(connected, (bytes, length) => {
      link.send(FROM_FRONT.data, id, bytes, 0, length, this);
      if (link.isFull) {
        ahead.add(this);
        socket.pause();
      }
    });
    this.socket = socket;
    this.#outbox = new Outbox(turn, socket);
    prepare(socket);
    socket.on('end', () => link.say(FROM_FRONT.ended, id, this));
    socket.on('drain', () => this.report());
    socket.on('close', () => {
      clients.delete(id);
      this.#keepsUp();
      ahead.delete(this);
      link.say(FROM_FRONT.closed, id, this);
    });
  }

  emptied(): void {
    // It is read again when nothing waits for room: see `drained`.
  }

  write(buffer: Buffer, start: number, end: number): void {
    this.#written = (this.#written + end - start) >>> 0;
    this.#outbox.add(buffer, start, end);
    turn.mark(this);
  }

  /** Called after its outbox was flushed. */
  flush(): void {
    if (this.#outbox.bytes === 0 || slow.has(this)) return;
    slow.add(this);
    reporting ??= every(REPORT_MS, () => slow.forEach((each) => each.report())).unref();
    this.#reported = (this.#written - this.#outbox.bytes) >>> 0;
    this.#say(FROM_FRONT.sent);
  }

  /** Reports how many of the written bytes were sent. */
  report(): void {
    if (!slow.has(this)) return;
    const left = this.#outbox.bytes;
    const sent = (this.#written - left) >>> 0;
    if (left > 0 && sent === this.#reported) return;
    this.#reported = sent;
    this.#say(left > 0 ? FROM_FRONT.sent : FROM_FRONT.sentAll);
    if (left === 0) this.#keepsUp();
  }

  /** Reads on if both threads allow it. */
  readOn(): void {
    if (!this.paused && !ahead.has(this)) this.socket.resume();
  }

  end(): void {
    this.#outbox.flush();
    this.socket.end();
  }

  destroySoon(): void {
    this.#outbox.flush();
    this.socket.destroySoon();
  }

  /** The client does not read slowly, or no longer does. */
  #keepsUp(): void {
    slow.delete(this);
    if (slow.size > 0) return;
    clearTimer(reporting);
    reporting = undefined;
  }

  #say(kind: number): void {
    number.writeUInt32LE(this.#reported);
    link.send(kind, this.id, number, 0, 4, this);
  }
}

/** The client to which the present bytes belong. */
let reader: Client | undefined;
const write = (buffer: Buffer, start: number, end: number): void => reader!.write(buffer, start, end);

const link = new Link(
  memory,
  (kind, id, bytes, start, end) => {
    const client = clients.get(id);
    // The client was closed meanwhile.
    if (client === undefined) return;
    if (kind === TO_FRONT.write) {
      reader = client;
      intake.add(bytes, start, end, write);
    } else if (kind === TO_FRONT.pause) {
      client.paused = true;
      client.socket.pause();
    } else if (kind === TO_FRONT.resume) {
      client.paused = false;
      client.readOn();
    } else if (kind === TO_FRONT.end) client.end();
    else if (kind === TO_FRONT.destroySoon) client.destroySoon();
    else if (kind === TO_FRONT.destroy) client.socket.destroy();
  },
  () => report(null),
  (callback) => nextTurn(callback),
  () => {
    const waited = [...ahead];
    ahead.clear();
    for (const client of waited) client.readOn();
  },
);

const server = newServer(options, {
  connected: (socket) => {
    const client = new Client(socket, ++lastId);
    clients.set(client.id, client);
  },
  dropped: () => report({ what: 'dropped' }),
  late: () => report({ what: 'late' }),
  refused: (problem, from) => report({ what: 'refused', problem, from }),
});

port.on('message', (request: FrontRequest) => {
  if (request === null) link.rung();
  else if (request.what === 'listen')
    listenAt(server, { host: request.host, port: request.port, reusePort: request.shared }).then(
      (at) => report({ what: 'listening', port: at }),
      ({ code, message }: NodeJS.ErrnoException) => report({ what: 'failed', code, message }),
    );
  else if (request.what === 'renew') renew(server, request.server);
  else server.close(() => report({ what: 'closed' }));
});
link.open();
