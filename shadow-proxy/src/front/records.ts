/**
 * The records that a front and the sequencing thread exchange about a client. `native/front.c` has the same numbers.
 */

/** Records from the front, which owns the connections. */
export const FROM_FRONT = {
  /** A client has connected; its addresses follow as JSON. */
  opened: 1,
  /** Data that the client has sent. */
  data: 2,
  /** The client has closed its sending side. */
  ended: 3,
  /** The client's connection is closed. */
  closed: 4,
  /** u32: how many of the written bytes were sent, modulo 2^32. The client reads slowly. */
  sent: 5,
  /** u32 as for `sent`: all written bytes were sent. */
  sentAll: 6,
  /** A native front has closed a client beyond its limit. */
  dropped: 7,
  /** A native front has stopped listening, and its last client has left. */
  over: 8,
} as const;

/** Records from the sequencing thread. */
export const TO_FRONT = {
  /** Data for the client. */
  write: 1,
  /** The client must not be read any further. */
  pause: 2,
  resume: 3,
  /** Close the sending side after the written data was sent. */
  end: 4,
  /** Close the connection after the written data was sent. */
  destroySoon: 5,
  destroy: 6,
  /** For a native front, u32: maximum number of clients. */
  limit: 7,
  /** For a native front: stop listening. */
  close: 8,
} as const;

/** The addresses of a connection, from `FROM_FRONT.opened`. */
export interface Addresses {
  readonly remoteAddress?: string;
  readonly remotePort?: number;
  readonly localAddress?: string;
  readonly localPort?: number;
}
