/**
 * One thread's end of two rings, one for each direction, and of the bell between both threads. Records for which the
 * ring has no room wait here, in order.
 *
 * While there are records to take, they are taken at the end of each turn, without a bell.
 *
 * Room: front: clients' connections in threads of their own.
 * Called by: sentinel, shard.
 * Calls: io, plan.
 */
import { nextTurn } from '../io/timers.js';
import { MOST, RingReader, RingWriter, type ReceiveRecord } from './shared-ring.js';

export interface LinkMemory {
  /** The outgoing ring. */
  readonly out: ArrayBufferLike;
  readonly in: ArrayBufferLike;
}

/** A part of the program that sends through a link. */
export interface Sender {
  /** Bytes that wait for room. */
  queued: number;
  /** Called when all waiting bytes have found room. */
  emptied(): void;
}

interface Waiting {
  readonly kind: number;
  readonly id: number;
  readonly bytes: Uint8Array;
  readonly sender: Sender;
}

const NOTHING = new Uint8Array(0);

export class Link {
  readonly #out: RingWriter;
  readonly #in: RingReader;
  #queue: Waiting[] = [];
  #ringing = false;

  constructor(
    memory: LinkMemory,
    private readonly received: ReceiveRecord,
    /** Rings the other thread's bell; that thread calls `rung`. */
    private readonly ring: () => void,
    /** Calls back when this thread has sent everything at hand, so that one bell is enough. */
    private readonly soon: (callback: () => void) => void,
    /** Called when nothing waits for room any more. */
    private readonly drained: () => void = () => undefined,
  ) {
    this.#out = new RingWriter(memory.out);
    this.#in = new RingReader(memory.in);
  }

  /** Call it once both ends exist. */
  open(): void {
    this.#take();
  }

  get isFull(): boolean {
    return this.#queue.length > 0;
  }

  /** Sends a record without bytes. */
  say(kind: number, id: number, sender: Sender): void {
    this.#put(kind, id, NOTHING, 0, 0, sender);
  }

  /** Sends `from[start, end)`, which may change afterwards. Long data is split into several records. */
  send(kind: number, id: number, from: Uint8Array, start: number, end: number, sender: Sender): void {
    for (let at = start; at < end; at += MOST) this.#put(kind, id, from, at, Math.min(at + MOST, end), sender);
  }

  /** The other thread has rung: there are records, or there is room again. */
  readonly rung = (): void => {
    this.#sendWaiting();
    this.#take();
  };

  #put(kind: number, id: number, from: Uint8Array, start: number, end: number, sender: Sender): void {
    if (this.#queue.length === 0 && this.#out.put(kind, id, from, start, end)) {
      this.#ringSoon();
      return;
    }
    sender.queued += end - start;
    // A copy is needed, and `Buffer.slice` does not make one.
    this.#queue.push({ kind, id, bytes: Uint8Array.prototype.slice.call(from, start, end), sender });
    if (this.#queue.length === 1 && !this.#out.waits()) this.#sendWaiting();
  }

  #ringSoon(): void {
    if (this.#ringing) return;
    this.#ringing = true;
    this.soon(this.#ringNow);
  }

  readonly #ringNow = (): void => {
    this.#ringing = false;
    if (this.#out.wakes()) this.ring();
  };

  #sendWaiting(): void {
    if (this.#queue.length === 0) return;
    let sent = 0;
    do {
      for (; sent < this.#queue.length; sent++) {
        const { kind, id, bytes, sender } = this.#queue[sent];
        if (!this.#out.put(kind, id, bytes, 0, bytes.length)) break;
        sender.queued -= bytes.length;
        if (sender.queued === 0) sender.emptied();
      }
    } while (sent < this.#queue.length && !this.#out.waits());
    this.#queue = this.#queue.slice(sent);
    if (this.#out.wakes()) this.ring();
    if (this.#queue.length === 0) this.drained();
  }

  readonly #take = (): void => {
    do {
      if (this.#in.take(this.received)) {
        if (this.#in.frees()) this.ring();
        nextTurn(this.#take);
        return;
      }
    } while (!this.#in.sleeps());
  };
}
