/** Sockets and listeners of the product, over the simulated network. */
import { EventEmitter } from 'node:events';
import { Duplex } from 'node:stream';
import type { ListenOptions, TcpServer, TcpSocket } from '../../../shadow-proxy/src/io/world.js';
import { failure, type End, type Network } from './network.js';
import type { Event } from './events.js';
import type { Process } from './process.js';

export class Socket extends Duplex implements TcpSocket {
  bytesRead = 0;
  connecting = false;
  #end!: End;
  #held: (() => void) | null = null;
  #idle: Event | null = null;
  #idleMs = 0;
  #activeAt = 0;

  constructor(
    private readonly process: Process,
    private readonly network: Network,
  ) {
    // Half-open only where the product asks for it, as with Node's.
    super({ allowHalfOpen: false, readableHighWaterMark: 64 * 1024, writableHighWaterMark: 64 * 1024 });
  }

  /** Uses the end of a connection. */
  attach(end: End): this {
    this.#end = end;
    this.process.sockets.add(this);
    end.received = (bytes) => {
      this.bytesRead += bytes.length;
      this.#active();
      if (!this.push(bytes)) end.pause();
    };
    end.ended = () => this.push(null);
    end.closed = (problem) => (problem === null ? undefined : this.destroy(problem));
    end.drained = () => this.#release();
    return this;
  }

  connected(): void {
    this.connecting = false;
    this.#release();
    this.emit('connect');
  }

  get remoteAddress(): string | undefined {
    return this.destroyed ? undefined : this.#end.remote.host;
  }

  get remotePort(): number | undefined {
    return this.destroyed ? undefined : this.#end.remote.port;
  }

  get localAddress(): string {
    return this.#end.local.host;
  }

  get localPort(): number {
    return this.#end.local.port;
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  setTimeout(ms: number): this {
    this.#idleMs = ms;
    this.#stopIdle();
    this.#active();
    return this;
  }

  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once('finish', () => this.destroy());
  }

  override _read(): void {
    this.#end.resume();
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#active();
    if (this.connecting) {
      this.#held = () => this._write(bytes, _encoding, done);
      return;
    }
    if (this.#end.send(Buffer.from(bytes))) done();
    else this.#held = done;
  }

  override _final(done: () => void): void {
    this.#end.finish();
    done();
  }

  override _destroy(problem: Error | null, done: (problem: Error | null) => void): void {
    this.#stopIdle();
    this.process.sockets.delete(this);
    this.#end.close();
    done(problem);
  }

  #release(): void {
    const held = this.#held;
    this.#held = null;
    this.#active();
    held?.();
  }

  #active(): void {
    if (this.#idleMs === 0) return;
    this.#activeAt = this.network.events.now;
    this.#idle ??= this.network.events.after(this.#idleMs, this.process, this.#lookIdle);
  }

  /** One event for all that was sent and read meanwhile. */
  readonly #lookIdle = (): void => {
    const { events } = this.network;
    const left = this.#activeAt + this.#idleMs - events.now;
    this.#idle = left > 0 ? events.after(left, this.process, this.#lookIdle) : null;
    if (left <= 0) this.emit('timeout');
  };

  #stopIdle(): void {
    if (this.#idle !== null) this.network.events.cancel(this.#idle);
    this.#idle = null;
  }
}

export class Server extends EventEmitter implements TcpServer {
  maxConnections = Infinity;
  listening = false;
  readonly #sockets = new Set<Socket>();
  #port = 0;
  #host = '';
  #closed: (() => void)[] = [];

  constructor(
    private readonly process: Process,
    private readonly network: Network,
    connected: (socket: TcpSocket) => void,
  ) {
    super();
    this.on('connection', connected);
  }

  listen({ host, port }: ListenOptions, listening?: () => void): this {
    if (listening !== undefined) this.once('listening', listening);
    const { events } = this.network;
    try {
      this.#port = this.network.listen({ host, port, owner: this.process, accept: (end) => this.#accept(end) });
      this.#host = host;
      this.listening = true;
      events.after(0, this.process, () => this.emit('listening'));
    } catch (problem) {
      events.after(0, this.process, () => this.emit('error', problem));
    }
    return this;
  }

  address(): unknown {
    return this.listening ? { address: this.#host, port: this.#port, family: 'IPv4' } : null;
  }

  close(closed?: (problem?: Error) => void): this {
    if (!this.listening) {
      const problem = Object.assign(new Error('Server is not running.'), { code: 'ERR_SERVER_NOT_RUNNING' });
      this.network.events.after(0, this.process, () => closed?.(problem));
      return this;
    }
    this.listening = false;
    this.network.unlisten({ host: this.#host, port: this.#port });
    if (closed !== undefined) this.#closed.push(closed);
    this.#closeIfEmpty();
    return this;
  }

  #accept(end: End): void {
    // The system resets what a listener that was closed has not accepted.
    if (!this.listening) return end.close(true);
    if (this.#sockets.size >= this.maxConnections) {
      end.close();
      this.emit('drop', {});
      return;
    }
    const socket = new Socket(this.process, this.network).attach(end);
    this.#sockets.add(socket);
    socket.on('close', () => {
      this.#sockets.delete(socket);
      this.#closeIfEmpty();
    });
    this.emit('connection', socket);
  }

  #closeIfEmpty(): void {
    if (this.listening || this.#sockets.size > 0) return;
    for (const closed of this.#closed.splice(0)) this.network.events.after(0, this.process, closed);
  }
}

export function connect(
  process: Process,
  network: Network,
  to: { readonly host: string; readonly port: number },
): Socket {
  const socket = new Socket(process, network);
  socket.connecting = true;
  const { address } = process.host;
  if (!/^[\d.]+$/.test(to.host)) throw failure('getaddrinfo', 'ENOTFOUND', to);
  return socket.attach(network.connect(process, address, to, () => socket.connected()));
}
