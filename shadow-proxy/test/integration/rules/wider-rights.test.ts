/**
 * At live, a user with key patterns gets nothing through KeyDB that Redis 7 refuses.
 *
 * Needs real servers: what KeyDB lets a user with key patterns read, and Redis 7 refuses.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { redisSince, targetIsKeydb } from '../../support/servers.js';
import { withRig, type Rig } from '../../support/rig.js';
import type { Wire } from '../../support/wire.js';

async function as({ wire, client, source, target }: Rig, name: string, ...rules: readonly string[]): Promise<Wire> {
  for (const of of [source, target])
    await client({ of }).acl('SETUSER', name, 'reset', 'on', '>secret', '&*', ...rules);
  const proxy = await wire();
  assert.equal(await proxy.ask('AUTH', name, 'secret'), '+OK');
  return proxy;
}

const BY = '-ERR BY option of SORT denied due to insufficient ACL permissions.';
const GET = '-ERR GET option of SORT denied due to insufficient ACL permissions.';
const SORTS: readonly (readonly [call: readonly string[], refused: string])[] = [
  [['SORT', 'a:l', 'BY', 'nosort', 'GET', 'secret:*'], GET],
  [['SORT', 'a:l', 'BY', 'secret:*'], BY],
  [['sort', 'a:l', 'limit', '0', '5', 'get', '#', 'get', 'secret:*'], GET],
  [['SORT', 'a:l', 'BY', 'nosort', 'GET', 'secret:*', 'STORE', 'a:out'], GET],
];
/** One that is understood, one whose calls are not, and one by another name. */
const SCRIPTS = [
  "return redis.call('sort', KEYS[1], 'by', 'nosort', 'get', 'secret:*')",
  "local f = {'SORT'} return redis.pcall(f[1], KEYS[1], 'by', 'nosort', 'get', 'secret:*')",
];
const REFUSED_SCRIPT =
  /^-ERR shadow-proxy: a script with SORT, DEBUG or KEYDB\.HRENAME is refused to a user with key patterns/;
const sha = (script: string): string => createHash('sha1').update(script).digest('hex');

const prepare = async ({ wire }: Rig): Promise<Wire> => {
  const root = await wire();
  await root.pipeline([
    ['RPUSH', 'a:l', 2, 1],
    ['SET', 'secret:1', 's1'],
    ['SET', 'secret:2', 's2'],
  ]);
  return root;
};

test('SORT BY and GET, and scripts with it, show a user with key patterns nothing at live', async (t) => {
  if (!(await targetIsKeydb()) || !(await redisSince(7, 0))) return t.skip('needs Redis 7 and KeyDB');
  await withRig({ default: { stage: 'live' } }, async (rig) => {
    const root = await prepare(rig);
    const proxy = await as(rig, 'alice', '~a:*', '+@all');
    for (const [call, refused] of SORTS) {
      assert.equal(await proxy.ask(...call), refused, call.join(' '));
      const [, queued, exec] = await proxy.pipeline([['MULTI'], call, ['EXEC']]);
      assert.match(`${queued} ${exec}`, /^\+QUEUED -EXECABORT .*option of SORT denied/, call.join(' '));
    }
    for (const script of SCRIPTS) {
      assert.match(await proxy.ask('EVAL', script, 1, 'a:l'), REFUSED_SCRIPT);
      await root.ask('SCRIPT', 'LOAD', script);
      assert.match(await proxy.ask('EVALSHA', sha(script), 1, 'a:l'), REFUSED_SCRIPT);
      const [, , exec] = await proxy.pipeline([['MULTI'], ['EVAL', script, 1, 'a:l'], ['EXEC']]);
      assert.match(exec, /^-EXECABORT shadow-proxy: a script with SORT/);
    }
    // What Redis 7 allows goes on: a plain sort, another script.
    assert.equal(await proxy.ask('SORT', 'a:l', 'BY', 'nosort', 'LIMIT', 0, 1), '*1\r\n$1\r\n2');
    assert.equal(await proxy.ask('SORT', 'a:l', 'STORE', 'a:out'), ':2');
    assert.equal(await proxy.ask('EVAL', "table.sort({2, 1}) return redis.call('llen', KEYS[1])", 1, 'a:l'), ':2');
    await rig.assertEqual();
  });
});

test('a user without key patterns sorts as before at live, with other commands denied', async () => {
  await withRig({ default: { stage: 'live' } }, async (rig) => {
    await prepare(rig);
    for (const proxy of [await as(rig, 'bob', '~*', '+@all', '-flushall'), await rig.wire()]) {
      const answer = '*2\r\n$2\r\ns2\r\n$2\r\ns1';
      assert.equal(await proxy.ask('SORT', 'a:l', 'BY', 'nosort', 'GET', 'secret:*'), answer);
      assert.equal(await proxy.ask('EVAL', SCRIPTS[0], 1, 'a:l'), answer);
      const [, , exec] = await proxy.pipeline([
        ['MULTI'],
        ['SORT', 'a:l', 'BY', 'nosort', 'GET', 'secret:*'],
        ['EXEC'],
      ]);
      assert.equal(exec, `*1\r\n${answer}`);
    }
    await rig.assertEqual();
  });
});

test('a transaction that began before live is looked at when it runs', async (t) => {
  if (!(await targetIsKeydb()) || !(await redisSince(7, 0))) return t.skip('needs Redis 7 and KeyDB');
  await withRig({ default: { stage: 'shadow' } }, async (rig) => {
    await prepare(rig);
    const proxy = await as(rig, 'carol', '~a:*', '+@all');
    const [call, refused] = SORTS[0];
    // The source refuses it itself.
    assert.equal(await proxy.ask(...call), refused);
    assert.equal(await proxy.ask('MULTI'), '+OK');
    assert.equal(await proxy.ask(...call), '+QUEUED');
    await rig.shard.shard.changeStage({ workload: 'default', stage: 'live' });
    assert.match(await proxy.ask('EXEC'), /^-EXECABORT .*option of SORT denied/);
  });
});

test('DEBUG is refused to a user with key patterns at live, as Redis 7 refuses it', async (t) => {
  if (!(await targetIsKeydb()) || !(await redisSince(7, 0))) return t.skip('needs Redis 7 and KeyDB');
  await withRig({ default: { stage: 'live' } }, async (rig) => {
    const root = await prepare(rig);
    const proxy = await as(rig, 'dora', '~a:*', '+@all');
    for (const call of [
      ['DEBUG', 'OBJECT', 'secret:1'],
      ['DEBUG', 'DIGEST-VALUE', 'secret:1'],
      ['debug', 'sleep', '0'],
    ])
      assert.match(await proxy.ask(...call), /^-ERR shadow-proxy: DEBUG is refused to a user with key patterns/);
    const [, , exec] = await proxy.pipeline([['MULTI'], ['DEBUG', 'OBJECT', 'secret:1'], ['EXEC']]);
    assert.match(exec, /^-EXECABORT shadow-proxy: DEBUG is refused/);
    assert.match(await root.ask('DEBUG', 'OBJECT', 'secret:1'), /^\+Value at:/);
  });
});
