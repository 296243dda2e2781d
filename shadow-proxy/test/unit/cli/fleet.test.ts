/** The proxies of a plan as one, over HTTP to admins whose shards do not run. Real processes: integration/cli/fleet. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Admin } from '../../../src/admin/admin-server.js';
import { AdminClient } from '../../../src/cli/admin-client.js';
import { Fleet } from '../../../src/cli/fleet.js';
import { StageError } from '../../../src/stages/stage-change.js';
import { stillShard, type StillShard } from '../../support/still-shard.js';

const PROMOTE = { workload: 'sessions', to: 'live', force: true, reason: 'to see it' } as const;

/** A process for each shard; null stands for a standby, which serves none. */
async function fleetOf(
  t: TestContext,
  shards: readonly (StillShard | null)[],
  planned = shards.flatMap((shard) => (shard === null ? [] : [shard.name])),
): Promise<Fleet> {
  const proxies: AdminClient[] = [];
  for (const shard of shards) {
    const serves = shard === null ? [] : [shard];
    const admin = await Admin.start({ host: '127.0.0.1', port: 0, token: () => null, shards: () => serves });
    t.after(() => admin.stop());
    proxies.push(new AdminClient({ admin: `127.0.0.1:${admin.port}` }));
  }
  return new Fleet(proxies, planned);
}

test('every shard is moved, whatever standbys there are; a named shard alone', async (t) => {
  const [s0, s1] = [stillShard('s0'), stillShard('s1')];
  const fleet = await fleetOf(t, [s0, null, s1, null]);
  const { shards, unserved, silent } = await fleet.status();
  assert.deepEqual([shards.map(({ name }) => name), unserved, silent], [['s0', 's1'], [], []]);
  assert.equal((await fleet.promote({ ...PROMOTE, dryRun: true })).length, 2);
  assert.deepEqual([s0.asked.length, s1.asked.length], [0, 0], 'a dry run changes nothing');
  assert.deepEqual(
    (await fleet.promote(PROMOTE)).map(({ shard }) => shard),
    ['s0', 's1'],
  );
  await fleet.promote({ ...PROMOTE, shard: 's1' });
  assert.deepEqual([s0.asked.length, s1.asked.length], [1, 2]);
  await assert.rejects(fleet.promote({ ...PROMOTE, shard: 's2' }), { code: 'unknown-shard', exit: 2 });
});

test('where a later shard refuses, those that were moved go back, the last first', async (t) => {
  const [s0, s1] = [stillShard('s0'), stillShard('s1')];
  const s2 = stillShard('s2', () => {
    throw new StageError('refused', 'not now');
  });
  const fleet = await fleetOf(t, [s0, s1, s2]);
  await assert.rejects(fleet.promote(PROMOTE), {
    code: 'refused',
    message: 's2: not now; s0, s1 went back to the stage before',
  });
  // The snapshot of a shard that does not run says shadow: from there it is two steps to off.
  assert.deepEqual([s0.back, s1.back, s2.back], [['dualwrite', 'off'], ['dualwrite', 'off'], []]);
});

test('a shard that is not taken back is named', async (t) => {
  const s0: StillShard = { ...stillShard('s0'), changeStage: () => Promise.reject(new StageError('busy', 'not yet')) };
  const s1 = stillShard('s1', () => {
    throw new StageError('refused', 'not now');
  });
  await assert.rejects((await fleetOf(t, [s0, s1])).promote(PROMOTE), {
    message: /^s1: not now; s0 was not moved back: s0: not yet/,
  });
});

test('a shard that no proxy serves stops a change before it begins, and no question', async (t) => {
  const s0 = stillShard('s0');
  const fleet = await fleetOf(t, [s0, null], ['s0', 's1']);
  assert.deepEqual((await fleet.status()).unserved, ['s1']);
  await assert.rejects(fleet.promote(PROMOTE), {
    exit: 3,
    message:
      '"sessions" keeps its stage on every shard: no proxy answers for s1. Name a shard with --shard to change it alone',
  });
  await assert.rejects(fleet.rollback({ workload: 'sessions' }), { exit: 3 });
  assert.deepEqual([s0.asked, s0.back], [[], []]);
  await fleet.promote({ ...PROMOTE, shard: 's0' });
  assert.equal(s0.asked.length, 1);
});

test('what was not done minutes ago is not taken back', async (t) => {
  const s0 = stillShard('s0');
  const [proxy] = (await fleetOf(t, [s0])).proxies;
  const request = {
    shard: 's0',
    workload: 'sessions',
    from: { stage: 'off', percent: 100 },
    why: 's1 refused',
  } as const;
  await assert.rejects(proxy.takeBack(request), { message: /was not in off during the last 5 minutes/ });
  await proxy.promote(PROMOTE);
  assert.deepEqual(await proxy.takeBack(request), [{ shard: 's0' }]);
  await assert.rejects(proxy.takeBack({ ...request, from: { stage: 'shadow', percent: 100 } }), { code: 'refused' });
});
