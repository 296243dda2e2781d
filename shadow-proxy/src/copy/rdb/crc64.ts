/**
 * CRC-64 as Redis uses it for DUMP payloads: Jones' polynomial 0xad93d23594c935a9, reflected, starting
 * from 0, nothing added at the end. `123456789` gives e9c6d914c4b8d9ca.
 *
 * The 64 bits live in two unsigned halves, because BigInt is many times slower; eight bytes are taken at
 * a time, each through the table for its distance to the end ("slicing by eight").
 */
export class Crc64 {
  low = 0;
  high = 0;

  update(bytes: Buffer, start: number, end: number): this {
    let { low, high } = this;
    let at = start;
    for (; at + 8 <= end; at += 8) {
      low ^= bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
      high ^= bytes[at + 4] | (bytes[at + 5] << 8) | (bytes[at + 6] << 16) | (bytes[at + 7] << 24);
      const [a, b, c, d] = [
        1792 | (low & 255),
        1536 | ((low >>> 8) & 255),
        1280 | ((low >>> 16) & 255),
        1024 | (low >>> 24),
      ];
      const [e, f, g, h] = [768 | (high & 255), 512 | ((high >>> 8) & 255), 256 | ((high >>> 16) & 255), high >>> 24];
      low = LOW[a] ^ LOW[b] ^ LOW[c] ^ LOW[d] ^ LOW[e] ^ LOW[f] ^ LOW[g] ^ LOW[h];
      high = HIGH[a] ^ HIGH[b] ^ HIGH[c] ^ HIGH[d] ^ HIGH[e] ^ HIGH[f] ^ HIGH[g] ^ HIGH[h];
    }
    for (; at < end; at++) {
      const index = (low ^ bytes[at]) & 255;
      low = ((low >>> 8) | (high << 24)) ^ LOW[index];
      high = (high >>> 8) ^ HIGH[index];
    }
    this.low = low >>> 0;
    this.high = high >>> 0;
    return this;
  }
}

/** The polynomial with its bits reversed. */
const POLYNOMIAL_HIGH = 0x95ac9329;
const POLYNOMIAL_LOW = 0xac4bc9b5;
const LOW = new Uint32Array(8 * 256);
const HIGH = new Uint32Array(8 * 256);

for (let byte = 0; byte < 256; byte++) {
  let [low, high] = [byte, 0];
  for (let bit = 0; bit < 8; bit++) {
    const odd = low & 1;
    low = (low >>> 1) | (high << 31);
    high >>>= 1;
    if (odd) {
      low ^= POLYNOMIAL_LOW;
      high ^= POLYNOMIAL_HIGH;
    }
  }
  LOW[byte] = low;
  HIGH[byte] = high;
}
for (let index = 256; index < LOW.length; index++) {
  const [low, high] = [LOW[index - 256], HIGH[index - 256]];
  LOW[index] = ((low >>> 8) | (high << 24)) ^ LOW[low & 255];
  HIGH[index] = (high >>> 8) ^ HIGH[low & 255];
}
