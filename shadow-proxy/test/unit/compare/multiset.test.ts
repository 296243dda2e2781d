/** The same strings in another order: random ones, and very many. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { haveSameStrings } from '../../../src/compare/multiset.js';
import { sameElements } from '../../../src/compare/shape.js';
import { decodeReply } from '../../../src/resp/decode.js';
import { array, set, string, strings } from '../../integration/compare/frames.js';
import { startCpuClock } from '../../support/cpu.js';

/** Few different values, so that both equal and nearly equal multisets come up. */
const value = fc.oneof(fc.constantFrom('', 'a', 'b', 'ab', '\r\n', '$1\r\na\r\n'), fc.string({ maxLength: 3 }));

test('the quick comparison of bytes agrees with the one of decoded replies', () => {
  const kinds = fc.constantFrom(array, set);
  const lists = fc
    .array(value, { maxLength: 12 })
    .chain((list) =>
      fc.tuple(
        fc.constant(list),
        fc.oneof(
          fc.shuffledSubarray(list, { minLength: list.length }),
          fc.shuffledSubarray(list),
          fc.array(value, { maxLength: 12 }),
        ),
      ),
    );
  fc.assert(
    fc.property(lists, kinds, fc.constantFrom<1 | 2>(1, 2), ([a, b], make, size) => {
      const [x, y] = [make(...a.map(latin1)), make(...b.map(latin1))];
      const expected = sameElements(decodeReply(x).reply.items!, decodeReply(y).reply.items!, size);
      // Half a pair is no pair.
      assert.equal(haveSameStrings(x, y, size), expected && a.length % size === 0);
    }),
    { numRuns: 5000 },
  );
});

const latin1 = (text: string): Buffer => string(Buffer.from(text, 'latin1'));

test('a hundred thousand equal values, and then a few of any size, are no trouble', () => {
  const many = `$1\r\nv\r\n`.repeat(100_000);
  const frame = (count: number, ...parts: string[]): Buffer => Buffer.from(`*${count}\r\n${parts.join('')}`);
  const usedMs = startCpuClock();
  assert.ok(haveSameStrings(frame(100_001, many, '$1\r\nw\r\n'), frame(100_001, '$1\r\nw\r\n', many), 1));
  const members = Array.from({ length: 200_000 }, (_, i) => `$${7 + String(i).length}\r\nmember:${i}\r\n`);
  assert.ok(haveSameStrings(frame(200_000, members.join('')), frame(200_000, members.toReversed().join('')), 1));
  // About 100 ms.
  assert.ok(usedMs() < 3000);
  assert.ok(haveSameStrings(strings('a b c'), strings('c a b'), 1));
  assert.ok(!haveSameStrings(strings('a b c'), strings('c a a'), 1));
});
