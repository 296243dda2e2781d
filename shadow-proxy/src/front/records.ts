/** What a front and the sequencing thread say of a client. `native/front.c` has the same numbers. */

/** From the front, which owns the connections. */
export const FROM_FRONT = {
  /** A client has connected: its addresses, as JSON. */
  opened: 1,
  /** What it has sent. */
  data: 2,
  /** It has closed its side. */
  ended: 3,
  /** Its connection is closed. */
  closed: 4,
  /** u32: how many bytes of what was written are sent, modulo 2^32; it reads slowly. */
  sent: 5,
  /** Likewise, and those are all. */
  sentAll: 6,
  /** Of a native front: a client was one too many, and closed. */
  dropped: 7,
  /** Of a native front: it listens no more, and its last client has left. */
  over: 8,
} as const;

/** From the sequencing thread. */
export const TO_FRONT = {
  /** To be sent to it. */
  write: 1,
  /** It is to be read no further. */
  pause: 2,
  resume: 3,
  /** What was written is sent, and then the end. */
  end: 4,
  /** Likewise, and closed. */
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
