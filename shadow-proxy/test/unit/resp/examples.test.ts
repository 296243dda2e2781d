/** Requests and replies by example: what each means, at its limits, and what it is refused with. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as decode from '../../../src/resp/decode.js';
import * as encode from '../../../src/resp/encode.js';
import { FrameReader } from '../../../src/resp/frame-reader.js';
import { RequestParser } from '../../../src/resp/request.js';
import { Scalars } from '../../../src/resp/scalars.js';
import { FrameScanner, ProtocolError } from '../../../src/resp/frame-scanner.js';
import { CommandWriter } from '../../../src/resp/command-writer.js';

const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1');
const messageOf = (error: unknown): string => (error instanceof ProtocolError ? error.message : String(error));

/** The arguments of each command, and the error that ended them. */
function parsed(chunks: readonly Buffer[], parser = new RequestParser()): (string | string[])[] {
  const found: (string | string[])[] = [];
  try {
    for (const chunk of chunks) {
      parser.feed(chunk);
      while (parser.next()) {
        const { frame, start, end, argc, argStart, argEnd } = parser;
        const args = Array.from({ length: argc }, (_, i) => frame.toString('latin1', argStart[i], argEnd[i]));
        assert.equal(frame.toString('latin1', start, end), encode.encodeCommand(args.map(latin1)).toString('latin1'));
        found.push(args);
      }
    }
  } catch (error) {
    found.push(messageOf(error));
  }
  return found;
}

const bytewise = (stream: Buffer): Buffer[] => Array.from(stream, (_, i) => Buffer.from(stream.subarray(i, i + 1)));
/** The stream whole, byte by byte, and in two pieces, cut at each place of a short one. */
const splits = (stream: Buffer): Buffer[][] => [
  [stream],
  bytewise(stream),
  ...(stream.length > 80 ? [] : Array.from(stream, (_, i) => [stream.subarray(0, i), stream.subarray(i)].map(copy))),
];
const copy = (bytes: Buffer): Buffer => Buffer.from(bytes);

test('a request means the same however it is cut', () => {
  const cases: readonly (readonly [stream: string, found: (string | string[])[]])[] = [
    ['', []],
    ['\r\n', []],
    ['\n \t\r\nPING\r\n', [['PING']]],
    ['PING', []],
    ['PING\n', [['PING']]],
    ['PING\r', []],
    ['GET  a\tb \r\n', [['GET', 'a', 'b']]],
    ['GET a\vb\f \v c\r\n', [['GET', 'a\vb\f', 'c']]],
    ['SET "a b" \'c d\'\n', [['SET', 'a b', 'c d']]],
    ['SET "" \'\'\n', [['SET', '', '']]],
    ['SET "\\x41\\xfF\\xg0\\n\\r\\t\\b\\a\\"\\\\\\q"\n', [['SET', 'A\xffxg0\n\r\t\b\x07"\\q']]],
    ["SET '\\'\\n' \\n\n", [['SET', "'\\n", '\\n']]],
    ['SET a"b c"\n', [['SET', 'ab c']]],
    ['SET "a\'b" \'c"d\'\n', [['SET', "a'b", 'c"d']]],
    ['SET "a"b\n', ['unbalanced quotes in request']],
    ['SET "a\n', ['unbalanced quotes in request']],
    ["SET 'a\n", ['unbalanced quotes in request']],
    ["SET 'a\\'\n", ['unbalanced quotes in request']],
    ['SET "a\\\n', ['unbalanced quotes in request']],
    ['SET "\\x4"\n', [['SET', 'x4']]],
    ['*0\r\n*-1\r\n*-12\r\nPING\n', [['PING']]],
    ['*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$0\r\n\r\n', [['PING'], ['GET', '']]],
    ['*1\r\n$11\r\n$3\r\nfoo\r\n12\r\n', [['$3\r\nfoo\r\n12']]],
    ['*12\r\n' + '$1\r\na\r\n'.repeat(12), [new Array<string>(12).fill('a')]],
    ['*1\r\n$4\r\nPIN', []],
    ['*\r\n', ['invalid multibulk length']],
    ['*01\r\n', ['invalid multibulk length']],
    ['*-0\r\n', ['invalid multibulk length']],
    ['*-\r\n', ['invalid multibulk length']],
    ['*x\r\n', ['invalid multibulk length']],
    ['*1x\r\n', ['invalid multibulk length']],
    ['*+1\r\n', ['invalid multibulk length']],
    ['*2147483648\r\n', ['invalid multibulk length']],
    ['*-9223372036854775808\r\nPING\n', [['PING']]],
    ['*-9223372036854775809\r\nPING\n', ['invalid multibulk length']],
    ['*-9993372036854775808\r\nPING\n', ['invalid multibulk length']],
    ['*123456789012345678901\r\n', ['invalid multibulk length']],
    ['*1\r\n:4\r\n', ["expected '$', got ':'"]],
    ['*1\r\nabc\r\n', ["expected '$', got 'a'"]],
    ['*1\r\n$\r\n', ['invalid bulk length']],
    ['*1\r\n$-1\r\n', ['invalid bulk length']],
    ['*1\r\n$04\r\n', ['invalid bulk length']],
    ['*1\r\n$4x\r\n', ['invalid bulk length']],
    ['*1\r\n$536870913\r\n', ['invalid bulk length']],
    ['*1\r\n$536870912\r\n', []],
    ['PING\n*1\r\n$x\r\n', [['PING'], 'invalid bulk length']],
  ];
  for (const [stream, found] of cases)
    for (const chunks of splits(latin1(stream))) assert.deepEqual([stream, parsed(chunks)], [stream, found]);
});

