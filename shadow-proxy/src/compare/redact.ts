/**
 * Redacts keys, and finds where two replies begin to differ: enough to recognise equal ones, without their contents.
 * The hash of a key is an HMAC: without its secret, a guess at the key cannot be checked.
 */
import { createHmac } from 'node:crypto';

/**
 * The offset of the first byte that differs. If one buffer is the beginning of the other, the shorter length; -1 if
 * they are equal.
 */
export function firstDifference(a: Buffer, b: Buffer): number {
  const length = Math.min(a.length, b.length);
  let at = 0;
  // By halves, with native comparisons: a reply may have hundreds of megabytes.
  for (let step = length; step > 0;) {
    step = Math.min(step, length - at);
    if (a.compare(b, at, at + step, at, at + step) === 0) at += step;
    else if (step === 1) return at;
    else step >>= 1;
    if (at === length) break;
  }
  return a.length === b.length ? -1 : length;
}

const KEY_DIGITS = 16;

/** The hash of a key with the shard's secret (`storage/hash-key.ts`): the first 16 hex digits of HMAC-SHA-256. */
export const hashKey = (key: Buffer, secret: Buffer): string =>
  createHmac('sha256', secret).update(key).digest('hex').slice(0, KEY_DIGITS);

/** The longest prefix that is kept: a longer one is hardly a name. */
const MAX_PREFIX = 32;
const COLON = 58;

/**
 * The redacted key: `session:<36 bytes, 1a2b3c4d5e6f7081>`. The prefix before the first `:` is kept if it is printable
 * ASCII and short; the hash is that of the whole key, as `shadow-compare key-hash` gives it.
 */
export function redactKey(key: Buffer, secret: Buffer): string {
  const colon = key.indexOf(COLON);
  const isName = colon !== -1 && colon <= MAX_PREFIX && key.subarray(0, colon).every((byte) => byte > 32 && byte < 127);
  const prefix = isName ? key.toString('latin1', 0, colon + 1) : '';
  return `${prefix}<${key.length - prefix.length} bytes, ${hashKey(key, secret)}>`;
}
