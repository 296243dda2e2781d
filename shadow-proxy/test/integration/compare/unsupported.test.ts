/**
 * A command that only one server supports, and that the plan allows by name: its difference is allowed everywhere.
 *
 * Needs real servers: options that KeyDB refuses, and its words.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { needs } from '../../support/needs.js';
import { withServers } from '../../support/servers.js';
import { startTestShard } from '../../support/shard.js';

const CALLS = 5;

for (const [named, allowUnsupported, mismatches, allowed] of [
  ['no name', {}, { unsupported: CALLS }, {}],
  ['its name', { 'BITCOUNT bit': 'counts pages, which nobody reads' }, {}, { unsupported: CALLS }],
  ['another name', { 'set NX GET': 'not this one' }, { unsupported: CALLS }, {}],
] as const)
  test(`BITCOUNT … BIT, which KeyDB refuses, where the plan allows ${named}`, async (t) => {
    if (!(await needs(t, 'redis=7.0', 'target<7.0'))) return;
    await withServers(async (servers) => {
      const shard = await startTestShard({ ...servers, plan: { gates: { allowUnsupported } } });
      const client = new Redis({ port: shard.port });
      try {
        await client.set('key', 'value');
        for (let i = 0; i < CALLS; i++) assert.equal(await client.call('BITCOUNT', 'key', '0', '8', 'BIT'), 5);
        await shard.settled();
        const snapshot = shard.snapshot();
        assert.deepEqual([snapshot.mismatches, snapshot.allowed], [mismatches, allowed]);
        assert.equal(shard.findings().length, Object.keys(mismatches).length === 0 ? 0 : CALLS);
        assert.deepEqual(snapshot.unsupported, { 'bitcount BIT': CALLS });
      } finally {
        client.disconnect();
        await shard.stop();
      }
    });
  });

test('An option that KeyDB knows in lower case only is unsupported, too', async (t) => {
  if (!(await needs(t, 'redis=7.0', 'target<7.0'))) return;
  await withServers(async (servers) => {
    const shard = await startTestShard(servers);
    const client = new Redis({ port: shard.port });
    try {
      await client.geoadd('key', 13.36, 38.11, 'a', 15.08, 37.5, 'b');
      for (const unit of ['km', 'KM'])
        assert.match(String(await client.call('GEODIST', 'key', 'a', 'b', unit)), /^165\.6/);
      await shard.settled();
      const { mismatches, unsupported } = shard.snapshot();
      assert.deepEqual([mismatches, Object.values(unsupported)], [{ unsupported: 1 }, [1]]);
    } finally {
      client.disconnect();
      await shard.stop();
    }
  });
});

test('A write that KeyDB refuses, and the plan allows, is copied', async (t) => {
  if (!(await needs(t, 'redis=7.0', 'target<7.0'))) return;
  await withServers(async (servers) => {
    const shard = await startTestShard({
      ...servers,
      plan: { gates: { allowUnsupported: { 'set NX GET': 'KeyDB gets a copy' } } },
    });
    const [client, target] = [new Redis({ port: shard.port }), new Redis(servers.target.url)];
    try {
      assert.equal(await client.call('SET', 'key', 'value', 'NX', 'GET'), null);
      await shard.settled();
      assert.equal(await target.get('key'), 'value');
      assert.deepEqual(shard.snapshot().mismatches, {});
    } finally {
      client.disconnect();
      target.disconnect();
      await shard.stop();
    }
  });
});
