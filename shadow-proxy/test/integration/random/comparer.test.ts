/**
 * The comparer finds what is planted, whatever the type, and nothing else.
 *
 * Needs real servers: every type in a real keyspace: the trial's comparer sees each difference.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { startRedis, startTarget } from '../../../src/local/servers.js';
import { needs } from '../../support/needs.js';
import { compareKeyspaces, type Comparison } from './comparer.js';

type Command = readonly (string | number | Buffer)[];

/** The same on both servers: a key or more of each type. */
const BASE: readonly Command[] = [
  ['SET', 'string', 'value'],
  ['SET', Buffer.from([0, 255, 13, 10]), Buffer.from([0, 1, 2, 254])],
  ['SET', 'number', '12'],
  ['PFADD', 'hll', 'a', 'b', 'c'],
  ['RPUSH', 'list', 'a', 'b', 'a'],
  ['SADD', 'set', 'x', 'y', '3'],
  ['HSET', 'hash', 'f', 'v', 'g', 'w'],
  ['ZADD', 'zset', 1, 'one', 1.5, 'two', 1.5, 'three'],
  ['XADD', 'stream', '1-1', 'f', 'v'],
  ['XADD', 'stream', '2-1', 'f', 'w'],
  ['XADD', 'stream', '3-1', 'f', 'x'],
  ['XGROUP', 'CREATE', 'stream', 'group', '0'],
  ['XREADGROUP', 'GROUP', 'group', 'alice', 'COUNT', 2, 'STREAMS', 'stream', '>'],
  ['SET', 'expiring', 'v', 'PX', 600_000],
];

/** One change to the second server, and what must be found: the aspects, in order. */
const PLANTED: readonly (readonly [name: string, change: readonly Command[], key: string, what: readonly string[]])[] =
  [
    ['a key that is missing', [['DEL', 'string']], 'string', ['existence']],
    ['a key that is too many', [['SET', 'extra', 1]], 'extra', ['existence']],
    [
      'another type',
      [
        ['DEL', 'string'],
        ['RPUSH', 'string', 'value'],
      ],
      'string',
      ['type'],
    ],
    ['a byte of a string', [['SETRANGE', 'string', 4, 'X']], 'string', ['value']],
    [
      'a byte of a binary key',
      [['SETRANGE', Buffer.from([0, 255, 13, 10]), 0, 'X']],
      '\\x00\\xff\\x0d\\x0a',
      ['value'],
    ],
    ['a number', [['INCR', 'number']], 'number', ['value']],
    ['an element of a HyperLogLog', [['PFADD', 'hll', 'd']], 'hll', ['value']],
    ['the order of a list', [['RPOPLPUSH', 'list', 'list']], 'list', ['value']],
    ['the length of a list', [['RPUSH', 'list', 'a']], 'list', ['value']],
    ['a member of a set', [['SREM', 'set', 'x']], 'set', ['value']],
    ['a value of a hash', [['HSET', 'hash', 'f', 'w']], 'hash', ['value']],
    ['a field of a hash', [['HSET', 'hash', 'h', '']], 'hash', ['value']],
    ['a score by the last bit', [['ZADD', 'zset', '1.5000000000000002', 'two']], 'zset', ['value']],
    [
      'a value of a stream',
      [
        ['DEL', 'other'],
        ['XDEL', 'stream', '3-1'],
        ['XSETID', 'stream', '3-1'],
      ],
      'stream',
      ['value'],
    ],
    ['the last ID of a stream', [['XSETID', 'stream', '9-9']], 'stream', ['last id']],
    ['a group of a stream', [['XGROUP', 'CREATE', 'stream', 'second', '0']], 'stream', ['groups']],
    ['where a group is', [['XGROUP', 'SETID', 'stream', 'group', '1-1']], 'stream', ['groups']],
    ['a consumer without entries', [['XGROUP', 'CREATECONSUMER', 'stream', 'group', 'bob']], 'stream', ['consumers']],
    [
      'an entry that is acknowledged',
      [['XACK', 'stream', 'group', '1-1']],
      'stream',
      ['groups', 'consumers', 'pending'],
    ],
    [
      'the number of deliveries',
      [['XCLAIM', 'stream', 'group', 'alice', 0, '1-1', 'RETRYCOUNT', 7]],
      'stream',
      ['pending'],
    ],
    ['an expiry that is missing', [['PERSIST', 'expiring']], 'expiring', ['expiry']],
    ['an expiry that is too many', [['EXPIRE', 'string', 600]], 'string', ['expiry']],
    ['an expiry that is off', [['PEXPIRE', 'expiring', 597_000]], 'expiring', ['expiry']],
  ];

test('the comparer', async (t) => {
  const a = await startRedis();
  const b = await startTarget();
  const [left, right] = [a, b].map(({ port }) => new Redis({ port, protocol: 2 }));
  const run = async (client: Redis, commands: readonly Command[]): Promise<void> => {
    for (const [name, ...args] of commands) await client.call(String(name), ...args);
  };
  const compared = async (before: readonly Command[], change: readonly Command[]): Promise<Comparison> => {
    await Promise.all([left.flushall(), right.flushall()]);
    await Promise.all([run(left, before), run(right, before)]);
    await run(right, change);
    return compareKeyspaces(a, b);
  };
  try {
    await t.test('finds nothing where nothing is', async () => {
      const { keys, byType, differences } = await compared(BASE, []);
      assert.deepEqual(differences, []);
      assert.equal(keys, 10);
      assert.deepEqual(Object.keys(byType).sort(), ['hash', 'list', 'set', 'stream', 'string', 'zset']);
    });
    for (const [name, change, key, what] of PLANTED) {
      await t.test(`finds ${name}`, async (t) => {
        // Redis 7.0 shows what was deleted, too.
        if (name === 'a value of a stream' && !(await needs(t, 'target<7.0'))) return;
        const { differences } = await compared(BASE, change);
        assert.deepEqual(
          differences.map((found) => [found.db, found.key, found.what]),
          what.map((aspect) => [0, key, aspect]),
        );
        const reversed = await compareKeyspaces(b, a);
        assert.equal(reversed.differences.length, what.length);
      });
    }
    await t.test('looks into every database', async () => {
      const { differences } = await compared(BASE, [
        ['SELECT', 3],
        ['SET', 'k', 'v'],
        ['SELECT', 0],
      ]);
      assert.deepEqual(
        differences.map(({ db, key, what }) => [db, key, what]),
        [[3, 'k', 'existence']],
      );
    });
    await t.test('allows differences in encodings, in cached counts and just before expiry', async () => {
      const many = ['SADD', 'big', ...Array.from({ length: 600 }, (_, i) => `member-${i}`)];
      const { differences } = await compared(
        [...BASE, many, ['SET', 'last', 'v', 'PX', 400], ['SET', 'nearly', 'v', 'PX', 600_000]],
        [
          ['PFCOUNT', 'hll'],
          ['DEL', 'big'],
          [many[0], many[1], ...many.slice(2).reverse()],
          ['DEL', 'last'],
          ['PEXPIRE', 'nearly', 599_500],
        ],
      );
      assert.deepEqual(differences, []);
    });
  } finally {
    left.disconnect();
    right.disconnect();
    await Promise.all([a.stop(), b.stop()]);
  }
});
