/**
 * WATCH, as Redis has it: optimistic, by connection, ended by whatever ends it there.
 *
 * Needs real servers: the wordings of WATCH, and what ends it at a Redis.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { besideRedis } from '../../support/twin.js';

describe('WATCH', () => {
  const beside = besideRedis();
  const { same } = beside;

  test('a client that logs in as another has done before watches as any other', () => {
    const login = ['AUTH', 'default', 'any'];
    const program = [['WATCH', 'a'], ['MULTI'], ['INCR', 'a'], ['EXEC'], ['DEL', 'a']];
    return same([
      [login, ...program],
      // The proxy's connection was opened for the first client's login.
      [login, ...program, ...program],
      [login, ['WATCH', 'a'], login, ['MULTI'], ['INCR', 'a'], ['EXEC'], ['DEL', 'a']],
    ]);
  });

  test('its words, and what ends it', () =>
    same([
      [['WATCH'], ['WATCH', 'a'], ['UNWATCH'], ['UNWATCH', 'x'], ['UNWATCH']],
      [
        ['WATCH', 'a', 'b'],
        ['SET', 'a', 1],
        ['MULTI'],
        ['INCR', 'a'],
        ['EXEC'],
        ['GET', 'a'],
        ['MULTI'],
        ['INCR', 'a'],
        ['EXEC'],
        ['DEL', 'a'],
      ],
      [['WATCH', 'a'], ['SET', 'c', 1], ['MULTI'], ['INCR', 'a'], ['EXEC'], ['DEL', 'a', 'c']],
      [['WATCH', 'a'], ['SET', 'a', 1], ['UNWATCH'], ['MULTI'], ['INCR', 'a'], ['EXEC'], ['DEL', 'a']],
      [['WATCH', 'a'], ['SET', 'a', 1], ['MULTI'], ['DISCARD'], ['MULTI'], ['INCR', 'a'], ['EXEC'], ['DEL', 'a']],
      [['WATCH', 'a'], ['SET', 'a', 1], ['MULTI'], ['FOO'], ['EXEC'], ['MULTI'], ['INCR', 'a'], ['EXEC'], ['DEL', 'a']],
      [['WATCH', 'a'], ['SET', 'a', 1], ['MULTI'], ['EXEC'], ['DEL', 'a']],
      [['WATCH', 'a'], ['MULTI'], ['EXEC']],
      [['WATCH', 'a'], ['MULTI'], ['WATCH', 'b'], ['INCR', 'a'], ['EXEC'], ['DEL', 'a']],
      [['WATCH', 'a'], ['MULTI'], ['UNWATCH'], ['INCR', 'a'], ['EXEC'], ['DEL', 'a']],
      [
        ['WATCH', 'a'],
        ['SET', 'a', 1],
        ['MULTI'],
        ['UNWATCH'],
        ['INCR', 'a'],
        ['CLIENT', 'GETNAME'],
        ['EXEC'],
        ['ECHO', 'next'],
        ['DEL', 'a'],
      ],
      [
        ['HELLO', 3],
        ['WATCH', 'a'],
        ['SET', 'a', 1],
        ['MULTI'],
        ['UNWATCH'],
        ['INCR', 'a'],
        ['EXEC'],
        ['ECHO', 'next'],
        ['DEL', 'a'],
      ],
      [['WATCH', 'a'], ['WATCH', 'b'], ['SET', 'b', 1], ['MULTI'], ['INCR', 'a'], ['EXEC'], ['DEL', 'a', 'b']],
      [['WATCH', 'a'], ['SET', 'a', 1], ['RESET'], ['MULTI'], ['INCR', 'a'], ['EXEC'], ['DEL', 'a']],
      [['WATCH', 'a'], ['SELECT', 1], ['SET', 'a', 1], ['MULTI'], ['GET', 'a'], ['EXEC'], ['DEL', 'a']],
      [['WATCH', 'a'], ['SET', 'a', 1], ['SELECT', 1], ['MULTI'], ['GET', 'a'], ['EXEC'], ['SELECT', 0], ['DEL', 'a']],
      [['SELECT', 1], ['WATCH', 'a'], ['SELECT', 0], ['SET', 'a', 1], ['MULTI'], ['GET', 'a'], ['EXEC'], ['DEL', 'a']],
      [['HELLO', 3], ['WATCH', 'a'], ['SET', 'a', 1], ['MULTI'], ['INCR', 'a'], ['EXEC'], ['DEL', 'a']],
      [['WATCH', 'l'], ['MULTI'], ['RPUSH', 'l', 'a'], ['BLPOP', 'l', 0], ['SPOP', 'nosuch'], ['EXEC'], ['LLEN', 'l']],
      [
        ['WATCH', 'a'],
        ['FLUSHALL'],
        ['MULTI'],
        ['PING'],
        ['EXEC'],
        ['SET', 'a', 1],
        ['WATCH', 'a'],
        ['FLUSHALL'],
        ['MULTI'],
        ['PING'],
        ['EXEC'],
      ],
    ]));

  test('a change by another client is seen, and one by nobody is not', async () => {
    const [mine, other] = [await beside.rig.wire(), await beside.rig.wire()];
    for (const [change, seen] of [
      [['SET', 'k', 2], true],
      [['GET', 'k'], false],
      [['SET', 'unrelated', 1], false],
      [['PEXPIRE', 'k', 60_000], true],
      [['DEL', 'nosuch'], false],
    ] as const) {
      await mine.pipeline([
        ['SET', 'k', 1],
        ['WATCH', 'k'],
      ]);
      await other.ask(...change);
      const [, , exec] = await mine.pipeline([['MULTI'], ['INCR', 'k'], ['EXEC']]);
      assert.equal(exec === '*-1', seen, change.join(' '));
    }
    await beside.rig.assertEqual();
  });

  test('behind a large reply, what follows EXEC at once is answered in its order', async () => {
    const wire = await beside.rig.wire();
    await wire.ask('SET', 'large', Buffer.alloc(1_500_000, 'x'));
    await wire.ask('GET', 'large');
    await wire.ask('WATCH', 'k');
    const pushed = [
      ['SET', 'b', 'second'],
      ['GET', 'b'],
      ['ECHO', 'third'],
    ];
    const replies = await wire.pipeline([['MULTI'], ['SET', 'y', 'first'], ['EXEC'], ['UNWATCH'], ...pushed]);
    const bulk = (text: string): string => `$${text.length}\r\n${text}`;
    assert.deepEqual(replies, ['+OK', '+QUEUED', '*1\r\n+OK', '+OK', '+OK', bulk('second'), bulk('third')]);
  });

  test('clients that come and go leave no watch and no connection behind', async () => {
    const direct = beside.rig.client({ of: beside.rig.source });
    const count = async (): Promise<number> =>
      String(await direct.client('LIST'))
        .trim()
        .split('\n').length;
    const [first] = [await beside.rig.wire()];
    await first.pipeline([['WATCH', 'k'], ['UNWATCH']]);
    const before = await count();
    for (let i = 0; i < 30; i++) {
      const wire = await beside.rig.wire();
      await wire.ask('WATCH', 'k');
      if (i % 2 === 0) await wire.pipeline([['MULTI'], ['INCR', 'k'], ['EXEC']]);
      wire.destroy();
    }
    assert.ok((await count()) <= before + 2, `${await count()} connections, ${before} before`);
    // A lane that is used again watches nothing of its last client.
    const [a, b] = [await beside.rig.wire(), await beside.rig.wire()];
    await a.pipeline([['WATCH', 'k'], ['UNWATCH']]);
    await b.ask('SET', 'k', 1);
    assert.match((await a.pipeline([['WATCH', 'other'], ['MULTI'], ['INCR', 'k'], ['EXEC']]))[3], /^\*1/);
    await beside.rig.assertEqual();
  });
});