test('a line of 64 KiB is taken, a longer one is refused', () => {
  const size = 64 * 1024;
  const cases: readonly (readonly [stream: string, found: (string | string[])[]])[] = [
    ['a'.repeat(size) + '\n', [['a'.repeat(size)]]],
    ['a'.repeat(size + 1) + '\n', ['too big inline request']],
    ['a'.repeat(size), []],
    ['a'.repeat(size + 1), ['too big inline request']],
    [`*${'1'.repeat(size - 1)}`, []],
    [`*${'1'.repeat(size)}`, ['too big mbulk count string']],
    [`*${'1'.repeat(size - 1)}\r\n`, ['invalid multibulk length']],
    [`*1\r\n$${'1'.repeat(size - 1)}`, []],
    [`*1\r\n$${'1'.repeat(size)}`, ['too big bulk count string']],
    [`*1\r\n$${'1'.repeat(size - 1)}\r\n`, ['invalid bulk length']],
  ];
  for (const [stream, found] of cases)
    assert.deepEqual([stream.length, parsed([latin1(stream)])], [stream.length, found]);
});

test('a client that has yet to authenticate may send ten arguments of 16 KiB', () => {
  const of = (count: number, size: number): Buffer =>
    encode.encodeCommand(Array.from({ length: count }, (_, i) => (i === 0 ? 'a'.repeat(size) : 'b')));
  const cases: readonly (readonly [stream: Buffer, found: string])[] = [
    [of(10, 16384), 'a command'],
    [of(11, 1), 'unauthenticated multibulk length'],
    [of(1, 16385), 'unauthenticated bulk length'],
  ];
  for (const [stream, found] of cases) {
    const parser = new RequestParser();
    parser.unauthenticated = true;
    const [one] = parsed([stream], parser);
    assert.equal(typeof one === 'string' ? one : 'a command', found);
    assert.equal(typeof parsed([stream])[0], 'object');
  }
});

test('a parser takes as many arguments, and as long ones, as its limits allow', () => {
  const parser = (): RequestParser => Object.assign(new RequestParser(), { maxArguments: 2, maxBulk: 3 });
  assert.deepEqual(parsed([latin1('*2\r\n$3\r\nabc\r\n$0\r\n\r\n')], parser()), [['abc', '']]);
  assert.deepEqual(parsed([latin1('*3\r\n')], parser()), ['invalid multibulk length']);
  assert.deepEqual(parsed([latin1('*2\r\n$4\r\n')], parser()), ['invalid bulk length']);
});

