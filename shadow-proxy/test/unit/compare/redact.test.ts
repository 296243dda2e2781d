/** Keys and values in reports are redacted: hashes, prefixes, first differences. */
// cspell:ignore größe mred
import assert from 'node:assert/strict';
import { createHash, createHmac } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { firstDifference, hashKey, redactKey } from '../../../src/compare/redact.js';
import { startCpuClock } from '../../support/cpu.js';

const SECRET = Buffer.alloc(32, 1);

test('the hash of a key is an HMAC: without the secret, a reader cannot check whether a guess is right', () => {
  const key = Buffer.from('session:4217');
  assert.equal(hashKey(key, SECRET), createHmac('sha256', SECRET).update('session:4217').digest('hex').slice(0, 16));
  assert.notEqual(hashKey(key, SECRET), createHash('sha256').update(key).digest('hex').slice(0, 16));
});

test('another secret gives another hash', () => {
  assert.notEqual(redactKey(Buffer.from('user:1'), SECRET), redactKey(Buffer.from('user:1'), Buffer.alloc(32, 2)));
});

test('a key keeps the name before its first colon, and nothing else', () => {
  const redacted = (key: string | Buffer): string => redactKey(Buffer.from(key as string), SECRET);
  assert.equal(
    redacted('session:8f14e45f:data'),
    `session:<13 bytes, ${hashKey(Buffer.from('session:8f14e45f:data'), SECRET)}>`,
  );
  assert.match(redacted('u:x'), /^u:<1 bytes, [0-9a-f]{16}>$/);
  assert.match(redacted(`${'x'.repeat(32)}:c`), /^x{32}:<1 bytes, [0-9a-f]{16}>$/);
  assert.match(redacted(':x'), /^:<1 bytes, [0-9a-f]{16}>$/);
  assert.match(redacted('rl:'), /^rl:<0 bytes, [0-9a-f]{16}>$/);
  for (const key of [
    'no-colon',
    '',
    'a b:c',
    'line\nbreak:c',
    '\u001b[31mred:c',
    'größe:c',
    '\u007f:c',
    Buffer.from([255, 58, 1]),
    `${'x'.repeat(33)}:c`,
  ]) {
    assert.match(redacted(key), /^<\d+ bytes, [0-9a-f]{16}>$/, String(key));
  }
});

test('a redacted key never holds what followed the colon, and keys that differ differ', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 14, maxLength: 40 }),
      fc.uint8Array({ minLength: 14, maxLength: 40 }),
      (a, b) => {
        const [x, y] = [a, b].map((bytes) => Buffer.concat([Buffer.from('user:'), Buffer.from(bytes)]));
        assert.match(redactKey(x, SECRET), /^user:<\d+ bytes, [0-9a-f]{16}>$/);
        assert.equal(redactKey(x, SECRET) === redactKey(y, SECRET), x.equals(y));
      },
    ),
  );
});

test('the first difference is found wherever it is', () => {
  const reference = (a: Buffer, b: Buffer): number => {
    for (let i = 0; i < Math.max(a.length, b.length); i++) if (a[i] !== b[i]) return i;
    return -1;
  };
  const few = fc.uint8Array({ maxLength: 30, max: 1 }).map((bytes) => Buffer.from(bytes));
  fc.assert(
    fc.property(few, few, few, (prefix, a, b) => {
      const [x, y] = [Buffer.concat([prefix, a]), Buffer.concat([prefix, b])];
      assert.equal(firstDifference(x, y), reference(x, y));
    }),
    { numRuns: 2000 },
  );
});

test('the first difference of big replies is found quickly', () => {
  const a = Buffer.alloc(100_000_000, 'x');
  const b = Buffer.from(a);
  b[99_999_998] = 0;
  const usedMs = startCpuClock();
  assert.equal(firstDifference(a, b), 99_999_998);
  assert.equal(firstDifference(a, a.subarray(0, 99_999_999)), 99_999_999);
  // About 30 ms.
  assert.ok(usedMs() < 1000);
});
