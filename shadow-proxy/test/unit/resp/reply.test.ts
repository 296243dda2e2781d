/** Replies of RESP2 and RESP3, however they are cut: found, decoded, refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeReply } from '../../../src/resp/decode.js';
import { FrameReader } from '../../../src/resp/frame-reader.js';
import { FrameScanner, ProtocolError } from '../../../src/resp/frame-scanner.js';
import { startCpuClock } from '../../support/cpu.js';
import { cut, cuts, reply2, reply3 } from './streams.js';

/** The frames, as slices of the reader's own buffers: bytes overwritten later would show. */
function read(chunks: readonly Buffer[], reader = new FrameReader()): Buffer[] {
  const frames: Buffer[] = [];
  for (const chunk of chunks) {
    reader.feed(chunk);
    while (reader.next()) frames.push(reader.buffer.subarray(reader.start, reader.end));
  }
  return frames;
}

for (const [protocol, reply] of [
  ['RESP2', reply2],
  ['RESP3', reply3],
] as const) {
  test(`any split of any stream of ${protocol} replies gives the same frames`, () => {
    fc.assert(
      fc.property(fc.array(reply, { maxLength: 8 }), cuts, (replies, at) => {
        const frames = read(cut(Buffer.concat(replies.map(({ bytes }) => bytes)), at));
        assert.deepEqual(
          frames,
          replies.map(({ bytes }) => bytes),
        );
      }),
      { numRuns: 1000 },
    );
  });

  test(`a decoded ${protocol} reply is what was sent, and ends where the scanner says`, () => {
    fc.assert(
      fc.property(fc.array(reply, { minLength: 1, maxLength: 4 }), (replies) => {
        const stream = Buffer.concat(replies.map(({ bytes }) => bytes));
        const scanner = new FrameScanner();
        let at = 0;
        for (const { bytes, value } of replies) {
          const decoded = decodeReply(stream, at);
          assert.deepEqual(decoded.reply, value);
          assert.equal(decoded.end, at + bytes.length);
          assert.equal(scanner.scan(stream, at, stream.length), decoded.end);
          at = decoded.end;
        }
      }),
      { numRuns: 1000 },
    );
  });

  test(`an incomplete ${protocol} reply wants more than is there, and no more than is to come`, () => {
    fc.assert(
      fc.property(reply, fc.double({ min: 0, max: 0.999, noNaN: true }), ({ bytes }, part) => {
        const scanner = new FrameScanner();
        const limit = Math.floor(part * bytes.length);
        assert.equal(scanner.scan(bytes, 0, limit), -1);
        assert.ok(
          scanner.need > limit && scanner.need <= bytes.length,
          `${scanner.need} of ${bytes.length} at ${limit}`,
        );
      }),
      { numRuns: 1000 },
    );
  });
}

test('frames consumed by their known length and frames found by the scanner may alternate', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(reply3, fc.boolean()), { maxLength: 8 }), cuts, (replies, at) => {
      const reader = new FrameReader();
      let i = 0;
      for (const chunk of cut(Buffer.concat(replies.map(([{ bytes }]) => bytes)), at)) {
        reader.feed(chunk);
        for (; i < replies.length; i++) {
          const [{ bytes }, known] = replies[i];
          if (known && reader.limit - reader.at >= bytes.length) {
            assert.deepEqual(reader.buffer.subarray(reader.at, reader.at + bytes.length), bytes);
            reader.skip(bytes.length);
          } else if (reader.next()) {
            assert.deepEqual(reader.buffer.subarray(reader.start, reader.end), bytes);
          } else {
            break;
          }
        }
      }
      assert.equal(i, replies.length);
    }),
    { numRuns: 1000 },
  );
});

test('replies that are wanted together are one range, however they are cut', () => {
  fc.assert(
    fc.property(fc.array(fc.array(reply2, { minLength: 1, maxLength: 5 }), { maxLength: 5 }), cuts, (groups, at) => {
      const wanted = groups.map((group) => Buffer.concat(group.map(({ bytes }) => bytes)));
      const reader = new FrameReader();
      const found: Buffer[] = [];
      for (const chunk of cut(Buffer.concat(wanted), at)) {
        reader.feed(chunk);
        while (reader.next(groups[found.length]?.length)) found.push(reader.buffer.subarray(reader.start, reader.end));
      }
      assert.deepEqual(found, wanted);
    }),
    { numRuns: 1000 },
  );
});

