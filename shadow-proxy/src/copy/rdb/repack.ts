/**
 * The payload that most often has to be translated, a small hash in a listpack, straight into a ziplist, without taking
 * it apart into objects. A ziplist is what servers before Redis 7 keep a small hash in: they take it as it is, where
 * they would build a plain hash field by field. Whatever is unusual about it is left to those who do take it apart, and
 * who say what is wrong.
 *
 *   16 listpack: bytes count (data, its length)… 255   ─▶   13 ziplist: bytes last count (length before, data)… 255
 */
import { copyBytes } from '../../io/copy-bytes.js';
import { FOOTER, sealAt } from './footer.js';
import { Span } from './span.js';
import { TYPES } from './types.js';

export const [HASH_LISTPACK, HASH_ZIPLIST] = [16, 13];
const SINCE_VERSION = TYPES.get(HASH_LISTPACK)!.since;
/** Looking for a field that is there twice takes the square of it. */
const MAX_FIELDS = 32;
const LISTPACK_HEADER = 6;
const ZIPLIST_HEADER = 10;
const END = 0xff;
/** Elements up to so many bytes have their length in one byte in the one that follows. */
const SHORT = 253;
/** The index of the ziplist in the output, behind the type and a length of two bytes. */
export const ZIPLIST_AT = 3;
/** The largest listpack: an element grows by at most 5 bytes, so that a length of two bytes is enough. */
const MAX_BYTES = 15 << 10;
/** What a repacked payload takes at most, in bytes. */
export const MAX_REPACKED = 16 << 10;

const pack = new Span();
/** The index of each field in the output. */
const starts = new Int32Array(MAX_FIELDS);
const ends = new Int32Array(MAX_FIELDS);

/**
 * Writes the hash as a payload of RDB `targetVersion` to the beginning of `out`; returns its size, or 0 where it is
 * something else, large, damaged, or fit for the target as it is.
 * @param version of the payload, whose footer is right
 * @param out of `MAX_REPACKED` bytes
 */
export function repackHash(payload: Buffer, version: number, targetVersion: number, out: Buffer): number {
  if (payload[0] !== HASH_LISTPACK || targetVersion >= SINCE_VERSION || version < SINCE_VERSION) return 0;
  const limit = payload.length - FOOTER;
  if (!pack.open(payload, 1, limit) || pack.next !== limit) return 0;
  const { bytes, start, end } = pack;
  if (end - start <= LISTPACK_HEADER || end - start > MAX_BYTES || bytes.readUInt32LE(start) !== end - start) return 0;
  const elements = bytes.readUInt16LE(start + 4);
  if (elements === 0 || elements % 2 !== 0 || elements > 2 * MAX_FIELDS) return 0;
  let at = start + LISTPACK_HEADER;
  let to = ZIPLIST_AT + ZIPLIST_HEADER;
  let last = to;
  let before = 0;
  for (let i = 0; i < elements; i++) {
    last = to;
    if (before <= SHORT) out[to++] = before;
    else {
      out[to] = SHORT + 1;
      out.writeUInt32LE(before, to + 1);
      to += 5;
    }
    const content = to;
    const first = bytes[at];
    let size: number;
    if (first >= 0x80 && (first < 0xc0 || (first >= 0xe0 && first < 0xf0))) {
      const head = first < 0xc0 ? 1 : 2;
      const length = head === 1 ? first & 63 : ((first & 15) << 8) | bytes[at + 1];
      size = head + length;
      if (at + size >= end || (i % 2 === 0 && looksWhole(bytes, at + head, at + size))) return 0;
      to = writeString(bytes, at + head, at + size, out, to);
    } else {
      size = sizeOfNumber(first);
      if (size === 0 || at + size >= end) return 0;
      if (first !== 0xf4) to = writeNumber(numberAt(bytes, at, first, size), out, to);
      else to = writeNumber64(bytes, at + 1, out, to);
    }
    at = passBack(bytes, at + size, end, size);
    if (at === -1) return 0;
    if (i % 2 === 0 && !isNew(out, i / 2, content, to)) return 0;
    before = to - last;
  }
  if (at !== end - 1 || bytes[at] !== END) return 0;
  out[to++] = END;
  const total = to - ZIPLIST_AT;
  out[0] = HASH_ZIPLIST;
  out[1] = 0x40 | (total >> 8);
  out[2] = total & 255;
  out.writeUInt32LE(total, ZIPLIST_AT);
  out.writeUInt32LE(last - ZIPLIST_AT, ZIPLIST_AT + 4);
  out.writeUInt16LE(elements, ZIPLIST_AT + 8);
  return sealAt(out, to, targetVersion);
}

