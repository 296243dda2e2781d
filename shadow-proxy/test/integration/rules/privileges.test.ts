/**
 * Rule 17: the mirror is written by the kit's user, and holds nothing that the source refused to a client's user.
 *
 * Needs real servers: ACL of both servers: a denied command inside scripts and transactions.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import { withRig, type Rig } from '../../support/rig.js';
import type { Wire } from '../../support/wire.js';

const sha = (script: string): string => createHash('sha1').update(script).digest('hex');

/** Gives a user of that name the same rules on both servers. */
async function setUser({ client, source, target }: Rig, name: string, ...rules: readonly string[]): Promise<void> {
  for (const of of [source, target]) await client({ of }).acl('SETUSER', name, 'reset', 'on', '>secret', ...rules);
}

async function as({ wire }: Rig, name: string): Promise<Wire> {
  const proxy = await wire();
  assert.equal(await proxy.ask('AUTH', name, 'secret'), '+OK');
  return proxy;
}

/** What a script may write that its user may not, and get away with it. */
const CAUGHT: readonly (readonly [script: string, keys: readonly string[]])[] = [
  ["redis.pcall('set', KEYS[1], 'x') return 1", ['a:1']],
  ["redis.pcall('set', KEYS[1], 'x') return 1", ['a:1', 'a:2']],
  ["redis.pcall('hset', 'other:1', 'f', 'x') return 1", []],
  ["redis.pcall('hset', 'other:2', 'f', 'x') redis.call('hset', KEYS[1], 'f', 'y') return 1", ['a:3']],
  ["local ok = pcall(redis.call, 'set', KEYS[1], 'x') return ok and 1 or 0", ['a:4']],
  ["pcall(function() redis.call('set', KEYS[1], 'x') end) return 1", ['a:5']],
  ["local r = redis.pcall('rpush', ARGV[1], 'x') return 1", ['a:6']],
  ["redis.pcall('publish', 'channel', 'x') redis.pcall('del', 'kept') return 1", []],
];

for (const stage of ['shadow', 'live'] as const) {
  test(`a script's denied command leaves nothing on the other server, in ${stage}`, async () => {
    await withRig({ default: { stage } }, async (rig) => {
      await setUser(rig, 'alice', '~a:*', '&*', '+@all', '-set');
      const [proxy, root] = [await as(rig, 'alice'), await rig.wire()];
      await root.ask('SET', 'kept', 'v');
      for (const [script, keys] of CAUGHT) {
        for (const [i, evaluate] of [
          ['EVAL', script],
          ['EVALSHA', sha(script)],
        ].entries()) {
          assert.match(await proxy.ask(...evaluate, keys.length, ...keys, 'other:3'), /^:[01]$/, script);
          const inside = await proxy.pipeline([
            ['MULTI'],
            ['HSET', 'a:t', 'f', i],
            [...evaluate, keys.length, ...keys, 'other:3'],
            ['EXEC'],
          ]);
          assert.match(inside[3], /^\*2\r\n:[01]\r\n:[01]$/, script);
        }
      }
      await rig.assertEqual();
      for (const of of [rig.source, rig.target]) {
        assert.deepEqual((await rig.client({ of }).keys('*')).sort(), ['a:3', 'a:t', 'kept']);
      }
    });
  });
}

test('both servers hold the same while the rights of a user change', async () => {
  await withRig({}, async (rig) => {
    await setUser(rig, 'bob', '~*', '&*', '+@all');
    const proxy = await as(rig, 'bob');
    const script = "redis.call('incr', KEYS[1]) return redis.pcall('incr', 'other') and 1";
    const plain = "redis.call('incr', KEYS[1]) return 1";
    for (let round = 0; round < 20; round++) {
      if (round % 2 === 0) await setUser(rig, 'bob', '~b:*', '&*', '+@all');
      else await setUser(rig, 'bob', '~*', '&*', '+@all');
      for (const each of [script, plain]) assert.equal(await proxy.ask('EVAL', each, 1, 'b:n'), ':1');
    }
    await rig.assertEqual();
    assert.equal(await rig.client({ of: rig.source }).get('b:n'), '40');
    assert.equal(await rig.client({ of: rig.target }).get('other'), '10');
  });
});

