/**
 * A source whose user may not do all: what the kit does without it, and both servers hold the same all the same.
 *
 * Needs real servers: NOPERM for each command that the kit's user may lack.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { missingOf } from '../../../src/upstream/capabilities.js';
import { askOnce } from '../../../src/upstream/ask-once.js';
import { differences } from '../../support/keyspace.js';
import { ask, ended, job } from '../../support/jobs.js';
import { withServers } from '../../support/servers.js';
import { startTestShard, until } from '../../support/shard.js';
import { needs } from '../../support/needs.js';

const KIT = { username: 'kit', password: 'pw' };
/** By what is denied: what is then missing, as `missingOf` names it. */
const DENIED: readonly (readonly [denied: readonly string[], missing: readonly string[]])[] = [
  [['-acl|getuser'], ['ACL GETUSER']],
  [['-acl|list'], ['ACL LIST']],
  [['-client|tracking'], ['CLIENT TRACKING']],
  [['-client|unblock'], ['CLIENT UNBLOCK']],
  [['-config'], ['CONFIG GET']],
  [['-memory'], ['MEMORY USAGE']],
  [['-monitor', '-debug'], []],
  [
    ['-acl', '-config', '-memory', '-monitor', '-debug', '-client|tracking', '-client|unblock'],
    ['ACL GETUSER', 'ACL LIST', 'CLIENT TRACKING', 'CLIENT UNBLOCK', 'CONFIG GET', 'MEMORY USAGE'],
  ],
];

for (const [denied, missing] of DENIED)
  test(`the source denies ${denied.join(' ')}`, async (t) => {
    // Redis 6.2 denies whole commands only.
    if (denied.some((right) => right.includes('|')) && !(await needs(t, 'redis>=7.0'))) return;
    await withServers(async ({ source, target }) => {
      const direct = new Redis(source.port);
      t.after(() => direct.disconnect());
      await direct.call('ACL', 'SETUSER', KIT.username, 'on', `>${KIT.password}`, '~*', '&*', '+@all', ...denied);
      await Promise.all(Array.from({ length: 500 }, (_, i) => direct.set(`old:${i}`, 'v'.repeat(i))));
      await direct.rpush('old:list', ...Array.from({ length: 1_000 }, (_, i) => `element ${i}`));
      const found = await missingOf((...args) => askOnce(source, null, KIT, ...args));
      assert.deepEqual(
        found.map(({ name }) => name),
        missing,
      );

      const url = `redis://${KIT.username}:${KIT.password}@${source.host}:${source.port}`;
      const shard = await startTestShard({ source: url, target, alike: false });
      t.after(() => shard.stop());
      const [client, blocked] = [new Redis(shard.port), new Redis(shard.port)];
      t.after(() => [client, blocked].forEach((each) => each.disconnect()));
      ask({ shard }, { kind: 'backfill' });
      await Promise.all(Array.from({ length: 500 }, (_, i) => client.incr(`n:${i % 50}`)));
      await client.eval("return redis.call('INCRBY', KEYS[1], ARGV[1])", 1, 'scripted', 5);
      await client.eval("return redis.call('SADD', 'hid' .. 'den', ARGV[1])", 0, 'member');
      await ended({ shard }, 60_000);
      assert.equal(job({ shard }).state, 'done', JSON.stringify(job({ shard })));
      // A script without tracking makes all keys suspect, until the proxy has verified them automatically.
      const left = (): string => JSON.stringify(shard.snapshot().workloads);
      await until(() => shard.snapshot().workloads.every(({ clean }) => clean), 60_000, left);
      await shard.settled();
      assert.deepEqual(await differences(source, target), []);

      const blocks = (count: number): Promise<void> =>
        until(async () => ((await direct.client('LIST')) as string).split('cmd=blpop').length - 1 === count);
      // A client that has left takes nothing of a later push, which does not wait for the client's timeout.
      const leaving = new Redis(shard.port);
      leaving.blpop('left', 0).catch(() => undefined);
      await blocks(1);
      leaving.disconnect();
      await until(() => shard.snapshot().clients === 2);
      assert.equal(await client.rpush('left', 'x'), 1);
      assert.deepEqual(await client.lrange('left', 0, -1), ['x']);

      const popped = blocked.blpop('queue', 2);
      await blocks(1);
      await shard.shard.changeStage({ workload: 'default', stage: 'live' });
      await client.lpush('queue', 'job');
      // A command that cannot be unblocked keeps the stage change waiting until its timeout.
      assert.deepEqual(await popped, missing.includes('CLIENT UNBLOCK') ? null : ['queue', 'job']);
      await client.eval("return redis.call('SADD', 'hid' .. 'den', ARGV[1])", 0, 'another');
      await shard.settled();
      assert.deepEqual(await differences(source, target), []);
      assert.deepEqual(shard.snapshot().mismatches, {});
    });
  });

test('what the kit cannot do without refuses the start, and is named', async (t) => {
  if (!(await needs(t, 'redis>=7.0'))) return;
  await withServers(async ({ source, target }) => {
    const direct = new Redis(source.port);
    t.after(() => direct.disconnect());
    for (const command of ['info', 'client|list', 'client|setname', 'client|kill']) {
      // Two that do not see each other would both serve the shard.
      const rights = ['reset', 'on', `>${KIT.password}`, '~*', '&*', '+@all', `-${command}`];
      await direct.call('ACL', 'SETUSER', KIT.username, ...rights);
      const url = `redis://${KIT.username}:${KIT.password}@${source.host}:${source.port}`;
      const refused = new RegExp(command.startsWith('client') ? `refuses ${command.replace('|', ' ')} ` : command, 'i');
      await assert.rejects(async () => (await startTestShard({ source: url, target })).stop(), refused);
    }
  });
});