const garbage =
  (text: string): (() => void) =>
  () =>
    void new FrameScanner().scan(Buffer.from(text, 'latin1'), 0, text.length);

test('what is not RESP is refused, not waited for', () => {
  for (const text of [
    'x\r\n',
    '\r\n',
    '\0',
    '$abc\r\n',
    '$\r\n',
    '*\r\n',
    '$-2\r\n',
    '$-0\r\n',
    '*-10\r\n',
    '%-1\r\n',
    '~-1\r\n',
    '=-1\r\n',
    '|-1\r\n',
    '$--1\r\n',
    '$1x\r\n',
    '$+1\r\n',
    '$99999999999\r\n',
    '*99999999999999999999999\r\n',
    `$${'1'.repeat(40)}`,
    `+${'a'.repeat(1 << 21)}`,
    '*2\r\n:1\r\nHTTP/1.1',
    '$?\r\n',
  ]) {
    assert.throws(garbage(text), ProtocolError, JSON.stringify(text.slice(0, 40)));
  }
});

test('bytes that may be anything are refused or framed, and never read past their end', () => {
  const bytes = fc.string({
    unit: fc.constantFrom(...'+-:$*_#,(!=%~>|0123\r\n'.split(''), '\r\n', '\r\n'),
    maxLength: 40,
  });
  fc.assert(
    fc.property(bytes, (text) => {
      const stream = Buffer.from(text, 'latin1');
      let end: number;
      try {
        end = new FrameScanner().scan(stream, 0, stream.length);
      } catch (error) {
        assert.ok(error instanceof ProtocolError);
        return;
      }
      assert.ok(end <= stream.length);
      if (end !== -1) assert.equal(decodeReply(stream).end, end);
    }),
    { numRuns: 5000 },
  );
});

test('a reply that nests a hundred thousand deep is decoded', () => {
  const depth = 100_000;
  const stream = Buffer.from('*1\r\n'.repeat(depth) + ':1\r\n');
  assert.equal(new FrameScanner().scan(stream, 0, stream.length), stream.length);
  let { reply } = decodeReply(stream);
  let found = 0;
  for (; reply.items !== null; found++) reply = reply.items[0];
  assert.equal(found, depth);
});

test('a big reply is copied once, what follows it not at all, and a reply of many parts about twice', (t) => {
  let copied = 0;
  const { copy } = Buffer.prototype;
  t.mock.method(Buffer.prototype, 'copy', function (this: Buffer, ...args: Parameters<typeof copy>) {
    const size = copy.apply(this, args);
    copied += size;
    return size;
  });
  const inChunks = (stream: Buffer): Buffer[] =>
    Array.from({ length: Math.ceil(stream.length / 65536) }, (_, i) => stream.subarray(i * 65536, (i + 1) * 65536));
  const big = Buffer.concat([Buffer.from('$20000000\r\n'), Buffer.alloc(20_000_000, 'x'), Buffer.from('\r\n')]);
  const small = Buffer.from('+OK\r\n'.repeat(20_000));
  assert.equal(read(inChunks(Buffer.concat([Buffer.from(':1\r\n'), big, small]))).length, 20_002);
  assert.ok(copied <= big.length + 100, `${copied} bytes copied for ${big.length}`);

  for (const element of [':12345\r\n', '$5\r\nhello\r\n', `+${'s'.repeat(100_000)}\r\n`]) {
    copied = 0;
    const count = Math.ceil(5_000_000 / element.length);
    const parts = Buffer.from(`*${count}\r\n${element.repeat(count)}`);
    const usedMs = startCpuClock();
    assert.equal(read(inChunks(parts)).length, 1);
    assert.ok(copied <= 3 * parts.length, `${copied} bytes copied for ${parts.length}`);
    // About 30 ms; an aggregate that is parsed again with each piece takes many seconds.
    assert.ok(usedMs() < 3000);
  }
});
