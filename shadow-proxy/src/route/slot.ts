/**
 * The hash slot of a key: CRC-16/XMODEM of the key, or of its hash tag, modulo 16384.
 * Source: Redis cluster specification, "Keys distribution model".
 */
const TABLE = new Uint16Array(256);
for (let byte = 0; byte < 256; byte++) {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  TABLE[byte] = crc & 0xffff;
}

export const SLOTS = 16384;
const [OPEN, CLOSE] = [123, 125];

/** The slot, 0 to 16383, of the key `buffer[start, end)`. */
export function hashSlot(buffer: Buffer, start: number, end: number): number {
  let from = start;
  let to = end;
  for (let i = start; i < end; i++) {
    if (buffer[i] !== OPEN) continue;
    let close = i + 1;
    while (close < end && buffer[close] !== CLOSE) close++;
    if (close < end && close > i + 1) {
      from = i + 1;
      to = close;
    }
    break;
  }
  let crc = 0;
  for (let i = from; i < to; i++) crc = ((crc << 8) & 0xffff) ^ TABLE[((crc >> 8) ^ buffer[i]) & 0xff];
  return crc % SLOTS;
}

/**
 * The smallest number whose text has this slot. It tries about 16,384 numbers on average, so it is not for a hot path.
 */
export function tagOf(slot: number): number {
  for (let tag = 0; ; tag++) {
    const text = Buffer.from(String(tag));
    if (hashSlot(text, 0, text.length) === slot) return tag;
  }
}
