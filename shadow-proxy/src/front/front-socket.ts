/** The connection of a client that a front thread owns. */
import { EventEmitter } from 'node:events';
import type { ClientSocket } from '../io/client-socket.js';
import type { Take } from '../io/intake.js';
import { after, clearTimer, type Timer } from '../io/timers.js';
import type { Link, Sender } from './link.js';
import { TO_FRONT, type Addresses } from './records.js';

export class FrontSocket extends EventEmitter implements ClientSocket, Sender {
  readonly remoteAddress: string | undefined;
  readonly remotePort: number | undefined;
  readonly localAddress: string | undefined;
  readonly localPort: number | undefined;
  take: Take = () => undefined;
  queued = 0;
  destroyed = false;
  #ended = false;
  #paused = false;
  /** Whether the front thread knows that the socket is paused. */
  #known = false;
  /** Bytes that were written, and how many of them were sent, modulo 2^32. */
  #written = 0;
  #sent = 0;
  /** Whether the client reads slowly: then the thread reports how much was sent. */
  #owes = false;
  #timer: Timer | undefined;

  constructor(
    private readonly link: Link,
    private readonly id: number,
    { remoteAddress, remotePort, localAddress, localPort }: Addresses,
  ) {
    super();
    this.remoteAddress = remoteAddress;
    this.remotePort = remotePort;
    this.localAddress = localAddress;
    this.localPort = localPort;
  }

  get writable(): boolean {
    return !this.destroyed && !this.#ended;
  }

  /** Bytes in the ring count as sent, as bytes in the kernel do. */
  get writableLength(): number {
    return this.#owes ? (this.#written - this.#sent) >>> 0 : this.queued;
  }

  get writableNeedDrain(): boolean {
    return this.writableLength > 0;
  }

  write(bytes: Buffer): void {
    this.writeRange(bytes, 0, bytes.length);
  }

  writeRange(buffer: Buffer, start: number, end: number): void {
    if (!this.writable) return;
    this.#written = (this.#written + end - start) >>> 0;
    this.link.send(TO_FRONT.write, this.id, buffer, start, end, this);
  }

  cork(): void {
    // Nothing to do: the thread writes once a turn.
  }

  uncork(): void {
    // Nothing to do: `cork` held nothing back.
  }

  /** The thread is informed only if the client sends more. */
  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    if (!this.#known) return;
    this.#known = false;
    this.#say(TO_FRONT.resume);
  }

  end(): void {
    if (!this.writable) return;
    this.#ended = true;
    this.#say(TO_FRONT.end);
  }

  destroySoon(): void {
    if (this.destroyed) return;
    this.#ended = true;
    this.#say(TO_FRONT.destroySoon);
  }

  /** `close` is emitted soon, as by a socket of this thread, without waiting for the other thread. */
  destroy(): void {
    if (this.destroyed) return;
    this.#say(TO_FRONT.destroy);
    this.#end();
    process.nextTick(() => this.emit('close'));
  }

  setTimeout(ms: number): this {
    clearTimer(this.#timer);
    this.#timer = ms > 0 ? after(ms, () => this.emit('timeout')).unref() : undefined;
    return this;
  }

  // ── what the thread reports ───────────────────────────────────────────────────────────────────────────────────────

  /** The client has sent data. */
  received(): void {
    if (!this.#paused || this.#known) return;
    this.#known = true;
    this.#say(TO_FRONT.pause);
  }

  emptied(): void {
    if (!this.#owes) this.emit('drain');
  }

  /** Records how many of the written bytes were sent, modulo 2^32. */
  sent(bytes: number, all: boolean): void {
    this.#sent = bytes;
    this.#owes = !all;
    this.#timer?.refresh();
    if (all) this.emit('drain');
  }

  /** The client's connection is closed. */
  closed(): void {
    if (this.destroyed) return;
    this.#end();
    this.emit('close');
  }

  #end(): void {
    this.destroyed = true;
    clearTimer(this.#timer);
  }

  #say(what: number): void {
    this.link.say(what, this.id, this);
  }
}
