/** Commands of clients, however they are cut: found, kept without copies, refused. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import fc from 'fast-check';
import { encodeCommand } from '../../../src/resp/encode.js';
import { RequestParser } from '../../../src/resp/request.js';
import { startCpuClock } from '../../support/cpu.js';
import { arrayRequest, cut, cuts, request } from './streams.js';

/** One command as the parser gives it: not copied, so that bytes overwritten later would show. */
interface Parsed {
  readonly frame: Buffer;
  readonly args: Buffer[];
}

function parse(chunks: readonly Buffer[], parser = new RequestParser()): Parsed[] {
  const commands: Parsed[] = [];
  for (const chunk of chunks) {
    parser.feed(chunk);
    while (parser.next()) {
      const args = Array.from({ length: parser.argc }, (_, i) =>
        parser.frame.subarray(parser.argStart[i], parser.argEnd[i]),
      );
      commands.push({ frame: parser.frame.subarray(parser.start, parser.end), args });
    }
  }
  return commands;
}

test('any split of any stream of requests gives the same commands', () => {
  fc.assert(
    fc.property(fc.array(request, { maxLength: 10 }), cuts, (requests, at) => {
      const parser = new RequestParser();
      const commands = parse(cut(Buffer.concat(requests.map(({ bytes }) => bytes)), at), parser);
      assert.deepEqual(
        commands.map(({ args }) => args),
        requests.map(({ value }) => value),
      );
      for (const { frame, args } of commands) assert.deepEqual(frame, encodeCommand(args));
      assert.equal(parser.pending, 0);
    }),
    { numRuns: 1000 },
  );
});

test('a stream that stops in the middle of a command gives those before it, and goes on', () => {
  fc.assert(
    fc.property(
      arrayRequest,
      arrayRequest,
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      cuts,
      (first, second, part, at) => {
        const parser = new RequestParser();
        const stop = Math.floor(part * second.bytes.length);
        const before = parse(cut(Buffer.concat([first.bytes, second.bytes.subarray(0, stop)]), at), parser);
        assert.deepEqual(
          before.map(({ args }) => args),
          [first.value],
        );
        assert.equal(parser.pending, stop);
        assert.deepEqual(
          parse([second.bytes.subarray(stop)], parser).map(({ args }) => args),
          [second.value],
        );
      },
    ),
    { numRuns: 300 },
  );
});

/** How many bytes are copied from one buffer to another while `work` runs. */
function bytesCopied(t: TestContext, work: () => void): number {
  let copied = 0;
  const { copy } = Buffer.prototype;
  const mocked = t.mock.method(Buffer.prototype, 'copy', function (this: Buffer, ...args: Parameters<typeof copy>) {
    const size = copy.apply(this, args);
    copied += size;
    return size;
  });
  work();
  mocked.mock.restore();
  return copied;
}

const SMALL = encodeCommand(['SET', 'key', 'value']);
const inChunks = (stream: Buffer, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(stream.length / size) }, (_, i) => stream.subarray(i * size, (i + 1) * size));

test('a command that came in one chunk is that chunk, not a copy', (t) => {
  const chunk = Buffer.concat([SMALL, SMALL]);
  assert.equal(
    bytesCopied(t, () => assert.equal(parse([chunk]).length, 2)),
    0,
  );
});

test('a big value is gathered once, and what is pipelined behind it not at all', (t) => {
  const big = encodeCommand(['SET', 'key', Buffer.alloc(250_000, 'x')]);
  const behind = Buffer.concat(new Array<Buffer>(1000).fill(SMALL));
  // The chunks' boundaries do not fall on the frame's: its last chunk holds the beginning of what follows.
  const chunks = inChunks(Buffer.concat([SMALL, big, behind]), 65536);
  let commands: Parsed[] = [];
  const copied = bytesCopied(t, () => (commands = parse(chunks)));
  assert.equal(commands.length, 1002);
  // The small ones that a boundary cuts are gathered too.
  assert.ok(copied <= big.length + 10 * SMALL.length, `${copied} bytes copied for ${big.length}`);
});