test('what came and is no command yet is held, in 256 bytes at least once the chunk is let go', () => {
  const parser = new RequestParser();
  assert.deepEqual([parser.pending, parser.held], [0, 0]);
  parsed([latin1('PING\n*1\r\n$2\r\na')], parser);
  assert.deepEqual([parser.pending, parser.held], [9, 9]);
  parser.release();
  assert.deepEqual([parser.pending, parser.held, parser.frame.length], [9, 256, 0]);
  parser.release();
  assert.deepEqual(parsed([latin1('b\r\nPING\n')], parser), [['ab'], ['PING']]);
  parser.release();
  assert.deepEqual([parser.pending, parser.held], [0, 0]);
});

test('a chunk that lies where the last one ended in memory is used as it is', () => {
  const memory = latin1('..*1\r\n$2\r\nab\r\n..');
  const parser = new RequestParser();
  parser.feed(memory, 2, 7);
  assert.equal(parser.next(), false);
  parser.feed(memory, 7, memory.length - 2);
  assert.equal(parser.next(), true);
  assert.deepEqual([parser.frame === memory, parser.start, parser.end], [true, 2, memory.length - 2]);
  assert.deepEqual([parser.argStart[0], parser.argEnd[0]], [10, 12]);
});

/** Frames that a reader finds, and the error that ended them. */
function framed(chunks: readonly Buffer[], together = 1): string[] {
  const reader = new FrameReader();
  const found: string[] = [];
  try {
    for (const chunk of chunks) {
      reader.feed(chunk);
      while (reader.next(together)) found.push(reader.buffer.toString('latin1', reader.start, reader.end));
    }
  } catch (error) {
    found.push(messageOf(error));
  }
  return found;
}

const REPLIES = [
  '+OK\r\n', '-ERR no\r\n', ':-12\r\n', ',1.5\r\n', '(123\r\n', '#t\r\n', '_\r\n', '$5\r\nhe\rlo\r\n', '$0\r\n\r\n',
  '$-1\r\n', '=7\r\ntxt:abc\r\n', '!3\r\nERR\r\n', '*-1\r\n', '*0\r\n', '*2\r\n:1\r\n*1\r\n$1\r\na\r\n', '~1\r\n+a\r\n',
  '%1\r\n+a\r\n:1\r\n', '%0\r\n', '>2\r\n+message\r\n+a\r\n', '|1\r\n+ttl\r\n:3\r\n+OK\r\n', '|0\r\n:1\r\n',
]; // prettier-ignore

test('replies are the same frames however they are cut, one by one or several together', () => {
  const stream = latin1(REPLIES.join(''));
  const cut = Array.from(stream, (_, i) => [copy(stream.subarray(0, i)), copy(stream.subarray(i))]);
  for (const chunks of [[stream], bytewise(stream), ...cut]) {
    assert.deepEqual(framed(chunks), REPLIES);
    const threes = REPLIES.flatMap((_, i) => (i % 3 === 0 ? [REPLIES.slice(i, i + 3).join('')] : []));
    assert.deepEqual(framed(chunks, 3), threes);
  }
});

test('what is no reply is refused with what is wrong', () => {
  const length = 'a reply with an invalid length';
  const cases: readonly (readonly [stream: string, message: string])[] = [
    ['x', 'a reply that starts with byte 0x78'],
    ['\n', 'a reply that starts with byte 0x0a'],
    ['$\r\n', length],
    ['$x\r\n', length],
    ['$1x', length],
    ['$-2\r\n', length],
    ['$-\r\n', length],
    ['%-1\r\n', length],
    ['=-1\r\n', length],
    ['~-1\r\n', length],
    ['$2147483649\r\n', length],
    [`$${'1'.repeat(33)}`, 'a length with too many digits'],
    [`+${'a'.repeat(2 ** 20)}`, 'a reply line longer than 1 MiB'],
  ];
  for (const [stream, message] of cases) assert.deepEqual(framed([latin1(stream)]), [message], stream.slice(0, 20));
  const fits = ['$2147483648\r\n', `$${'0'.repeat(32)}`, `+${'a'.repeat(2 ** 20 - 1)}`];
  for (const stream of fits) assert.deepEqual(framed([latin1(stream)]), [], stream.slice(0, 20));
});

