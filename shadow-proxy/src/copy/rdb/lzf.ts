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

/** The bytes that `packed` stands for; `length` must be what `inflatedLength` says. */
export function inflate(packed: Buffer, length: number): Buffer {
  const out = Buffer.allocUnsafe(length);
  let end = 0;
  for (let at = 0; at < packed.length;) {
    const control = packed[at++];
    if (control < LITERAL_LIMIT) {
      for (let left = control; left >= 0; left--) out[end++] = packed[at++];
    } else {
      let run = control >> 5;
      if (run === 7) run += packed[at++];
      let from = end - (((control & 31) << 8) + packed[at++] + 1);
      // Byte by byte: a copy may reach into what it is just writing.
      for (let left = run + 2; left > 0; left--) out[end++] = out[from++];
    }
  }
  return out;
}
