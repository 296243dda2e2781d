/** Every record that was put into a ring is taken out once, in order, as it was; flags miss nothing. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { MOST, ringMemory, RingReader, RingWriter } from '../../../src/front/shared-ring.js';

const SIZE = 4 * MOST;
const bytes = Buffer.from(Array.from({ length: MOST }, (_, i) => (i * 31 + (i >> 8)) & 255));

const made = () => {
  const memory = ringMemory(SIZE);
  return { memory, writer: new RingWriter(memory), reader: new RingReader(memory) };
};

interface Taken {
  readonly kind: number;
  readonly id: number;
  readonly bytes: Buffer;
}

function takeAll(reader: RingReader): Taken[] {
  const taken: Taken[] = [];
  reader.take((kind, id, from, start, end) => taken.push({ kind, id, bytes: Buffer.from(from.slice(start, end)) }));
  return taken;
}

test('records come out once, in order and as they were, over every end of the memory', () => {
  const length = fc.oneof(fc.nat(9), fc.nat(200), fc.constantFrom(MOST, MOST - 1, MOST - 7, MOST - 8), fc.nat(MOST));
  const step = fc.record({ length, start: fc.nat(7), kind: fc.nat(9), id: fc.nat(0xffffffff), take: fc.nat(3) });
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 200 }), (steps) => {
      const { writer, reader } = made();
      const [put, taken]: [Taken[], Taken[]] = [[], []];
      for (const { length, start, kind, id, take } of steps) {
        const end = Math.min(start + length, MOST);
        if (!writer.put(kind, id, bytes, start, end)) {
          taken.push(...takeAll(reader));
          assert.ok(writer.put(kind, id, bytes, start, end), 'an empty ring has room for any record');
        }
        put.push({ kind, id, bytes: bytes.subarray(start, end) });
        if (take === 0) taken.push(...takeAll(reader));
      }
      taken.push(...takeAll(reader));
      assert.deepEqual(taken, put);
    }),
    { numRuns: 100 },
  );
});

test('counters that pass 2^32 change nothing', () => {
  const memory = ringMemory(SIZE);
  const header = new Int32Array(memory);
  // The end of u32, and thereby of the memory, is 16 bytes away.
  for (const at of [0, 16]) header[at] = -16;
  const [writer, reader] = [new RingWriter(memory), new RingReader(memory)];
  for (let i = 0; i < 5; i++) assert.ok(writer.put(1, i, bytes, 0, MOST) || takeAll(reader).length > 0);
  assert.ok(header[0] >= 0, `${header[0]}`);
  assert.ok(takeAll(reader).every((each) => each.bytes.equals(bytes)));
});

test('a ring is full when the next record would reach what is not taken yet', () => {
  const { writer, reader } = made();
  let count = 0;
  while (writer.put(1, count, bytes, 0, MOST)) count++;
  assert.equal(count, 3, 'of 64 KiB and their headers, in 256 KiB');
  assert.equal(takeAll(reader).length, 3);
  assert.ok(writer.put(1, 9, bytes, 0, MOST));
});

test('who waits is woken once: the reader by a record, the writer by room', () => {
  const { writer, reader } = made();
  assert.equal(writer.wakes(), false);
  assert.equal(reader.sleeps(), true);
  assert.deepEqual([writer.wakes(), writer.wakes()], [true, false]);
  assert.equal(reader.frees(), false);
  while (writer.put(1, 1, bytes, 0, MOST));
  assert.equal(reader.sleeps(), false, 'something is there');
  assert.equal(writer.wakes(), false, 'so nobody sleeps');
  assert.equal(writer.waits(), true);
  takeAll(reader);
  assert.deepEqual([reader.frees(), reader.frees()], [true, false]);
  assert.equal(writer.waits(), false, 'there is room');
  assert.equal(reader.frees(), false);
});

test('the size of a ring is a power of two, and has room for four of the longest records', () => {
  assert.throws(() => ringMemory(3 * 65_536 * 2), RangeError);
  assert.throws(() => ringMemory(2 * MOST), RangeError);
});