/** How many bytes a number takes that begins so; 0 where none does. */
function sizeOfNumber(first: number): number {
  if (first < 0x80) return 1;
  if (first < 0xe0) return 2;
  return first === 0xf1 ? 3 : first === 0xf2 ? 4 : first === 0xf3 ? 5 : first === 0xf4 ? 9 : 0;
}

/** A number of at most 32 bits. */
function numberAt(bytes: Buffer, at: number, first: number, size: number): number {
  if (size === 1) return first;
  if (size === 2) return ((((first & 31) << 8) | bytes[at + 1]) << 19) >> 19;
  const low = bytes[at + 1] | (bytes[at + 2] << 8);
  if (size === 3) return (low << 16) >> 16;
  if (size === 4) return ((low | (bytes[at + 3] << 16)) << 8) >> 8;
  return low | (bytes[at + 3] << 16) | (bytes[at + 4] << 24);
}

/** In the fewest bytes, as servers do: they compare what they look for in that form. */
function writeNumber(value: number, out: Buffer, at: number): number {
  if (value >= 0 && value <= 12) {
    out[at] = 0xf1 + value;
    return at + 1;
  }
  const bits = value < 0 ? ~value : value;
  const [mark, width] = bits < 0x80 ? [0xfe, 1] : bits < 0x8000 ? [0xc0, 2] : bits < 0x800000 ? [0xf0, 3] : [0xd0, 4];
  out[at++] = mark;
  for (let i = 0; i < width; i++) out[at++] = (value >> (8 * i)) & 255;
  return at;
}

function writeNumber64(bytes: Buffer, from: number, out: Buffer, at: number): number {
  const low = bytes.readInt32LE(from);
  if (bytes.readInt32LE(from + 4) === low >> 31) return writeNumber(low, out, at);
  out[at] = 0xe0;
  copyBytes(bytes, from, from + 8, out, at + 1);
  return at + 9;
}

function writeString(bytes: Buffer, start: number, end: number, out: Buffer, at: number): number {
  const length = end - start;
  if (length < 64) out[at++] = length;
  else {
    out[at++] = 0x40 | (length >> 8);
    out[at++] = length & 255;
  }
  copyBytes(bytes, start, end, out, at);
  return at + length;
}

/** Whether it reads as a whole number: as one it would be the same field, and no server writes it as a string. */
function looksWhole(bytes: Buffer, start: number, end: number): boolean {
  let at = bytes[start] === MINUS ? start + 1 : start;
  if (end - at > MAX_DIGITS || at === end || (bytes[at] === ZERO && end - start > 1)) return false;
  for (; at < end; at++) if (bytes[at] < ZERO || bytes[at] > NINE) return false;
  return true;
}

const [MINUS, ZERO, NINE] = [45, 48, 57];
/** Digits of a 64-bit integer. */
const MAX_DIGITS = 19;

/** The index of the next element, behind this one's back length; -1 if that length is not `size`. */
function passBack(bytes: Buffer, at: number, end: number, size: number): number {
  if (size <= 127) return at < end && bytes[at] === size ? at + 1 : -1;
  return at + 1 < end && bytes[at] === size >> 7 && bytes[at + 1] === (128 | (size & 127)) ? at + 2 : -1;
}

/** Notes a field as it was written; whether there was none like it. */
function isNew(out: Buffer, field: number, start: number, end: number): boolean {
  starts[field] = start;
  ends[field] = end;
  for (let i = 0; i < field; i++) {
    const other = starts[i];
    if (ends[i] - other !== end - start) continue;
    let same = 0;
    while (start + same < end && out[start + same] === out[other + same]) same++;
    if (start + same === end) return false;
  }
  return true;
}
