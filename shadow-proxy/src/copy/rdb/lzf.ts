/**
 * LZF, the compression of strings in RDB. A control byte below 32 announces that many bytes plus one as they
 * are. Any other is a copy of bytes seen before: its upper three bits are the length minus two (7: the next
 * byte adds to it), its lower five bits and the byte after are the distance back, minus one.
 */

const LITERAL_LIMIT = 32;

/**
 * How long `packed` becomes, or -1 when it is not LZF. It allocates nothing, so that the length that a
 * payload claims can be checked before memory is given to it.
 */
export function inflatedLength(packed: Buffer): number {
  let length = 0;
  for (let at = 0; at < packed.length;) {
    const control = packed[at++];
    if (control < LITERAL_LIMIT) {
      at += control + 1;
      length += control + 1;
    } else {
      let run = control >> 5;
      if (run === 7) run += packed[at++] ?? 0;
      const distance = ((control & 31) << 8) + (packed[at++] ?? 0) + 1;
      if (distance > length) return -1;
      length += run + 2;
    }
    if (at > packed.length) return -1;
  }
  return length;
}

/**
 * Writes what `packed[start, end)` stands for to the beginning of `out`, which has room for `length` bytes; whether it
 * is LZF of exactly so many.
 */
export function inflate(packed: Buffer, start: number, end: number, out: Buffer, length: number): boolean {
  let to = 0;
  for (let at = start; at < end;) {
    const control = packed[at++];
    if (control < LITERAL_LIMIT) {
      const stop = to + control + 1;
      if (at + control >= end || stop > length) return false;
      while (to < stop) out[to++] = packed[at++];
    } else {
      let run = control >> 5;
      if (at + (run === 7 ? 1 : 0) >= end) return false;
      if (run === 7) run += packed[at++];
      let from = to - (((control & 31) << 8) + packed[at++] + 1);
      const stop = to + run + 2;
      if (from < 0 || stop > length) return false;
      // Byte by byte: a copy may reach into what it is just writing.
      while (to < stop) out[to++] = out[from++];
    }
  }
  return to === length;
}
