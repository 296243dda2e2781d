/**
 * The payload that most often has to be translated, a small hash in a listpack, straight into the plain form, without
 * taking it apart into objects: less than half the time. Whatever is unusual about it is left to those who do, and who
 * say what is wrong.
 */
import { copyBytes } from '../../io/copy-bytes.js';
import { FOOTER, seal } from './footer.js';
import { Reader } from './reader.js';
import { TYPES, WRITTEN } from './types.js';

const HASH_LISTPACK = 16;
const SINCE_VERSION = TYPES.get(HASH_LISTPACK)!.since;
/** As a length it takes one byte; and looking for a field that is there twice takes the square of it. */
const MAX_FIELDS = 32;
const LISTPACK_HEADER = 6;
const LISTPACK_END = 0xff;

/** Where each field lies in what is written. */
const starts = new Int32Array(MAX_FIELDS);
const ends = new Int32Array(MAX_FIELDS);

/**
 * The hash in plain RDB `targetVersion`; null where it is something else, large, damaged, or fit for the target as it
 * is.
 * @param version of the payload, whose footer is right
 * @throws {TranscodeError} when the payload ends within its listpack
 */
export function repackHash(payload: Buffer, version: number, targetVersion: number): Buffer | null {
  if (payload[0] !== HASH_LISTPACK || targetVersion >= SINCE_VERSION || version < SINCE_VERSION) return null;
  const from = new Reader(payload, 1, payload.length - FOOTER);
  const { bytes, end } = from.part();
  if (from.left > 0 || end <= LISTPACK_HEADER || bytes.readUInt32LE(0) !== end) return null;
  const elements = bytes.readUInt16LE(4);
  if (elements === 0 || elements % 2 !== 0 || elements > 2 * MAX_FIELDS) return null;
  // No element takes three times what it took.
  const out = Buffer.allocUnsafe(end * 3 + FOOTER + 2);
  out[0] = WRITTEN.hash;
  out[1] = elements / 2;
  let to = 2;
  let at = LISTPACK_HEADER;
  for (let i = 0; i < elements; i++) {
    const first = bytes[at];
    const start = to;
    let size: number;
    if (first < 0x80) {
      size = 1;
      to = writeText(out, to, String(first));
    } else if (first < 0xc0 || (first >= 0xe0 && first < 0xf0)) {
      const head = first < 0xc0 ? 1 : 2;
      const length = head === 1 ? first & 63 : ((first & 15) << 8) | bytes[at + 1];
      size = head + length;
      if (at + size >= end) return null;
      to = writeLength(out, to, length);
      copyBytes(bytes, at + head, at + size, out, to);
      to += length;
    } else {
      size = first < 0xe0 ? 2 : first === 0xf1 ? 3 : first === 0xf2 ? 4 : first === 0xf3 ? 5 : first === 0xf4 ? 9 : 0;
      if (size === 0 || at + size >= end) return null;
      to = writeText(
        out,
        to,
        String(
          first < 0xe0
            ? ((((first & 31) << 8) | bytes[at + 1]) << 19) >> 19
            : first === 0xf4
              ? bytes.readBigInt64LE(at + 1)
              : bytes.readIntLE(at + 1, size - 1),
        ),
      );
    }
    at = passBack(bytes, at + size, end, size);
    if (at === -1) return null;
    if (i % 2 === 0 && !isNew(out, i / 2, start, to)) return null;
  }
  if (at !== end - 1 || bytes[at] !== LISTPACK_END) return null;
  return seal(out, to, targetVersion);
}

function writeLength(out: Buffer, at: number, length: number): number {
  if (length < 64) out[at++] = length;
  else {
    out[at++] = 0x40 | (length >> 8);
    out[at++] = length & 255;
  }
  return at;
}

/** A number in digits, as a string. */
function writeText(out: Buffer, at: number, digits: string): number {
  out[at++] = digits.length;
  for (let i = 0; i < digits.length; i++) out[at++] = digits.charCodeAt(i);
  return at;
}

/** Where the next element begins, behind this one's length at its back; -1 where that is not the `size` that it had. */
function passBack(bytes: Buffer, at: number, end: number, size: number): number {
  if (size <= 127) return at < end && bytes[at] === size ? at + 1 : -1;
  return at + 1 < end && bytes[at] === size >> 7 && bytes[at + 1] === (128 | (size & 127)) ? at + 2 : -1;
}

/** Notes a field, written with its length in front; whether there was none like it. */
function isNew(out: Buffer, field: number, start: number, end: number): boolean {
  starts[field] = start;
  ends[field] = end;
  for (let i = 0; i < field; i++) {
    if (ends[i] - starts[i] === end - start && out.compare(out, start, end, starts[i], ends[i]) === 0) return false;
  }
  return true;
}
