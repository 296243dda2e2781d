/**
 * Payloads that are most often compared, short strings and small hashes, without taking them apart: a string has the
 * same bytes on either server, and a listpack comes to the ziplist that the other one has.
 */
import { checkFooter, FOOTER } from './footer.js';
import { HASH_LISTPACK, HASH_ZIPLIST, MAX_REPACKED, repackHash, ZIPLIST_AT } from './repack.js';
import { Span } from './span.js';
import { KEYDB_EXTRA, WRITTEN } from './types.js';

/** A version whose servers keep small hashes in ziplists. */
const ZIPLIST_VERSION = 9;
const span = new Span();
const repacked = Buffer.allocUnsafeSlow(MAX_REPACKED);

/**
 * Whether two payloads hold the same value; false if that does not show, which says nothing.
 * @throws {TranscodeError} if a payload is damaged on its way
 */
export function areAlike(one: Buffer, other: Buffer): boolean {
  const [a, b] = [one[0], other[0]];
  if (a === WRITTEN.string && b === WRITTEN.string) return areAlikeStrings(one, other);
  if (a === HASH_LISTPACK && b === HASH_ZIPLIST) return areAlikeHashes(one, other);
  return a === HASH_ZIPLIST && b === HASH_LISTPACK && areAlikeHashes(other, one);
}

function areAlikeStrings(one: Buffer, other: Buffer): boolean {
  checkFooter(one);
  checkFooter(other);
  const [end, otherEnd] = [one.length - FOOTER, other.length - FOOTER];
  if (!span.open(one, 1, end)) return false;
  const { next } = span;
  return (
    next <= otherEnd && sameBytes(one, 1, next, other, 1) && isExtra(one, next, end) && isExtra(other, next, otherEnd)
  );
}

function areAlikeHashes(listpack: Buffer, ziplist: Buffer): boolean {
  const version = checkFooter(listpack);
  checkFooter(ziplist);
  const size = repackHash(listpack, version, ZIPLIST_VERSION, repacked);
  const end = ziplist.length - FOOTER;
  if (size === 0 || !span.open(ziplist, 1, end) || !isExtra(ziplist, span.next, end)) return false;
  return (
    span.end - span.start === size - FOOTER - ZIPLIST_AT &&
    sameBytes(span.bytes, span.start, span.end, repacked, ZIPLIST_AT)
  );
}

/** Whether `payload[start, end)` is nothing, or what KeyDB writes behind each value. */
function isExtra(payload: Buffer, start: number, end: number): boolean {
  if (start === end) return true;
  const at = start + KEYDB_EXTRA.length;
  // A text of digits, or what is rarer and is left.
  return (
    at < end &&
    payload[at] < 64 &&
    at + 1 + payload[at] === end &&
    sameBytes(KEYDB_EXTRA, 0, KEYDB_EXTRA.length, payload, start)
  );
}

function sameBytes(a: Buffer, start: number, end: number, b: Buffer, at: number): boolean {
  for (let i = start, j = at; i < end; i++, j++) if (a[i] !== b[j]) return false;
  return true;
}
