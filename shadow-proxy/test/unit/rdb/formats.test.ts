/** Encodings, checksums and versions of payloads are read without a server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Crc64 } from '../../../src/copy/rdb/crc64.js';
import { decodeDump, encodeDump, transcode, TranscodeError } from '../../../src/copy/rdb/transcode.js';
import type { TranscodeErrorCode, Value } from '../../../src/copy/rdb/transcode.js';
import { seal } from '../../integration/rdb/seal.js';
import { ANCIENT, join, part } from '../../integration/rdb/ancient.js';
import { startCpuClock } from '../../support/cpu.js';

const crc = (bytes: Buffer): string => {
  const { high, low } = new Crc64().update(bytes, 0, bytes.length);
  return high.toString(16).padStart(8, '0') + low.toString(16).padStart(8, '0');
};

/** Asserts the code, and returns the error for more. */
function refused(code: TranscodeErrorCode, work: () => unknown): TranscodeError {
  try {
    work();
  } catch (error) {
    assert.ok(error instanceof TranscodeError, String(error));
    assert.equal(error.code, code, error.message);
    return error;
  }
  assert.fail(`nothing thrown where ${code} should be`);
}

test('the checksum is that of Redis, in one piece or several', () => {
  assert.equal(crc(Buffer.from('123456789')), 'e9c6d914c4b8d9ca');
  const bytes = Buffer.from(Array.from({ length: 100 }, (_, i) => (i * 37) & 255));
  for (let cut = 0; cut <= bytes.length; cut++) {
    const pieces = new Crc64().update(bytes, 0, cut).update(bytes, cut, bytes.length);
    const whole = new Crc64().update(bytes, 0, bytes.length);
    assert.deepEqual([pieces.high, pieces.low], [whole.high, whole.low]);
  }
});

test('ancient and unusual encodings are read', () => {
  const b = (text: string): Buffer => Buffer.from(text);
  const decoded = Object.values(ANCIENT).map(decodeDump);
  assert.deepEqual(decoded, [
    {
      type: 'hash',
      fields: [
        { field: b('foo'), value: b('bar') },
        { field: b('hello'), value: b('world') },
      ],
    },
    {
      type: 'hash',
      fields: [{ field: b('a'), value: Buffer.alloc(300, 'b') }],
    },
    {
      type: 'zset',
      members: [
        { member: b('a'), score: 1.5 },
        { member: b('b'), score: -2e30 },
        { member: b('c'), score: Infinity },
        { member: b('d'), score: -Infinity },
      ],
    },
    { type: 'list', items: [b('a'), b('-1'), b('')] },
    { type: 'string', bytes: b('A') },
    { type: 'string', bytes: b('A') },
  ]);
});

test('what Valkey 9 writes as Redis 7.2 did is read', () => {
  for (const version of [80, 81]) assert.deepEqual(transcode(seal([0, 1, 65], version)), seal([0, 1, 65], 9));
});

test('a hash of Valkey 9 whose fields expire is read', () => {
  const never = Buffer.alloc(8, 0xff);
  const soon = Buffer.from([0xe8, 3, 0, 0, 0, 0, 0, 0]);
  const payload = seal(join([22, 2, 1, 65, 1, 66], never, [1, 67, 1, 68], soon), 80);
  assert.deepEqual(decodeDump(payload), {
    type: 'hash',
    fields: [
      { field: Buffer.from('A'), value: Buffer.from('B') },
      { field: Buffer.from('C'), value: Buffer.from('D'), expireAt: 1_000 },
    ],
  });
  assert.match(refused('TARGET', () => transcode(payload)).message, /fields with a TTL/);
});

