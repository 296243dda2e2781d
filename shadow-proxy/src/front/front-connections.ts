/** The clients of one front, as the sequencing thread sees them: a socket for each, and the link to the front. */
import type { Connect } from '../io/client-socket.js';
import type { Intake } from '../io/intake.js';
import { FrontSocket } from './front-socket.js';
import { Link, type LinkMemory } from './link.js';
import { FROM_FRONT, type Addresses } from './records.js';

export interface ConnectionEvents {
  connected(connect: Connect): void;
  /** A connection beyond `maxConnections` was closed. */
  dropped(): void;
}

export class Connections {
  readonly link: Link;
  readonly #sockets = new Map<number, FrontSocket>();

  constructor(
    memory: LinkMemory,
    /** Wakes the front: its ring has records, or the other ring has room. */
    wake: () => void,
    private readonly intake: Intake,
    private readonly events: ConnectionEvents,
    /** The front has stopped listening, and its last client has left. */
    private readonly over: () => void = () => undefined,
  ) {
    this.link = new Link(
      memory,
      (kind, id, bytes, start, end) => this.#received(kind, id, bytes, start, end),
      wake,
      (callback) => process.nextTick(callback),
    );
  }

  /** The front has ended. */
  close(): void {
    // The last records of the front may be unread.
    this.link.rung();
    for (const socket of this.#sockets.values()) socket.closed();
  }

  #received(kind: number, id: number, bytes: Uint8Array, start: number, end: number): void {
    if (kind !== FROM_FRONT.data) return this.#said(kind, id, bytes, start, end);
    const socket = this.#sockets.get(id);
    // The session has ended: what its client sent meanwhile is not run.
    if (socket === undefined || socket.destroyed) return;
    this.intake.add(bytes, start, end, socket.take);
    socket.received();
  }

  #said(kind: number, id: number, bytes: Uint8Array, start: number, end: number): void {
    // The record is about the front itself.
    if (kind === FROM_FRONT.dropped) return this.events.dropped();
    if (kind === FROM_FRONT.over) return this.over();
    if (kind === FROM_FRONT.opened) return this.#opened(id, Buffer.from(bytes.subarray(start, end)).toString());
    const socket = this.#sockets.get(id);
    if (kind === FROM_FRONT.closed) this.#sockets.delete(id);
    if (socket === undefined || socket.destroyed) return;
    if (kind === FROM_FRONT.ended) socket.emit('end');
    else if (kind === FROM_FRONT.closed) socket.closed();
    else
      socket.sent(
        new DataView(bytes.buffer, bytes.byteOffset + start, 4).getUint32(0, true),
        kind === FROM_FRONT.sentAll,
      );
  }

  #opened(id: number, addresses: string): void {
    const socket = new FrontSocket(this.link, id, JSON.parse(addresses) as Addresses);
    this.#sockets.set(id, socket);
    this.events.connected((take) => {
      socket.take = take;
      return socket;
    });
  }
}
