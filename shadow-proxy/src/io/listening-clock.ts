/**
 * A monotonic clock that stops while the event loop is busy or the process is stopped. The silence of a server
 * is measured with it: while the loop is late, the answer may lie unread in the socket, and the server is not silent.
 */
const TICK_MS = 100;
/** A step may be this long: a loop that is a little late still hears everything. */
const LONGEST_STEP_MS = 250;

let listened = 0;
let tickedAt = 0;
let started = false;

function tick(): void {
  const now = performance.now();
  listened += Math.min(now - tickedAt, LONGEST_STEP_MS);
  tickedAt = now;
}

/** Milliseconds in which this process has read its sockets, since the first call. */
export function listenedMs(): number {
  if (!started) {
    started = true;
    tickedAt = performance.now();
    setInterval(tick, TICK_MS).unref();
  }
  return listened + Math.min(performance.now() - tickedAt, LONGEST_STEP_MS);
}

/**
 * Resolves after what has arrived by now was read. Await it before a server is judged to be silent: a timer that fires
 * behind a late loop runs before the sockets are read.
 */
export const afterReading = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
