/**
 * What a client gets that does not speak RESP: judged by a real Redis, byte by byte.
 *
 * Needs real servers: errors of a Redis for malformed bytes, and where it closes.
 */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { startTarget, startRedis, type LocalServer } from '../../../src/local/servers.js';
import { RequestParser } from '../../../src/resp/request.js';
import { ProtocolError } from '../../../src/resp/frame-scanner.js';
import { redisSince, sourceHas } from '../../support/servers.js';
import { needs } from '../../support/needs.js';
import { cut, cuts } from '../../unit/resp/streams.js';

let redis: LocalServer;
before(async () => {
  redis = await startRedis();
});
after(() => redis.stop());

/** Everything that a server answers to `bytes` and the end of the stream. */
function answer(server: LocalServer, bytes: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = connect(server.port, server.host);
    const received: Buffer[] = [];
    socket.on('data', (chunk) => received.push(chunk));
    // A server that refuses closes with bytes unread, which resets the connection; its answer came before.
    socket.on('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ECONNRESET' || error.code === 'EPIPE' ? undefined : reject(error),
    );
    socket.on('close', () => resolve(Buffer.concat(received)));
    socket.end(bytes);
  });
}

const [quote, closing, longest] = (await redisSince(7, 0)) ? ["'", "' ", 128] : ['`', '`, ', Infinity];
const sinceRedis86 = await sourceHas('redis', '8.6');
/** Before Redis 8.6 an empty list of arguments is shown, too. */
const listsNone = !sinceRedis86;

/** The source's answer to a command that it does not know. */
function unknownCommand(args: readonly Buffer[]): Buffer {
  const [name, ...rest] = args.map((arg) => arg.toString('latin1'));
  let shown = '';
  for (const arg of rest) if (shown.length < 128) shown += `${quote}${arg.slice(0, 128 - shown.length)}${closing}`;
  const list = rest.length === 0 && !listsNone ? '' : `, with args beginning with: ${shown}`;
  const text = `unknown command ${quote}${name.slice(0, longest)}${quote}${list}`;
  return Buffer.from(`-ERR ${text.replace(/[\r\n]/g, ' ')}\r\n`, 'latin1');
}

/** Byte by byte; what is too long, from a little before it is. */
function bytewise(bytes: Buffer): Buffer[] {
  const whole = bytes.length > 65_000 ? 65_000 : 0;
  return [bytes.subarray(0, whole), ...cut(bytes.subarray(whole), 'every byte')].filter(({ length }) => length > 0);
}

/** What the parser would have a server answer, where every command is an unknown one. */
function predicted(chunks: readonly Buffer[], parser = new RequestParser()): Buffer {
  const answers: Buffer[] = [];
  try {
    for (const chunk of chunks) {
      parser.feed(chunk);
      while (parser.next()) {
        answers.push(
          unknownCommand(
            Array.from({ length: parser.argc }, (_, i) => parser.frame.subarray(parser.argStart[i], parser.argEnd[i])),
          ),
        );
      }
    }
  } catch (error) {
    assert.ok(error instanceof ProtocolError);
    answers.push(error.toReply());
  }
  return Buffer.concat(answers);
}

const CASES: readonly string[] = [
  // Counts.
  '*01\r\n$1\r\nx\r\n',
  '*-0\r\nx\r\n',
  '*-\r\nx\r\n',
  '*\r\nx\r\n',
  '*-01\r\nx\r\n',
  '*-1\r\nx\r\n',
  '*-5\r\nx\r\n',
  '*0\r\nx\r\n',
  '*00\r\nx\r\n',
  '*+1\r\n',
  '*2147483648\r\n',
  '*2147483647\r\n',
  '*1048577\r\n',
  '*99999999999999999999\r\n',
  '*-99999999999999999999\r\n',
  '*abc',
  '*abc\r',
  '*abc\r\n',
  '*1x\r\n',
  '* 1\r\n',
  '*1 \r\n',
  '*1\rX$1\r\nx\r\n',
  '*1.0\r\n',
  // Lengths.
  '*1\r\n$01\r\nx\r\n',
  '*1\r\n$-1\r\n',
  '*1\r\n$-0\r\n',
  '*1\r\n$536870913\r\n',
  '*1\r\n$abc\r\n',
  '*1\r\n$\r\n',
  '*1\r\n$1\rXxXX',
  '*1\r\n$1x\r\nx\r\n',
  '*1\r\n$1',
  '*1\r\n$99999999999999999999\r\n',
  // What is not a length.
  '*1\r\n!3\r\n',
  '*1\r\n!',
  '*1\r\n!\r',
  '*1\r\n\r\n',
  '*3\r\nX\r\n',
  '*3\r\nX',
  '*1\r\n\xff\r\n',
  '*1\r\n\x01\r\n',
  '*2\r\n$1\r\nx\r\n:1\r\n',
  '*1\r\n*1\r\n',
  // Lines.
  '"x y\r\n',
  '"x"y\r\n',
  "'x\r\n",
  "'x'y\r\n",
  'xx "\\x41\\n\\q\\x4"\r\n',
  "xx 'a\\'b\\n'\r\n",
  'xx a\vb\r\n',
  'xx\va\r\n',
  '\vxx\fa\r\n',
  'xx a\tb\r\n',
  'xx a\rb\r\n',
  '  xx\n',
  '\r\n\nxx\n',
  'xx ""\r\n',
  'xx a"b c"\r\n',
  'xx "\\"" \'"\'\r\n',
  'xx \xe9\x85\xa0\r\n',
  'xx "a"\v"b"\r\n',
  'xx \\x41\r\n',
  // Too long.
  `*${'1'.repeat(70000)}`,
  `*1\r\n$${'1'.repeat(70000)}`,
  'x'.repeat(70000),
  `*1\r\nX${'1'.repeat(70000)}`,
  `${'x'.repeat(65536)}\n`,
  `*${'a'.repeat(70000)}`,
];