test('a scan that ends too early says how many bytes it needs, and is likely to', () => {
  const cases: readonly (readonly [stream: string, need: number, likely: number])[] = [
    ['', 3, 3],
    ['+', 3, 3],
    ['+OK', 5, 5],
    ['+OK\r', 5, 5],
    [`+${'a'.repeat(63)}`, 66, 66],
    [`+${'a'.repeat(64)}`, 67, 99],
    ['$', 3, 3],
    ['$10', 5, 5],
    ['$10\r', 5, 5],
    ['$10\r\n', 17, 17],
    ['$10\r\nabc', 17, 17],
    ['*2\r\n', 10, 10],
    ['*2\r\n:1\r\n', 11, 11],
    ['*9\r\n', 14, 14],
    ['*2\r\n$10\r\n', 24, 24],
    ['%2\r\n', 14, 14],
    ['|2\r\n', 14, 14],
    ['|1\r\n+a\r\n+b\r\n', 15, 15],
  ];
  for (const [stream, need, likely] of cases) {
    const scanner = new FrameScanner();
    const bytes = latin1(`....${stream}`);
    assert.equal(scanner.scan(bytes, 4, bytes.length), -1);
    assert.deepEqual([stream, scanner.need, scanner.likely], [stream, need, likely]);
  }
});

test('a reader skips what is known to be whole, also where a scan had begun', () => {
  const reader = new FrameReader();
  reader.feed(latin1('..+OK\r\n:1'), 2);
  assert.deepEqual([reader.fedBytes, reader.at, reader.limit], [7, 2, 9]);
  reader.skip(5);
  assert.equal(reader.next(), false);
  reader.feed(latin1('2\r\n*2\r\n:1\r\n'));
  assert.equal(reader.next(), true);
  assert.equal(reader.buffer.toString('latin1', reader.start, reader.end), ':12\r\n');
  assert.equal(reader.next(), false);
  const memory = latin1('*2\r\n:1\r\n+a\r\n+b\r\n');
  const begun = new FrameReader();
  begun.feed(memory, 0, 8);
  assert.equal(begun.next(), false);
  begun.feed(memory, 8);
  begun.skip(12);
  assert.equal(begun.next(), true);
  assert.equal(memory.toString('latin1', begun.start, begun.end), '+b\r\n');
});

test('a decoded reply has its type, and bytes, elements or neither', () => {
  type Shown = string | null | readonly [type: string, items: readonly Shown[]];
  const shown = ({ type, data, items }: decode.Reply): Shown =>
    items === null ? (data === null ? null : type + data.toString('latin1')) : [type, items.map(shown)];
  const wanted: readonly Shown[] = [
    '+OK', '-ERR no', ':-12', ',1.5', '(123', '#t', null, '$he\rlo', '$', null, '=txt:abc', '!ERR', null, ['*', []],
    ['*', [':1', ['*', ['$a']]]], ['~', ['+a']], ['%', ['+a', ':1']], ['%', []], ['>', ['+message', '+a']], '+OK', ':1',
  ]; // prettier-ignore
  for (const [i, stream] of REPLIES.entries()) {
    const { reply, end } = decode.decodeReply(latin1(`..${stream}..`), 2);
    assert.deepEqual([stream, shown(reply), end], [stream, wanted[i], stream.length + 2]);
    assert.equal(decode.isNull(reply), wanted[i] === null);
    assert.equal(decode.isError(reply), /^[-!]/.test(stream));
    const text = typeof wanted[i] === 'string' ? wanted[i].slice(1) : '';
    assert.deepEqual([decode.text(reply), decode.errorCode(reply)], [text, text.split(' ')[0]]);
  }
});

test('the arguments of a command are found in its frame', () => {
  const args = ['SET', '', 'a\r\nb', ...Array.from({ length: 9 }, (_, i) => 'x'.repeat(i * 12))];
  const frame = Buffer.concat([latin1('..'), encode.encodeCommand(args)]);
  const [starts, ends]: [number[], number[]] = [[], []];
  assert.deepEqual(
    [decode.argumentCount(frame, 2), decode.locateArguments(frame, 2, starts, ends)],
    [args.length, args.length],
  );
  assert.deepEqual(
    starts.map((start, i) => frame.toString('latin1', start, ends[i])),
    args,
  );
  assert.deepEqual(decode.argumentsOf(frame, 2).map(String), args);
});

