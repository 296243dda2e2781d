/** CRC-32, as in zlib and PNG, to detect damage of files. */
import * as zlib from 'node:zlib';

const TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});

/** Node has it from 20.15 on. One call costs as much as this number of bytes in the loop below. */
const native = (zlib as { crc32?: (bytes: Uint8Array, before: number) => number }).crc32;
const NATIVE_FROM = native === undefined ? Infinity : 128;

/**
 * The CRC-32 of the bytes from `start` to `end`: an unsigned 32-bit number.
 * @param before the CRC-32 of the bytes before them
 */
export function crc32(bytes: Uint8Array, start: number, end: number, before = 0): number {
  if (end - start >= NATIVE_FROM) return native!(bytes.subarray(start, end), before);
  let crc = ~before;
  for (let at = start; at < end; at++) crc = TABLE[(crc ^ bytes[at]) & 255] ^ (crc >>> 8);
  return ~crc >>> 0;
}