// What Valkey reads in its own way: from 8.1 on the byte 255 in a line is a blank, from 9.1 on quotes may end within a
// word, and the line of a count or length ends with both bytes.
const [blanks, joins] = await Promise.all([sourceHas('valkey', '8.1'), sourceHas('valkey', '9.1')]);
const OTHERWISE = new Set(
  joins ? ['*1\rX$1\r\nx\r\n', '*1\r\n$1\rXxXX', '"x"y\r\n', "'x'y\r\n", 'xx "a"\v"b"\r\n'] : [],
);
// Valkey 8 reads what follows a line of blanks as a line, too.
const BLANK_LINE = blanks && !(await sourceHas('valkey', '9.0')) ? /(^|\n)([ \r]* [ \r]*|\r\r+)\n/ : null;
// Redis 8.6 waits for the end of the line of a length without a bound.
if (sinceRedis86) for (const sign of ['$', 'X']) OTHERWISE.add(`*1\r\n${sign}${'1'.repeat(70000)}`);
// Redis 6.2 takes no more arguments than KeyDB.
if (!(await redisSince(7, 0))) for (const text of ['*2147483647\r\n', '*1048577\r\n']) OTHERWISE.add(text);

test('malformed input is refused where Redis refuses it, with its own text, however it is split', async () => {
  for (const text of CASES.filter((each) => !OTHERWISE.has(each))) {
    const bytes = Buffer.from(text, 'latin1');
    const expected = (await answer(redis, bytes)).toString('latin1');
    const name = JSON.stringify(text.slice(0, 60));
    assert.equal(predicted([bytes]).toString('latin1'), expected, `${name} in one piece`);
    assert.equal(predicted(bytewise(bytes)).toString('latin1'), expected, `${name} byte by byte`);
  }
});

test('arbitrary near misses of RESP get what Redis answers', async () => {
  const piece = fc.oneof(
    fc.constantFrom(
      '*',
      '$',
      '-',
      '+',
      ':',
      '0',
      '1',
      '2',
      '3',
      '9',
      '\r\n',
      '\r\n',
      '\n',
      ' ',
      '\\',
      'x',
      'y',
      ...(blanks ? [] : ['\xff']),
      ...(joins ? [] : ['\r', '"', "'"]),
    ),
    fc.constantFrom('*1\r\n', '*2\r\n', '$1\r\nx\r\n', '$2\r\nyx\r\n', '$0\r\n\r\n', '\\x41', 'yyy\r\n'),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 14 }), cuts, async (pieces, at) => {
      const text = pieces.join('');
      fc.pre(BLANK_LINE?.test(text) !== true);
      const bytes = Buffer.from(text, 'latin1');
      assert.equal(predicted(cut(bytes, at)).toString('latin1'), (await answer(redis, bytes)).toString('latin1'));
    }),
    { numRuns: 1500 },
  );
});

test("a client that has yet to authenticate has Redis's smaller limits", async () => {
  const guarded = await startRedis({ config: { requirepass: 'secret' } });
  try {
    for (const text of [
      '*11\r\n',
      '*10\r\n$16385\r\n',
      '*10\r\n$16384\r\n',
      '*2147483648\r\n',
      '*1\r\n$536870913\r\n',
    ]) {
      const parser = new RequestParser();
      parser.unauthenticated = true;
      const bytes = Buffer.from(text);
      assert.equal(predicted([bytes], parser).toString(), (await answer(guarded, bytes)).toString(), text);
    }
  } finally {
    await guarded.stop();
  }
});

test('with its limit lowered, a command of more arguments than KeyDB takes is refused as KeyDB refuses it', async (t) => {
  if (!(await needs(t, 'target<7.0'))) return;
  const keydb = await startTarget();
  try {
    for (const count of [1_048_576, 1_048_577]) {
      const parser = new RequestParser();
      parser.maxArguments = 1_048_576;
      const bytes = Buffer.from(`*${count}\r\n`);
      assert.equal(predicted([bytes], parser).toString(), (await answer(keydb, bytes)).toString(), String(count));
    }
  } finally {
    await keydb.stop();
  }
});
