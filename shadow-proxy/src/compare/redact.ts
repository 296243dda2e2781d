/**
 * Keys as they may be written down, and where two replies begin to differ: enough to recognise equal ones, and not what
 * they hold. The hash of a key is an HMAC: without its secret a guessed key cannot be confirmed.
 */
import { createHmac } from 'node:crypto';

/**
 * The offset of the first byte that differs: the shorter length where one is the beginning of the other, -1 if equal.
 */
export function firstDifference(a: Buffer, b: Buffer): number {
  const length = Math.min(a.length, b.length);
  let at = 0;
  // By halves: native comparisons of what may be hundreds of megabytes.
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

/** Of a key, under the shard's own key for that (`storage/hash-key.ts`): the first 16 hex digits of HMAC-SHA-256. */
export const hashKey = (key: Buffer, secret: Buffer): string =>
  createHmac('sha256', secret).update(key).digest('hex').slice(0, KEY_DIGITS);

/** A prefix is kept up to this length: longer ones are hardly names. */
const MAX_PREFIX = 32;
const COLON = 58;

/**
 * The key without what identifies anybody: `session:<36 bytes, 1a2b3c4d5e6f7081>`. The prefix before the first `:`
 * is kept if it is printable ASCII and short; the hash is that of the whole key, as `shadow-compare key-hash` gives it.
 */
export function redactKey(key: Buffer, secret: Buffer): string {
  const colon = key.indexOf(COLON);
  const isName = colon !== -1 && colon <= MAX_PREFIX && key.subarray(0, colon).every((byte) => byte > 32 && byte < 127);
  const prefix = isName ? key.toString('latin1', 0, colon + 1) : '';
  return `${prefix}<${key.length - prefix.length} bytes, ${hashKey(key, secret)}>`;
}