test('of a value that is larger than is believed, what has come is copied about once more', (t) => {
  const big = encodeCommand(['SET', 'key', Buffer.alloc(20_000_000, 'x')]);
  let commands: Parsed[] = [];
  const copied = bytesCopied(t, () => (commands = parse(inChunks(Buffer.concat([SMALL, big, SMALL]), 65536))));
  assert.deepEqual(commands[1].frame, big);
  assert.ok(copied <= 3 * big.length, `${copied} bytes copied for ${big.length}`);
});

test('a line that comes byte by byte is looked at once, not once a byte', (t) => {
  for (const line of ['PING '.padEnd(20_000, 'x'), `*${'1'.repeat(20_000)}`, `*1\r\n$${'1'.repeat(20_000)}`]) {
    const bytes = Buffer.from(line);
    let scanned = 0;
    const { indexOf } = Buffer.prototype;
    const mocked = t.mock.method(Buffer.prototype, 'indexOf', function (this: Buffer, value: number, from: number) {
      const found = indexOf.call(this, value, from);
      scanned += (found === -1 ? this.length : found) - from;
      return found;
    });
    const parser = new RequestParser();
    parse(cut(bytes, 'every byte'), parser);
    mocked.mock.restore();
    assert.equal(parser.pending, bytes.length);
    assert.ok(scanned < 3 * bytes.length, `${scanned} bytes looked at for ${bytes.length}`);
  }
});

test('memory is set aside for what has come, not for what is announced', () => {
  for (const announced of ['*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\n', '*1000000\r\n$3\r\nDEL\r\n']) {
    const parser = new RequestParser();
    parse([Buffer.from(announced), Buffer.from('$')], parser);
    parser.release();
    assert.ok(parser.held <= 256 * 1024, `${parser.held} bytes`);
  }
});

test('what was gathered for a command is let go of once the command is done with', () => {
  const parser = new RequestParser();
  assert.equal(parse(inChunks(encodeCommand(['SET', 'k', Buffer.alloc(1 << 20)]), 65536), parser).length, 1);
  parser.release();
  assert.equal(parser.held, 0);
});

test('many big values in one command are copied about twice, not once for each', (t) => {
  const big = encodeCommand([
    'MSET',
    ...Array.from({ length: 200 }, (_, i) => (i % 2 === 0 ? `key${i}` : Buffer.alloc(200_000, 'x'))),
  ]);
  const copied = bytesCopied(t, () => assert.equal(parse(inChunks(big, 65536)).length, 1));
  assert.ok(copied <= 3 * big.length, `${copied} bytes copied for ${big.length}`);
});

test('a command of many arguments in many chunks is parsed once, not once per chunk', () => {
  const args = Array.from({ length: 400_000 }, (_, i) => `argument-${i}`);
  const chunks = inChunks(encodeCommand(['DEL', ...args]), 1024);
  const usedMs = startCpuClock();
  const [{ args: parsed }] = parse(chunks);
  // About 60 ms; parsing the command again with each of the 9,000 chunks would take minutes.
  assert.ok(usedMs() < 5000);
  assert.equal(parsed.length, args.length + 1);
  assert.equal(parsed[200_000].toString(), args[199_999]);
});

test('a value that is announced and never comes takes no memory', () => {
  const parser = new RequestParser();
  const before = process.memoryUsage().rss;
  parse([Buffer.from('*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\n'), Buffer.from('x')], parser);
  assert.ok(process.memoryUsage().rss - before < 64 * 1024 * 1024);
  parse([Buffer.from('*2000000000\r\n$3\r\n'), Buffer.from('D')]);
  assert.ok(process.memoryUsage().rss - before < 64 * 1024 * 1024);
});
