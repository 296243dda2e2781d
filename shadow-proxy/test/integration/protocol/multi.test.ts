/**
 * MULTI, EXEC and DISCARD: queued, refused and answered with the words of Redis.
 *
 * Needs real servers: the wordings of MULTI, EXEC and DISCARD.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import { besideRedis } from '../../support/twin.js';
import { Wire } from '../../support/wire.js';
import { missing } from '../../support/needs.js';

const before70 = await missing('redis>=7.0');
const USERS = {
  user: [
    'narrow on >pw ~n:* &* +multi +exec +discard +set +xadd',
    'single on >pw ~n:* &* +set +incr +xadd +exec',
    'losing on >pw ~n:* &* +set +incr +multi +exec',
    'selecting on >pw ~n:* &* +set +incr +exec +select',
  ],
};

const LOADED = "return redis.call('INCR', KEYS[1])";
const DIGEST = createHash('sha1').update(LOADED).digest('hex');

describe('transactions', () => {
  const beside = besideRedis({ config: USERS });
  const { same } = beside;

  test('the words of MULTI, EXEC and DISCARD', { skip: before70 }, () =>
    same([
      [['EXEC'], ['DISCARD'], ['MULTI', 'x'], ['EXEC', 'x'], ['DISCARD', 'x'], ['MULTI'], ['EXEC'], ['EXEC']],
      [['MULTI'], ['SET', 'a', 1], ['DISCARD'], ['GET', 'a'], ['EXEC']],
      [['MULTI'], ['MULTI'], ['SET', 'a', 1], ['EXEC'], ['DEL', 'a']],
      [
        ['MULTI'],
        ['SET', 'a'],
        ['SET', 'a', 1],
        ['EXEC'],
        ['GET', 'a'],
        ['MULTI'],
        ['SET', 'a', 1],
        ['EXEC'],
        ['DEL', 'a'],
      ],
      [['MULTI'], ['FOO', 'bar'], ['SET', 'a', 1], ['EXEC'], ['GET', 'a']],
      [['MULTI'], ['EXEC', 'x'], ['SET', 'a', 1], ['EXEC'], ['GET', 'a']],
      [['MULTI'], ['DISCARD', 'x'], ['SET', 'a', 1], ['EXEC'], ['GET', 'a']],
      [
        ['MULTI'],
        ['CLIENT', 'FOO'],
        ['EXEC'],
        ['MULTI'],
        ['XGROUP', 'FOO', 'x'],
        ['EXEC'],
        ['MULTI'],
        ['GET'],
        ['DISCARD'],
        ['GET', 'a'],
      ],
      [
        ['MULTI'],
        ['LPUSH', 'l', 1],
        ['GET', 'l'],
        ['INCR', 'l'],
        ['LLEN', 'l'],
        ['EXEC'],
        ['DEL', 'l'],
        ['HELLO', 3],
        ['MULTI'],
        ['HGETALL', 'none'],
        ['GET', 'none'],
        ['PING'],
        ['ECHO', 'x'],
        ['DBSIZE'],
        ['EXEC'],
      ],
      [['MULTI'], ['PING', 'a', 'b'], ['EXEC'], ['MULTI'], ['ECHO'], ['EXEC'], ['MULTI'], ['RESET'], ['EXEC']],
      [
        ['MULTI'],
        ['SAVE'],
        ['SET', 'a', 1],
        ['EXEC'],
        ['GET', 'a'],
        ['MULTI'],
        ['SCRIPT', 'LOAD'],
        ['EXEC'],
        ['MULTI'],
        ['SCRIPT', 'LOAD', 'return ('],
        ['EXEC'],
      ],
      [
        ['MULTI'],
        ['SCRIPT', 'LOAD', LOADED],
        ['SET', 'a', 1],
        ['EVALSHA', DIGEST, 1, 'a'],
        ['EXEC'],
        ['EVALSHA', DIGEST, 1, 'a'],
        ['DEL', 'a'],
      ],
      [
        ['SET', 'a', 'zero'],
        ['MULTI'],
        ['SELECT', 1],
        ['SET', 'a', 'one'],
        ['GET', 'a'],
        ['EXEC'],
        ['GET', 'a'],
        ['SELECT', 0],
        ['GET', 'a'],
        ['FLUSHALL'],
      ],
      [
        ['SET', 'a', 'zero'],
        ['MULTI'],
        ['SELECT', 1],
        ['SET', 'a', 'one'],
        ['DISCARD'],
        ['GET', 'a'],
        ['MULTI'],
        ['SELECT', 1],
        ['FOO'],
        ['EXEC'],
        ['GET', 'a'],
        ['MULTI'],
        ['SELECT', 0],
        ['SELECT', 0],
        ['EXEC'],
        ['FLUSHALL'],
      ],
      [
        ['MULTI'],
        ['SELECT', 99],
        ['SELECT', 'x'],
        ['SELECT', -1],
        ['SELECT', '01'],
        ['SELECT', '1.0'],
        ['SELECT', ''],
        ['SET', 'a', 1],
        ['EXEC'],
        ['GET', 'a'],
        ['MULTI'],
        ['SELECT'],
        ['EXEC'],
        ['MULTI'],
        ['SELECT', 1, 2],
        ['EXEC'],
        ['FLUSHALL'],
      ],
      [
        ['MULTI'],
        ['SELECT', 1],
        ['SELECT', 99],
        ['SET', 'a', 'one'],
        ['SELECT', 2],
        ['GET', 'a'],
        ['EXEC'],
        ['GET', 'a'],
        ['SELECT', 1],
        ['GET', 'a'],
        ['FLUSHALL'],
      ],
      [
        ['SELECT', 3],
        ['MULTI'],
        ['DBSIZE'],
        ['SELECT', 4],
        ['SET', 'a', 1],
        ['DBSIZE'],
        ['CLIENT', 'GETNAME'],
        ['EVAL', "return redis.call('GET', KEYS[1])", 1, 'a'],
        ['EXEC'],
        ['DBSIZE'],
        ['FLUSHALL'],
      ],
      [
        ['WATCH', 'a'],
        ['SET', 'a', 1],
        ['MULTI'],
        ['SELECT', 1],
        ['EXEC'],
        ['GET', 'a'],
        ['WATCH', 'a'],
        ['MULTI'],
        ['GET', 'a'],
        ['SELECT', 1],
        ['EXEC'],
        ['GET', 'a'],
        ['FLUSHALL'],
      ],
      [
        ['WATCH', 'a'],
        ['MULTI'],
        ['SELECT', 1],
        ['SET', 'a', 1],
        ['EXEC'],
        ['GET', 'a'],
        ['WATCH', 'a'],
        ['MULTI'],
        ['SET', 'b', 1],
        ['SELECT', 0],
        ['SET', 'a', 1],
        ['EXEC'],
        ['GET', 'a'],
        ['FLUSHALL'],
      ],
      [
        ['HELLO', 3],
        ['MULTI'],
        ['SELECT', 1],
        ['HSET', 'h', 'f', 1],
        ['SELECT', 2],
        ['HGETALL', 'h'],
        ['SELECT', 1],
        ['HGETALL', 'h'],
        ['EXEC'],
        ['HGETALL', 'h'],
        ['FLUSHALL'],
      ],
      [
        ['SET', 'm', 1],
        ['MULTI'],
        ['MOVE', 'm', 1],
        ['MOVE', 'm', 1],
        ['MOVE', 'm', 99],
        ['MOVE', 'm', 0],
        ['MOVE', 'm', 'x'],
        ['EXISTS', 'm'],
        ['SELECT', 1],
        ['GET', 'm'],
        ['EXEC'],
        ['FLUSHALL'],
      ],
      [
        ['SET', 'm', 1],
        ['MULTI'],
        ['COPY', 'm', 'n', 'DB', 1],
        ['COPY', 'm', 'n', 'DB', 1],
        ['COPY', 'm', 'n', 'DB', 'x'],
        ['COPY', 'm', 'n', 'DB'],
        ['COPY', 'm', 'n', 'DB', 99],
        ['SELECT', 1],
        ['KEYS', '*'],
        ['EXEC'],
        ['FLUSHALL'],
      ],
      [
        ['SET', 'a', 1],
        ['MULTI'],
        ['FLUSHDB'],
        ['DBSIZE'],
        ['SET', 'b', 1],
        ['SELECT', 1],
        ['SET', 'c', 1],
        ['FLUSHALL', 'ASYNC'],
        ['FLUSHALL', 'x'],
        ['SET', 'd', 1],
        ['EXEC'],
        ['KEYS', '*'],
        ['FLUSHALL'],
      ],
      [
        ['MULTI'],
        ['SCRIPT', 'EXISTS', 'x'],
        ['CONFIG', 'GET', 'maxmemory'],
        ['TYPE', 'a'],
        ['OBJECT', 'ENCODING', 'a'],
        ['RANDOMKEY'],
        ['EXEC'],
      ],
    ]),
  );

  test(
    'a user without a right gets the error at EXEC at the latest, and what ran is on both servers',
    { skip: before70 },
    async () => {
      const wire = await beside.rig.wire();
      await wire.ask('AUTH', 'narrow', 'pw');
      assert.deepEqual(await wire.pipeline([['MULTI'], ['SET', 'n:1', 1], ['EXEC']]), ['+OK', '+QUEUED', '*1\r\n+OK']);
      assert.match(
        (await wire.pipeline([['MULTI'], ['SET', 'other', 1], ['SET', 'n:1', 2], ['EXEC']]))[3],
        /^-EXECABORT Transaction discarded because of: NOPERM .*keys?/,
      );
      assert.match(
        (await wire.pipeline([['MULTI'], ['GET', 'n:1'], ['EXEC']]))[2],
        /^-EXECABORT Transaction discarded because of: NOPERM .*'get'/,
      );
      // XLEN would show what an approximate trim did, but this user may not run it.
      const trim = [
        ['MULTI'],
        ...new Array<string[]>(150).fill(['XADD', 'n:x', 'MAXLEN', '~', '10', '*', 'f', 'v']),
        ['EXEC'],
      ];
      await wire.pipeline(trim);
      assert.match((await wire.pipeline(trim))[151], /^\*150\r\n/);
      assert.match(await wire.ask('XADD', 'n:x', 'MAXLEN', '~', '10', '*', 'f', 'v'), /^\$/);
      // Without MULTI nothing runs.
      const single = await beside.rig.wire();
      await single.ask('AUTH', 'single', 'pw');
      const replies = await single.pipeline([['MULTI'], ['INCR', 'n:2'], ['SET', 'n:3', 3], ['EXEC']]);
      assert.match(replies[3], /^-NOPERM (this )?user .*has no permissions to run the 'multi' command$/i);
      assert.equal(await single.ask('INCR', 'n:2'), ':1');
      // Nor may it SELECT: the lane that it has stays where it was.
      assert.match(
        (await single.pipeline([['MULTI'], ['SELECT', 1], ['SET', 'n:4', 4], ['EXEC']]))[3],
        /^-NOPERM .*'multi'/,
      );
      assert.equal(await single.ask('INCR', 'n:4'), ':1');
      assert.match(
        (await wire.pipeline([['MULTI'], ['SELECT', 1], ['SET', 'n:5', 5], ['EXEC']]))[3],
        /^-EXECABORT Transaction discarded because of: NOPERM .*'select'/,
      );
      assert.equal(await wire.ask('SET', 'n:5', 5), '+OK');
      // One that may SELECT stays where it was.
      const selecting = await beside.rig.wire();
      await selecting.ask('AUTH', 'selecting', 'pw');
      assert.match(
        (await selecting.pipeline([['MULTI'], ['SELECT', 1], ['SET', 'n:6', 6], ['EXEC']]))[3],
        /^-NOPERM .*'multi'/,
      );
      assert.equal(await selecting.ask('INCR', 'n:6'), ':1');
      assert.equal(await beside.rig.client({ of: beside.rig.source, db: 1 }).get('n:6'), null);
      assert.equal(await beside.rig.client({ of: beside.rig.source }).get('n:3'), null);
      // A user who loses MULTI is found out by the next transaction, whose commands run by themselves; then by MULTI.
      const losing = await beside.rig.wire();
      await losing.ask('AUTH', 'losing', 'pw');
      const count = [['MULTI'], ['INCR', 'n:7'], ['EXEC']];
      assert.deepEqual((await losing.pipeline(count))[2], '*1\r\n:1');
      await beside.rig.client({ of: beside.rig.source }).call('ACL', 'SETUSER', 'losing', '-multi');
      for (let i = 0; i < 2; i++) assert.match((await losing.pipeline(count))[2], /^-NOPERM .*'multi'/);
      assert.equal(await losing.ask('INCR', 'n:7'), ':3');
      await beside.rig.client({ of: beside.rig.source }).call('ACL', 'SETUSER', 'losing', '+multi', '-exec');
      // A lane that stays inside MULTI would queue what comes next: it is closed.
      await losing.pipeline([['MULTI'], ['INCR', 'n:7'], ['EXEC']]).catch(() => undefined);
      await beside.rig.client({ of: beside.rig.source }).call('ACL', 'SETUSER', 'losing', '+exec');
      const back = await beside.rig.wire();
      await back.ask('AUTH', 'losing', 'pw');
      assert.equal(await back.ask('INCR', 'n:7'), ':4');
      await beside.rig.assertEqual();
    },
  );

  test('a server that came to its limit after a command was queued refuses EXEC, and says why', async () => {
    const execReplies = async (port: number, server = port): Promise<string[]> => {
      const [one, two] = await Promise.all([Wire.open({ port }), Wire.open({ port: server })]);
      const replies = await one.pipeline([['MULTI'], ['SET', 'oom', 1], ['GET', 'oom']]);
      await two.ask('CONFIG', 'SET', 'maxmemory', 1);
      replies.push(await one.ask('EXEC'));
      await two.ask('CONFIG', 'SET', 'maxmemory', 0);
      one.destroy();
      two.destroy();
      return replies;
    };
    assert.deepEqual(
      await execReplies(beside.rig.shard.port, beside.rig.source.port),
      await execReplies(beside.twin.port),
    );
    await beside.rig.assertEqual();
  });

  test('a transaction that its client did not finish is nobody else’s', async () => {
    const [one, two] = [await beside.rig.wire(), await beside.rig.wire()];
    await one.pipeline([['MULTI'], ['SET', 'unfinished', 1]]);
    assert.equal(await two.ask('EXEC'), '-ERR EXEC without MULTI');
    assert.equal(await two.ask('GET', 'unfinished'), '$-1');
    one.destroy();
    assert.equal(await two.ask('INCR', 'unfinished'), ':1');
    await beside.rig.assertEqual();
  });

  test('many transactions at once do not mix', async () => {
    const clients = await Promise.all(Array.from({ length: 8 }, () => beside.rig.wire()));
    await Promise.all(
      clients.map(async (client, i) => {
        await client.ask('HELLO', 2 + (i % 2));
        for (let n = 0; n < 30; n++) {
          const [multi, ...rest] = await client.pipeline([
            ['MULTI'],
            ['SET', 'mix', `${i}:${n}`],
            ['GET', 'mix'],
            ['APPEND', 'mix', '!'],
            ['GET', 'mix'],
            ['EXEC'],
          ]);
          const value = `${i}:${n}`;
          assert.deepEqual(
            [multi, rest[4]],
            [
              '+OK',
              `*4\r\n+OK\r\n$${value.length}\r\n${value}\r\n:${value.length + 1}\r\n$${value.length + 1}\r\n${value}!`,
            ],
          );
        }
      }),
    );
    await beside.rig.assertEqual();
  });
});
