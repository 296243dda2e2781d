/** The time. */
import { world } from './world.js';

/** Milliseconds of a clock that never jumps: for all that is measured, and for deadlines. */
export const monotonicMs = (): number => world.monotonicMs();

/** Milliseconds since 1970, as this host's clock says: for what people read, and for absolute expiry. */
export const unixMs = (): number => world.unixMs();

/** What `unixMs` would be when `monotonicMs` was 0, with fractions: what was measured, as a time for people. */
export const unixMsAtZero = (): number => world.unixMsAtZero();

/** As `unixMs`, in ISO 8601. */
export const isoTime = (): string => new Date(world.unixMs()).toISOString();

/**
 * Milliseconds of a monotonic clock that stops while the event loop is busy or the process is stopped. The silence of
 * a server is measured with it: while the loop is late, the answer may lie unread in the socket, and the server is not
 * silent.
 */
export const listenedMs = (): number => world.listenedMs();
