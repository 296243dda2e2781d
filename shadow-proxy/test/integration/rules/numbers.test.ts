/**
 * Rule 11: sums of floating point, and estimates that cache themselves.
 *
 * Needs real servers: how each server writes floats, and what PFCOUNT caches.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { redisSince } from '../../support/servers.js';
import { withRig } from '../../support/rig.js';
import { needs } from '../../support/needs.js';

test('the mirror gets the sum of floating point numbers, and keeps the TTL', async () => {
  await withRig({}, async ({ wire, client, source, target, shard, assertEqual }) => {
    // As if the target's processor had another long double: there, the sum would not be the same.
    const behind = client({ of: target });
    for (const protocol of [2, 3]) {
      const proxy = await wire();
      await proxy.ask('HELLO', protocol);
      await proxy.pipeline([
        ['SET', 'f', '10.5', 'EX', 100],
        ['HSET', 'h', 'f', '1e3', 'other', 'x'],
        ['EXPIRE', 'h', 100],
      ]);
      await shard.settled();
      await behind.set('f', '10.500000000000000001', 'KEEPTTL');
      await behind.hset('h', 'f', '1000.00000000000000001');
      for (const command of [
        ['INCRBYFLOAT', 'f', '0.1'],
        ['HINCRBYFLOAT', 'h', 'f', '0.1'],
      ])
        assert.match(await proxy.ask(...command), /^\$\d+\r\n10/);
      const many = Array.from({ length: 200 }, (_, i) => [
        ['INCRBYFLOAT', 'f', `0.${i + 1}`],
        ['HINCRBYFLOAT', 'h', `g${i % 3}`, `-1.${i}e-${i % 9}`],
      ]).flat();
      for (const reply of await proxy.pipeline([['MULTI'], ...many, ['EXEC']]))
        assert.ok(!/(^|\n)-[A-Z]/.test(reply), reply);
      await proxy.pipeline(many);
      assert.match(await proxy.ask('INCRBYFLOAT', 'f', 'x'), /^-ERR value is not a valid float/);
      assert.match(await proxy.ask('INCRBYFLOAT', 'h', '1'), /^-WRONGTYPE/);
      await assertEqual();
    }
    assert.equal(shard.snapshot().suspects.total, 0);
    const [a, b] = await Promise.all([client({ of: source }).get('f'), behind.get('f')]);
    assert.equal(a, b);
    assert.ok((await behind.pttl('f')) > 90_000);
  });
});

test('a score that the servers write in two ways is no reason to copy its key', async (t) => {
  if (!(await needs(t, 'target<7.0'))) return;
  await withRig({}, async ({ wire, client, target, shard, assertEqual }) => {
    const proxy = await wire();
    // Redis forgets the sign of a zero; from 7.2 on, and Valkey, it writes 0.1 where KeyDB writes 0.10000000000000001.
    await proxy.pipeline([
      ['ZADD', 'z', '-0', 'zero', '0.1', 'tenth'],
      ['ZINCRBY', 'z', '-0', 'zero'],
      ...Array.from({ length: 50 }, () => ['ZINCRBY', 'z', '0.1', 'tenth']),
    ]);
    await assertEqual();
    // Redis 6.2 writes both as KeyDB.
    assert.equal(shard.snapshot().allowed['score-form'] > 0, await redisSince(7, 0));
    assert.doesNotMatch(await client({ of: target }).info('commandstats'), /^cmdstat_restore:/m);
  });
});

test('PFCOUNT is compared, and what it caches is no difference', async () => {
  await withRig({}, async ({ wire, shard, assertEqual }) => {
    const proxy = await wire();
    for (let n = 0; n < 20; n++) {
      await proxy.pipeline([
        ['PFADD', 'a', ...Array.from({ length: 50 }, (_, i) => `${n}:${i}`)],
        ['PFADD', 'b', ...Array.from({ length: 50 }, (_, i) => `${n}:${i * 2}`)],
        // Counting rewrites the cached cardinality; a count of several keys does not.
        ...(n % 2 ? [['PFCOUNT', 'a']] : [['PFCOUNT', 'a', 'b']]),
        ['PFMERGE', 'c', 'a', 'b'],
        ['PFCOUNT', 'c'],
        ['STRLEN', 'a'],
      ]);
    }
    await proxy.ask('PFCOUNT', 'b');
    await assertEqual();
    const { byCommand } = shard.snapshot().workloads.at(-1)!;
    assert.equal(byCommand?.pfcount, 41);
    assert.equal(shard.snapshot().compared, shard.snapshot().matched);
  });
});
