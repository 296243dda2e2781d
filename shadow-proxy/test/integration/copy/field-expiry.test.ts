/**
 * Fields of a hash that expire (Redis 7.4): KeyDB cannot hold them as Redis does, so their key is named and not copied
 * without them.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { differences } from '../../support/keyspace.js';
import { ask, ended, job } from '../../support/jobs.js';
import { withRig, type Rig } from '../../support/rig.js';
import { needsKeydb, withServers } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { clientsOf } from '../../support/clients.js';

test('KeyDB keeps the expiry of a field that is set anew, and does not tell of it in DUMP', async (t) => {
  if (!(await needsKeydb(t))) return;
  await withServers(async ({ target }) => {
    const { client, closeAll } = clientsOf(() => target.port);
    const keydb = client();
    await keydb.hset('hash', 'a', 1, 'b', 2);
    assert.equal(await keydb.call('EXPIREMEMBER', 'hash', 'a', 300, 'ms'), 1);
    await keydb.hset('hash', 'a', 'new');
    const dump = await keydb.dumpBuffer('hash');
    await keydb.call('RESTORE', 'copy', 0, dump!);
    await sleep(700);
    assert.deepEqual([await keydb.hgetall('hash'), await keydb.hgetall('copy')], [{ b: '2' }, { a: 'new', b: '2' }]);
    closeAll();
  });
});

async function knowsFieldExpiry(t: TestContext, { client, source }: Rig): Promise<boolean> {
  if (((await client({ of: source }).call('COMMAND', 'INFO', 'hpexpire')) as unknown[])[0] !== null) return true;
  const reason = `NOT TESTED WITH FIELDS THAT EXPIRE: "${t.name}" needs Redis 7.4 or newer (set REDIS_SERVER)`;
  process.stderr.write(`${reason}\n`);
  t.skip(reason);
  return false;
}

test('a hash whose fields expire is named, stays in doubt, and is copied when they do no longer', async (t) => {
  if (!(await needsKeydb(t))) return;
  await withRig({ default: { stage: 'off' } }, async (rig) => {
    if (!(await knowsFieldExpiry(t, rig))) return;
    const proxy = rig.client();
    await proxy.hset('before', 'a', 1, 'b', 2);
    await proxy.call('HPEXPIRE', 'before', 1_000_000, 'FIELDS', 1, 'a');
    await proxy.set('other', 1);
    await rig.shard.shard.changeStage({ workload: 'default', stage: 'dualwrite' });
    ask(rig, { kind: 'backfill' });
    await ended(rig);
    assert.deepEqual([job(rig).state, job(rig).copied, job(rig).failed], ['done', 1, 1]);
    assert.equal(job(rig).failures[0].key, 'before');
    assert.match(job(rig).failures[0].why, /fields that expire/);
    await rig.shard.shard.changeStage({ workload: 'default', stage: 'shadow' });

    // While clients write: the key is not taken for equal either.
    await proxy.hset('live', 'a', 1, 'b', 2);
    await until(() => rig.shard.snapshot().mirror.queuedEffects === 0);
    await proxy.call('HEXPIRE', 'live', 1_000, 'FIELDS', 1, 'a');
    await sleep(500);
    assert.deepEqual(
      [rig.shard.snapshot().suspects.total, rig.shard.snapshot().unsupported],
      [2, { hpexpire: 1, hexpire: 1 }],
    );
    await assert.rejects(rig.shard.shard.changeStage({ workload: 'default', stage: 'live' }), { code: 'not-clean' });

    await proxy.call('HPERSIST', 'live', 'FIELDS', 1, 'a');
    await proxy.call('HPERSIST', 'before', 'FIELDS', 1, 'a');
    await rig.shard.settled(20_000);
    assert.deepEqual(await differences(rig.source, rig.target), []);
    assert.equal(rig.shard.snapshot().workloads[0].clean, true);
  });
});
