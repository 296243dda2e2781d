/** Small hashes are translated without being taken apart: to a ziplist that holds the same. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ListpackWriter } from '../../../src/copy/rdb/listpack.js';
import { MAX_REPACKED, repackHash } from '../../../src/copy/rdb/repack.js';
import { decodeDump, encodeDump, transcode } from '../../../src/copy/rdb/transcode.js';
import { seal } from '../../integration/rdb/seal.js';

const [HASH_LISTPACK, HASH_ZIPLIST] = [16, 13];
const out = Buffer.alloc(MAX_REPACKED);

function payloadOf(elements: readonly (Buffer | bigint)[]): Buffer {
  const list = new ListpackWriter();
  for (const element of elements)
    if (typeof element === 'bigint') list.integer(element);
    else list.string(element);
  const blob = list.finish();
  return seal([HASH_LISTPACK, 0x80, ...Buffer.from(Uint32Array.of(blob.length).buffer).reverse(), ...blob], 10);
}

/** The repacked payload; null where it is left. */
function repacked(payload: Buffer, targetVersion = 9): Buffer | null {
  const size = repackHash(payload, 10, targetVersion, out);
  return size === 0 ? null : Buffer.from(out.subarray(0, size));
}

const isNumber = (text: string): boolean =>
  /^(0|-?[1-9]\d*)$/.test(text) && BigInt.asIntN(64, BigInt(text)) === BigInt(text);
/** As servers keep them: what reads as a number is one. */
const element = (bytes: Buffer): Buffer | bigint => {
  const text = bytes.toString('latin1');
  return isNumber(text) ? BigInt(text) : bytes;
};
const string = fc.oneof(
  fc.uint8Array({ maxLength: 300 }).map((bytes) => element(Buffer.from(bytes))),
  fc.constantFrom('007', '-0', '-', '', '1.5', '12 ', '+1').map((text) => Buffer.from(text)),
  fc.constantFrom(63, 64, 125, 126, 127, 128, 250, 251, 252, 253, 254).map((size) => Buffer.alloc(size, 'x')),
);
const edges = [0, 4, 7, 8, 12, 15, 16, 23, 24, 31, 32, 62]
  .map((bits) => 2n ** BigInt(bits))
  .flatMap((edge) => [edge - 1n, edge, edge + 1n, -edge - 1n, -edge, -edge + 1n]);
const number = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.bigInt({ min: -200n, max: 200n }),
  fc.constantFrom(...edges, 12n, 13n),
);

test('a small hash in a listpack comes to a ziplist of the same fields in their order', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.oneof(string, number), { minLength: 1, maxLength: 32, selector: String }),
      fc.array(fc.oneof(string, number), { minLength: 32, maxLength: 32 }),
      (fields, values) => {
        const payload = payloadOf(fields.flatMap((field, i) => [field, values[i]]));
        const ziplist = repacked(payload);
        assert.ok(ziplist !== null);
        assert.equal(ziplist[0], HASH_ZIPLIST);
        assert.deepEqual(encodeDump(decodeDump(ziplist), 9), encodeDump(decodeDump(payload), 9));
        assert.deepEqual(transcode(payload, 9), ziplist);
        assert.equal(repacked(payload, 10), null);
      },
    ),
    { numRuns: 300 },
  );
});

test('numbers take the fewest bytes, as servers that look for a field write them', () => {
  const sizes = [0, 12, 13, -1, 127, 128, -129, 32_767, 32_768, 8_388_607, 8_388_608, -(2 ** 31), 2 ** 31];
  const taken = sizes.map(
    (value) => repacked(payloadOf([BigInt(value), 0n]))!.length - repacked(payloadOf([0n, 0n]))!.length,
  );
  assert.deepEqual(taken, [0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 8]);
});

test('what is unusual about a hash is left to those who take it apart', () => {
  const name = Buffer.from('f');
  assert.equal(repacked(payloadOf([name, 1n, name, 2n])), null);
  assert.equal(repacked(payloadOf([Buffer.from('7'), 1n, 7n, 2n])), null);
  assert.equal(repacked(payloadOf([Buffer.from('-12'), 1n])), null);
  assert.equal(repacked(payloadOf([name, 1n, name])), null);
  assert.equal(repacked(payloadOf([name, Buffer.alloc(4096)])), null);
  assert.equal(repacked(payloadOf([name, ...Array.from({ length: 7 }, (_, i) => Buffer.alloc(4000, `${i}`))])), null);
  assert.equal(repacked(payloadOf(Array.from({ length: 66 }, (_, i) => BigInt(i)))), null);
  const backwards = payloadOf([name, 1n]);
  backwards[backwards.length - 12]++;
  assert.equal(repacked(seal([...backwards.subarray(0, -10)], 10)), null);
});

test('a field that is there twice is found, also where one takes more bytes than it must', () => {
  const blob = [23, 0, 0, 0, 4, 0, ...[0xf4, 7, 0, 0, 0, 0, 0, 0, 0, 9], ...[1, 1], ...[7, 1], ...[2, 1], 255];
  assert.throws(() => decodeDump(seal([HASH_LISTPACK, blob.length, ...blob], 10)), /the same element twice/);
  assert.equal(repacked(seal([HASH_LISTPACK, blob.length, ...blob], 10)), null);
  blob[16] = 8;
  blob[7] = 9;
  assert.notEqual(repacked(seal([HASH_LISTPACK, blob.length, ...blob], 10)), null);
});

test('a damaged hash is never repacked past its end, and none that is refused when it is taken apart', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.oneof(string, number), { minLength: 1, maxLength: 8, selector: String }),
      fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 3 }),
      (fields, changes) => {
        const bytes = [...payloadOf(fields.flatMap((field) => [field, field])).subarray(0, -10)];
        for (const [at, value] of changes) bytes[1 + (at % (bytes.length - 1))] = value;
        const payload = seal(bytes, 10);
        const ziplist = repacked(payload);
        if (ziplist === null) return;
        assert.deepEqual(encodeDump(decodeDump(ziplist), 9), encodeDump(decodeDump(payload), 9));
      },
    ),
    { numRuns: 3000 },
  );
});