test('what cannot be translated is named, with its type and its place', () => {
  refused('TRUNCATED', () => transcode(Buffer.alloc(0)));
  refused('TRUNCATED', () => transcode(Buffer.alloc(10)));
  refused('CHECKSUM', () => transcode(Buffer.concat([seal([0, 1, 65]).subarray(0, -1), Buffer.from([0])])));
  refused('VERSION', () => transcode(seal([0, 1, 65], 5)));
  for (const version of [16, 79, 82]) refused('VERSION', () => transcode(seal([2, 1, 1, 65], version)));
  assert.match(refused('TYPE', () => transcode(seal([24, 1, 1, 65, 1, 66], 80))).message, /type 24 of Valkey/);
  refused('TYPE', () => transcode(seal([60, 1, 65], 12)));
  refused('CORRUPT', () => transcode(seal([26, 1, 65], 12)));
  assert.match(refused('TYPE', () => transcode(seal([64, 1, 65], 9))).message, /cron script/);
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const id = [...'ReJSON-RL'].reduce((sum, letter) => (sum << 6n) | BigInt(letters.indexOf(letter)), 0n) << 10n;
  const body = join([7, 0x81], Buffer.alloc(8), [0]);
  body.writeBigUInt64BE(id | 3n, 2);
  assert.match(refused('MODULE', () => transcode(seal(body, 10))).message, /"ReJSON-RL"/);

  refused('CORRUPT', () => transcode(seal([20, 1, 65], 10)));
  const cut = refused('TRUNCATED', () => transcode(seal([4, 1, 1, 65, 9, 66])));
  assert.deepEqual([cut.type, cut.offset], ['hash (plain)', 5]);
  assert.match(cut.message, /hash \(plain\).*byte 5/);
  refused('TYPE', () => transcode(seal([0, 1, 65, 250, 1, 65, 1, 66])));
  refused('CORRUPT', () => transcode(seal([0, 1, 65, 0])));
});

test('values that no server would hold are refused', () => {
  refused('CORRUPT', () => transcode(seal([1, 0])));
  refused('CORRUPT', () => transcode(seal([2, 2, 1, 65, 1, 65])));
  refused('CORRUPT', () => transcode(seal([4, 2, 1, 65, 1, 66, 1, 65, 1, 67])));
  refused('CORRUPT', () => transcode(seal([5, 1, 1, 65, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f])));
  refused('CORRUPT', () => transcode(seal([3, 1, 1, 65, 253])));
  refused('CORRUPT', () => transcode(seal([3, 1, 1, 65, 2, 0x30, 0x78])));
  const unsorted = part(17, 0, 0, 0, 4, 0, 0x81, 'a', 2, 2, 1, 0x81, 'b', 2, 1, 1, 255);
  refused('CORRUPT', () => transcode(seal(join([17], unsorted), 10)));
  refused('CORRUPT', () => transcode(seal(join([11], part(2, 0, 0, 0, 2, 0, 0, 0, 5, 0, 4, 0)))));
});

test('a target that cannot hold the value is an error before anything is written', () => {
  const stream: Value = { type: 'stream', entries: [], lastId: { ms: 0n, seq: 0n }, counters: null, groups: [] };
  refused('TARGET', () => encodeDump(stream, 8));
  for (const version of [5, 13, 9.5, NaN]) refused('TARGET', () => transcode(seal([0, 1, 65]), version));
});

test('a lie about a length costs no memory and no time', () => {
  const huge = [0x81, 0, 0, 0x0f, 0xff, 0xff, 0xff, 0xff, 0xff];
  const liars = [
    ...[0, 1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21].map((type) => [type, ...huge]),
    [0, 0xc3, 5, ...huge, 0, 65, 0, 66, 0],
    [0, 0xc3, ...huge, 5, 0, 65],
    [24, 0, 0, 0, 0, 0, 0, 0, 0, ...huge],
    [25, 0, 0, 0, 0, 0, 0, 0, 0, ...huge],
    [15, 0, 0, 0, 0, ...huge],
    [15, 0, 0, 0, 0, 1, 1, 65, 0, 0, ...huge],
    [15, 0, 0, 0, 0, 1, 1, 65, 0, 0, 0, ...huge],
  ];
  const before = process.memoryUsage();
  const usedMs = startCpuClock();
  for (const liar of liars) {
    const named = (error: unknown): boolean => error instanceof TranscodeError && /TRUNCATED|CORRUPT/.test(error.code);
    assert.throws(() => transcode(seal(liar, 12)), named, String(liar));
  }
  const after = process.memoryUsage();
  assert.ok(usedMs() < 1000);
  assert.ok(after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers < 32 * 2 ** 20);
});
