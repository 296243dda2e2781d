/** Payloads that are alike hold the same; what does not show without taking them apart is left. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { areAlike } from '../../../src/copy/rdb/alike.js';
import { ListpackWriter } from '../../../src/copy/rdb/listpack.js';
import { decodeDump, transcode, TranscodeError } from '../../../src/copy/rdb/transcode.js';
import { KEYDB_EXTRA } from '../../../src/copy/rdb/types.js';
import { equalValues } from '../../../src/copy/verify/equal-values.js';
import { seal, tampered } from '../../integration/rdb/seal.js';

const HASH_LISTPACK = 16;
const sized = (bytes: Buffer): number[] => [0x40 | (bytes.length >> 8), bytes.length & 255, ...bytes];

const stringOf = (bytes: Buffer): Buffer => seal([0, ...sized(bytes)], 10);
function hashOf(elements: readonly (Buffer | bigint)[]): Buffer {
  const list = new ListpackWriter();
  for (const element of elements)
    if (typeof element === 'bigint') list.integer(element);
    else list.string(element);
  return seal([HASH_LISTPACK, ...sized(list.finish())], 10);
}

/** As KeyDB gives it. */
const keydbs = (payload: Buffer, stamp = '1234567890123456789'): Buffer =>
  tampered(payload, (content) =>
    Buffer.concat([content, KEYDB_EXTRA, Buffer.from([stamp.length]), Buffer.from(stamp)]),
  );

const text = fc.string({ maxLength: 6 }).map((value) => Buffer.from(`_${value}`));
const element = fc.oneof(text, fc.bigInt({ min: -300n, max: 300n }));
const string = text.map(stringOf);
const hash = fc
  .uniqueArray(element, { minLength: 1, maxLength: 6, selector: String })
  .map((fields) => hashOf(fields.flatMap((field) => [field, 1n])));

test('a string, and a small hash, is alike on Redis 7 and on the KeyDB that it was copied to', () => {
  fc.assert(
    fc.property(fc.oneof(string, hash), (payload) => {
      const copy = keydbs(transcode(payload, 9));
      assert.ok(areAlike(payload, copy));
      assert.ok(areAlike(copy, payload));
    }),
  );
  const compressed = seal([0, 0xc3, 5, 10, 0, 97, 0xe0, 0, 0], 10);
  assert.ok(areAlike(compressed, keydbs(seal([0, 0xc3, 5, 10, 0, 97, 0xe0, 0, 0], 9))));
});

test('payloads that differ in anything are not alike, unless they hold the same', () => {
  const change = fc.tuple(fc.nat(), fc.nat(255));
  fc.assert(
    fc.property(fc.oneof(string, hash), fc.array(change, { minLength: 1, maxLength: 3 }), (payload, changes) => {
      const other = tampered(keydbs(transcode(payload, 9)), (content) => {
        for (const [at, value] of changes) content[at % content.length] = value;
      });
      if (!areAlike(payload, other)) return;
      assert.ok(equalValues(decodeDump(payload), decodeDump(other)));
    }),
    { numRuns: 5_000 },
  );
});

test('another value, order of fields or type does not show to be alike', () => {
  const [a, b] = [Buffer.from('a'), Buffer.from('b')];
  for (const [one, other] of [
    [stringOf(a), stringOf(b)],
    [stringOf(a), stringOf(Buffer.from('aa'))],
    [stringOf(Buffer.from('aa')), stringOf(a)],
    [stringOf(a), hashOf([a, 1n])],
    [hashOf([a, 1n]), transcode(hashOf([a, 2n]), 9)],
    [hashOf([a, 1n, b, 2n]), transcode(hashOf([b, 2n, a, 1n]), 9)],
    [hashOf([a, 1n]), transcode(hashOf([a, 1n, b, 2n]), 9)],
    [stringOf(a), tampered(stringOf(a), (content) => Buffer.concat([content, Buffer.from('behind')]))],
  ])
    assert.equal(areAlike(one, other), false);
});

test('a payload that was damaged on its way is refused, whichever it is', () => {
  for (const payload of [stringOf(Buffer.from('abc')), hashOf([Buffer.from('f'), 1n])]) {
    const copy = transcode(payload, 9);
    for (const [one, other] of [
      [payload, copy],
      [copy, payload],
    ]) {
      const damaged = Buffer.from(one);
      damaged[damaged.length - 1] ^= 1;
      assert.throws(() => areAlike(damaged, other), TranscodeError);
      assert.throws(() => areAlike(other, damaged), TranscodeError);
    }
  }
});