test('a blocking pop that is denied takes nothing, though the plain pop is allowed', async () => {
  await withRig({}, async (rig) => {
    await setUser(
      rig,
      'carol',
      '~*',
      '&*',
      '+@all',
      '-blpop',
      '-brpop',
      '-bzpopmin',
      '-blmove',
      '-brpoplpush',
      '-bzpopmax',
    );
    const [proxy, root] = [await as(rig, 'carol'), await rig.wire()];
    await root.pipeline([
      ['RPUSH', 'l', 1, 2, 3],
      ['ZADD', 'z', 1, 'a', 2, 'b'],
    ]);
    for (const command of [
      ['BLPOP', 'l', 1],
      ['BRPOP', 'l', 'nosuch', 1],
      ['BZPOPMIN', 'z', 1],
      ['BZPOPMAX', 'z', 'nosuch', 1],
      ['BLMOVE', 'l', 'm', 'LEFT', 'LEFT', 1],
      ['BRPOPLPUSH', 'l', 'm', 1],
    ]) {
      assert.match(await proxy.ask(...command), /^-NOPERM/, command.join(' '));
    }
    assert.equal(await proxy.ask('LPOP', 'l'), '$1\r\n1');
    // Allowed again: within a second it pops as before.
    await setUser(rig, 'carol', '~*', '&*', '+@all');
    assert.equal(await proxy.ask('BLPOP', 'l', 1), '*2\r\n$1\r\nl\r\n$1\r\n2');
    // The proxy believes what it knows of a user for a second.
    await sleep(1_100);
    assert.equal(await proxy.ask('BLPOP', 'l', 1), '*2\r\n$1\r\nl\r\n$1\r\n3');
    await rig.assertEqual();
  });
});

test('a script that its user may not send as a text cannot be run by its digest', async () => {
  await withRig({}, async (rig) => {
    await setUser(rig, 'dora', '~*', '&*', '+@all', '-eval', '-script');
    const [proxy, root] = [await as(rig, 'dora'), await rig.wire()];
    const script = "return redis.call('incr', KEYS[1])";
    assert.match(await proxy.ask('EVAL', script, 1, 'n'), /^-NOPERM/);
    assert.match(await proxy.ask('SCRIPT', 'LOAD', script), /^-NOPERM/);
    assert.match(await proxy.ask('EVALSHA', sha(script), 1, 'n'), /^-NOSCRIPT/);
    assert.match(
      (await proxy.pipeline([['MULTI'], ['EVALSHA', sha(script), 1, 'n'], ['EXEC']]))[2],
      /^\*1\r\n-NOSCRIPT/,
    );
    // Once another client has run the script, the server knows it, as any Redis would.
    assert.equal(await root.ask('EVAL', script, 1, 'n'), ':1');
    assert.equal(await proxy.ask('EVALSHA', sha(script), 1, 'n'), ':2');
    await rig.assertEqual();
  });
});

test('what an unrestricted user runs is repeated, by whatever name it has logged in', async () => {
  await withRig({}, async (rig) => {
    await setUser(rig, 'eve', '~*', '&*', '+@all');
    const copies = async (): Promise<number> =>
      Number(/cmdstat_dump:calls=(\d+)/.exec(await rig.client({ of: rig.source }).info('commandstats'))?.[1] ?? 0);
    for (const proxy of [await as(rig, 'eve'), await rig.wire()])
      for (let i = 0; i < 10; i++)
        assert.match(await proxy.ask('EVAL', "return redis.call('incr', KEYS[1])", 1, 'n'), /^:/);
    await rig.assertEqual();
    assert.equal(await copies(), 0);
    await setUser(rig, 'eve', '~*', '&*', '+@all', '-flushall');
    // The proxy believes what it knows of a user for a second.
    await sleep(1_200);
    assert.match(await (await as(rig, 'eve')).ask('EVAL', "return redis.call('incr', KEYS[1])", 1, 'n'), /^:21/);
    await rig.assertEqual();
    // The copy is read, and may be compared behind that.
    assert.notEqual(await copies(), 0);
  });
});
