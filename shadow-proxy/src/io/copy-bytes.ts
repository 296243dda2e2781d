/** Up to this number of bytes, a loop is faster than the views that the built-in copy creates. */
const SHORT = 96;

/** Copies `from[start, end)` to `to[at, …)`, which must have room for it. */
export function copyBytes(from: Uint8Array, start: number, end: number, to: Uint8Array, at: number): void {
  if (end - start > SHORT) to.set(from.subarray(start, end), at);
  else for (let i = start; i < end; i++) to[at + i - start] = from[i];
}
