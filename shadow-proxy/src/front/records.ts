/** What a front and the sequencing thread say of a client. `native/front.c` has the same numbers. */

/** From the front, which owns the connections. */
export const FROM_FRONT = {
  /** A client has connected: its addresses, as JSON. */
  opened: 1,
  /** What it has sent. */
  data: 2,
  /** The client has closed its sending side. */
  ended: 3,
  /** The client's connection is closed. */
  closed: 4,
  /** u32: how many bytes of what was written are sent, modulo 2^32; it reads slowly. */
  sent: 5,
  /** u32, as `sent`: all that was written is sent. */
  sentAll: 6,
  /** A native front had one client too many, and closed it. */
  dropped: 7,
  /** A native front does not listen any more, and its last client has left. */
  over: 8,
} as const;

/** From the sequencing thread. */
export const TO_FRONT = {
  /** To be sent to it. */
  write: 1,
  /** The client is not to be read any further. */
  pause: 2,
  resume: 3,
  /** What was written is sent, then the sending side is closed. */
  end: 4,
  /** What was written is sent, then the connection is closed. */
  destroySoon: 5,
  destroy: 6,
  /** To a native front, u32: how many clients it may have. */
  limit: 7,
  /** To a native front: it is to listen no more. */
  close: 8,
} as const;

/** The addresses of a connection, as `FROM_FRONT.opened` has them. */
export interface Addresses {
  readonly remoteAddress?: string;
  readonly remotePort?: number;
  readonly localAddress?: string;
  readonly localPort?: number;
}
