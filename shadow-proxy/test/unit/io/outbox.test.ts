/** What a socket gets at the end of a turn: every byte once, in order, however it was added. */
import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { Outbox } from '../../../src/io/outbox.js';
import { Turn } from '../../../src/io/turn.js';

/** A socket that keeps what is written, and says how much the kernel has not taken. */
function fakeSocket() {
  const written: Buffer[] = [];
  const socket = { destroyed: false, writable: true, writableLength: 0, write: (b: Buffer) => written.push(b) };
  return { written, socket: Object.assign(socket, { cork() {}, uncork() {} }) };
}

const made = () => {
  const { written, socket } = fakeSocket();
  return { written, socket, outbox: new Outbox(new Turn(), socket as unknown as Socket) };
};

test('ranges of any buffers, small and large, come out in order, each byte once', () => {
  const size = fc.oneof(fc.nat(20), fc.constantFrom(16_383, 16_384, 20_000));
  const ranges = fc.array(fc.record({ buffer: fc.nat(2), length: size, skip: fc.nat(2) }), { maxLength: 12 });
  const buffers = [0, 1, 2].map((n) => Buffer.from(Array.from({ length: 1 << 18 }, (_, i) => (i * 7 + n * 31) & 255)));
  fc.assert(
    fc.property(ranges, (list) => {
      const { written, outbox } = made();
      const expected: Buffer[] = [];
      const at = [0, 0, 0];
      for (const { buffer, length, skip } of list) {
        const start = at[buffer] + skip;
        outbox.add(buffers[buffer], start, start + length);
        expected.push(buffers[buffer].subarray(start, start + length));
        at[buffer] = start + length;
      }
      const all = Buffer.concat(expected);
      assert.equal(outbox.bytes, all.length);
      outbox.flush();
      assert.ok(Buffer.concat(written).equals(all));
      assert.equal(outbox.bytes, 0);
      outbox.flush();
      assert.ok(Buffer.concat(written).equals(all), 'nothing is sent twice');
    }),
    { numRuns: 200 },
  );
});

test('neighbouring ranges of one buffer are one write, and those of two buffers are not taken for one', () => {
  const { written, outbox } = made();
  const [a, b] = [Buffer.from('abcd'), Buffer.from('wxyz')];
  outbox.add(a, 0, 2);
  outbox.add(a, 2, 4);
  outbox.flush();
  assert.deepEqual(written.splice(0).map(String), ['abcd']);
  outbox.add(a, 0, 2);
  outbox.add(b, 2, 4);
  outbox.flush();
  assert.equal(Buffer.concat(written).toString(), 'abyz');
});

test('what the kernel has not taken is still counted', () => {
  const { socket, outbox } = made();
  outbox.addWhole(Buffer.from('abc'));
  socket.writableLength = 3;
  outbox.flush();
  assert.equal(outbox.bytes, 3);
  outbox.addWhole(Buffer.from('de'));
  assert.equal(outbox.bytes, 5);
  socket.writableLength = 1;
  assert.equal(outbox.bytes, 3);
});

test('a socket that is closed gets nothing', () => {
  const { written, socket, outbox } = made();
  socket.destroyed = true;
  outbox.addWhole(Buffer.from('abc'));
  outbox.flush();
  assert.deepEqual([written.length, outbox.bytes], [0, 0]);
});