test('replies and commands are written byte for byte', () => {
  const cases: readonly (readonly [bytes: Buffer, text: string])[] = [
    [encode.bulk(null), '$-1\r\n'],
    [encode.bulk(null, 3), '_\r\n'],
    [encode.bulk('é'), '$2\r\n\xc3\xa9\r\n'],
    [encode.bulk(latin1('\xff')), '$1\r\n\xff\r\n'],
    [encode.simple('OK'), '+OK\r\n'],
    [encode.error('ERR a\r\nb\nc'), '-ERR a b c\r\n'],
    [encode.integer(-3), ':-3\r\n'],
    [encode.integer(2n ** 63n), ':9223372036854775808\r\n'],
    [encode.array([]), '*0\r\n'],
    [encode.array([encode.OK, encode.integer(1)]), '*2\r\n+OK\r\n:1\r\n'],
    [encode.map([encode.OK, encode.integer(1)], 2), '*2\r\n+OK\r\n:1\r\n'],
    [encode.map([encode.OK, encode.integer(1)], 3), '%1\r\n+OK\r\n:1\r\n'],
    [encode.encodeCommand([]), '*0\r\n'],
    [encode.encodeCommand(['GET', latin1('\xff'), 10]), '*3\r\n$3\r\nGET\r\n$1\r\n\xff\r\n$2\r\n10\r\n'],
    [encode.encodeCommand(['é', -1.5]), '*2\r\n$2\r\n\xc3\xa9\r\n$4\r\n-1.5\r\n'],
    ...[0, 9, 10, 16, 17, 99, 100, 1000].map((size): [Buffer, string] => {
      const text = 'abcdefghij'.repeat(100).slice(0, size);
      return [encode.encodeCommand([text]), `*1\r\n$${size}\r\n${text}\r\n`];
    }),
    [new ProtocolError('a\r\nb\xff').toReply(), '-ERR Protocol error: a  b\xff\r\n'],
  ];
  for (const [bytes, text] of cases) assert.equal(bytes.toString('latin1'), text);
});

test('commands side by side are written byte for byte, from a buffer that grows', () => {
  for (const capacity of [1, 16, 64, 256]) {
    const writer = new CommandWriter(capacity);
    assert.equal(writer.length, 0);
    writer.command(12).argument(latin1('..abc..'), 2, 5).argument(latin1('')).raw(latin1('$1\r\nx\r\n'));
    for (const value of [0, 9, 10, -1, -10, 99, 100, 4_294_967_296]) writer.integer(value);
    writer.argument(latin1('y'.repeat(100)));
    const text =
      '*12\r\n$3\r\nabc\r\n$0\r\n\r\n$1\r\nx\r\n$1\r\n0\r\n$1\r\n9\r\n$2\r\n10\r\n$2\r\n-1\r\n$3\r\n-10\r\n' +
      `$2\r\n99\r\n$3\r\n100\r\n$10\r\n4294967296\r\n$100\r\n${'y'.repeat(100)}\r\n`;
    assert.deepEqual([writer.finish().toString('latin1'), writer.length], [text, text.length]);
  }
});

test('replies are read one after the other, each as the type that is asked for', () => {
  const scalars = new Scalars(latin1('..$3\r\nabc\r\n$-1\r\n:-42\r\n*10\r\n-ERR no\r\n+OK\r\n$0\r\n\r\n:7\r\n'), 2);
  const found = [
    scalars.isError,
    scalars.text(),
    scalars.bytes(),
    scalars.integer(),
    scalars.integer(),
    scalars.isError,
    scalars.text(),
    scalars.skipLine(),
    scalars.text(),
    scalars.text(),
    scalars.at,
  ];
  assert.deepEqual(found, [false, 'abc', null, -42, 10, true, 'ERR no', undefined, '', '7', 51]);
  assert.equal(new Scalars(latin1('$-1\r\n')).text(), '');
});
