/** Clocks: monotonic, wall clock, and the time in which sockets were read. */
import { world } from './world.js';

/** Milliseconds of a clock that never jumps: for measurements and deadlines. */
export const monotonicMs = (): number => world.monotonicMs();

/** Milliseconds since 1970 by this host's clock: for times that people read, and for absolute expiry. */
export const unixMs = (): number => world.unixMs();

/** The value of `unixMs` when `monotonicMs` was 0, with fractions. It turns measured times into times for people. */
export const unixMsAtZero = (): number => world.unixMsAtZero();

/** The time of `unixMs`, in ISO 8601. */
export const isoTime = (): string => new Date(world.unixMs()).toISOString();

/**
 * Milliseconds of a monotonic clock that stops while the event loop is busy or the process is stopped. It measures how
 * long a server is silent: while the loop is late, the server's answer may lie unread in the socket.
 */
export const listenedMs = (): number => world.listenedMs();
