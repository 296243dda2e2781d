/** Short strings of a payload are found without an object of their own: the same as a reader gives. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { TranscodeError } from '../../../src/copy/rdb/error.js';
import { inflate, inflatedLength } from '../../../src/copy/rdb/lzf.js';
import { PayloadReader } from '../../../src/copy/rdb/payload-reader.js';
import { MAX_SPAN, Span } from '../../../src/copy/rdb/span.js';
import { PayloadWriter } from '../../../src/copy/rdb/payload-writer.js';

const span = new Span();

/** The string at the beginning, and what is left behind it; null where it is left to a reader. */
function opened(bytes: Buffer, limit = bytes.length): readonly [string, number] | null {
  if (!span.open(bytes, 0, limit)) return null;
  return [span.bytes.toString('latin1', span.start, span.end), limit - span.next];
}

function read(bytes: Buffer, limit = bytes.length): readonly [string, number] | null {
  const from = new PayloadReader(bytes, 0, limit);
  try {
    return [from.string().toString('latin1'), from.left];
  } catch (error) {
    assert.ok(error instanceof TranscodeError);
    return null;
  }
}

function plain(length: number): Buffer {
  const to = new PayloadWriter();
  to.string(Buffer.alloc(length, 'abc'));
  return to.finish(9).subarray(0, -10);
}

/** Literals and copies, one after the other. */
const packed = fc
  .array(
    fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 32 }).map((bytes) => [bytes.length - 1, ...bytes]),
      fc.tuple(fc.integer({ min: 1, max: 6 }), fc.nat(40)).map(([run, distance]) => [run << 5, distance]),
      fc.tuple(fc.nat(255), fc.nat(300)).map(([more, back]) => [0xe0 | (back >> 8), more, back & 255]),
    ),
    { minLength: 1, maxLength: 12 },
  )
  .map((parts) => Buffer.from(parts.flat()));

function compressed(bytes: Buffer, length: number): Buffer {
  const to = new PayloadWriter();
  to.u8(0xc3);
  to.length(bytes.length);
  to.length(length);
  to.raw(bytes);
  return to.finish(9).subarray(0, -10);
}

test('a string of any length is where a reader finds it', () => {
  for (const length of [0, 1, 63, 64, 16_383, 16_384, 70_000]) {
    const bytes = Buffer.concat([plain(length), Buffer.from('behind')]);
    assert.deepEqual(opened(bytes), read(bytes), `${length}`);
    assert.equal(opened(bytes)?.[1], 6);
    assert.equal(opened(bytes, bytes.length - 7), null, `${length} that goes past the end`);
  }
});

test('a compressed string is what a reader makes of it, or is left where that refuses it', () => {
  fc.assert(
    fc.property(packed, fc.integer({ min: -1, max: 1 }), fc.nat(3), (bytes, off, cut) => {
      const length = Math.max(0, inflatedLength(bytes) + off);
      const whole = compressed(bytes, length);
      assert.deepEqual(opened(whole), read(whole));
      if (cut > 0) assert.deepEqual(opened(whole, whole.length - cut), null);
    }),
    { numRuns: 3_000 },
  );
});

test('what is compressed is inflated within its length, wherever it lies', () => {
  fc.assert(
    fc.property(packed, fc.nat(5), fc.nat(64), (bytes, before, room) => {
      const moved = Buffer.concat([Buffer.alloc(before, 0x20), bytes, Buffer.from('behind')]);
      const out = Buffer.alloc(5_000, '#');
      const end = before + bytes.length;
      assert.equal(inflate(moved, before, end, out, room), inflatedLength(bytes) === room);
      assert.equal(out.toString('latin1', room), '#'.repeat(5_000 - room));
    }),
    { numRuns: 3_000 },
  );
});

test('numbers, and what would be long, are left to a reader', () => {
  const repeated = Buffer.from([0, 65, ...Array.from({ length: 70 }, () => [0xe0, 255, 0]).flat()]);
  const length = inflatedLength(repeated);
  assert.ok(length > MAX_SPAN);
  assert.equal(opened(compressed(repeated, length)), null);
  assert.equal(read(compressed(repeated, length))?.[0].length, length);
  for (const number of [[0xc0, 1], [0xc1, 1, 0], [0xc2, 1, 0, 0, 0], [0x81, 0, 0, 0, 0, 0, 0, 0, 1, 65], []])
    assert.equal(opened(Buffer.from(number)), null);
});
