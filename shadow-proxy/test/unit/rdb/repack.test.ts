/** Small hashes are translated without being taken apart: to the same bytes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ListpackWriter } from '../../../src/copy/rdb/listpack.js';
import { repackHash } from '../../../src/copy/rdb/repack.js';
import { decodeDump, encodeDump } from '../../../src/copy/rdb/transcode.js';
import { seal } from '../../integration/rdb/seal.js';

const HASH_LISTPACK = 16;

function payloadOf(elements: readonly (Buffer | bigint)[]): Buffer {
  const list = new ListpackWriter();
  for (const element of elements)
    if (typeof element === 'bigint') list.integer(element);
    else list.string(element);
  const blob = list.finish();
  return seal([HASH_LISTPACK, 0x80, ...Buffer.from(Uint32Array.of(blob.length).buffer).reverse(), ...blob], 10);
}

const string = fc.oneof(
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  fc.constantFrom(63, 64, 125, 126, 127, 128, 4095).map((size) => Buffer.alloc(size, 'x')),
);
const number = fc.oneof(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), fc.bigInt({ min: -200n, max: 200n }));

test('a small hash in a listpack comes to the same bytes as when it is taken apart', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.oneof(string, number), { minLength: 1, maxLength: 32, selector: String }),
      fc.array(fc.oneof(string, number), { minLength: 32, maxLength: 32 }),
      (fields, values) => {
        const payload = payloadOf(fields.flatMap((field, i) => [field, values[i]]));
        assert.deepEqual(repackHash(payload, 10, 9), encodeDump(decodeDump(payload), 9));
        assert.equal(repackHash(payload, 10, 10), null);
      },
    ),
    { numRuns: 300 },
  );
});

test('what is unusual about a hash is left to those who take it apart', () => {
  const name = Buffer.from('f');
  assert.equal(repackHash(payloadOf([name, 1n, name, 2n]), 10, 9), null);
  assert.equal(repackHash(payloadOf([Buffer.from('7'), 1n, 7n, 2n]), 10, 9), null);
  assert.equal(repackHash(payloadOf([name, 1n, name]), 10, 9), null);
  assert.equal(repackHash(payloadOf([name, Buffer.alloc(4096)]), 10, 9), null);
  assert.equal(repackHash(payloadOf(Array.from({ length: 66 }, (_, i) => BigInt(i))), 10, 9), null);
  const backwards = payloadOf([name, 1n]);
  backwards[backwards.length - 12]++;
  assert.equal(repackHash(seal([...backwards.subarray(0, -10)], 10), 10, 9), null);
});
