/**
 * Rule 22: keys of the target that the kit did not write are neither deleted nor overwritten without being named and
 * confirmed.
 *
 * Needs real servers: SCAN, FLUSHALL and SWAPDB on a KeyDB that holds keys of others.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { startTestTarget, withServers } from '../../support/servers.js';
import { ask, ended, job } from '../../support/jobs.js';
import { startOn, withRig, type Rig } from '../../support/rig.js';
import { until } from '../../support/shard.js';

const OFF = { default: { stage: 'off' } } as const;
const toDualwrite = { workload: 'default', stage: 'dualwrite' } as const;

/** `<prefix>:0` and so on, each with the value. */
async function fill(
  rig: Rig,
  side: 'source' | 'target',
  prefix: string,
  count: number,
  value: string,
  db = 0,
): Promise<void> {
  const pipeline = rig.client({ of: rig[side], db }).pipeline();
  for (let i = 0; i < count; i++) pipeline.set(`${prefix}:${i}`, value);
  await pipeline.exec();
}

async function run(rig: Rig, request: Parameters<typeof ask>[1]): Promise<ReturnType<typeof job>> {
  ask(rig, request);
  await ended(rig);
  return job(rig);
}

const events = async (rig: Rig): Promise<Record<string, unknown>[]> =>
  (await readFile(join(rig.shard.stateDir, 'test', 'history.jsonl'), 'utf8'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

test('a target with 1,000 keys of its own and 100 that the source has, too: nothing of it is lost without its number', async () => {
  await withRig(OFF, async (rig) => {
    const { shard } = rig.shard;
    await fill(rig, 'source', 'app', 1_000, 'source');
    await fill(rig, 'target', 'other', 1_000, 'foreign');
    await fill(rig, 'target', 'app', 100, 'older');
    const target = rig.client({ of: rig.target });

    const { gates, targetKeys } = await shard.promote({ workload: 'default', dryRun: true });
    const gate = gates.find(({ name }) => name === 'target')!;
    assert.equal(gate.answer, 'no');
    assert.match(
      gate.evidence,
      /1,100 keys of this workload .* not written by this shard: 100 are on the source, too, 1,000 are foreign keys .*another target; `owns`.*--overwrite.*--delete-foreign/,
    );
    assert.deepEqual([targetKeys?.found, targetKeys?.onSource, targetKeys?.complete], [1_100, 100, true]);
    const refusals = [
      toDualwrite,
      { ...toDualwrite, force: true },
      { ...toDualwrite, consent: { overwrite: false, deleteForeign: true, confirm: 1_100 } },
      { ...toDualwrite, consent: { overwrite: true, deleteForeign: false, confirm: 1_099 } },
    ];
    for (const request of refusals)
      await assert.rejects(shard.changeStage(request), { code: 'gates-closed' }, JSON.stringify(request));
    await assert.rejects(shard.promote({ workload: 'default', force: true, reason: 'in a hurry' }), {
      code: 'gates-closed',
      message: /closed gates: target$/,
    });
    assert.equal(await target.dbsize(), 1_100);

    await shard.changeStage({ ...toDualwrite, consent: { overwrite: true, deleteForeign: false, confirm: 1_100 } });
    const dry = await run(rig, { kind: 'backfill', dryRun: true });
    assert.deepEqual([dry.seen, dry.overwritten, dry.deleted, dry.keptForeign], [1_000, 100, 0, 1_000]);
    const copied = await run(rig, { kind: 'backfill' });
    assert.deepEqual(
      [copied.copied, copied.overwritten, copied.deleted, copied.keptForeign],
      [1_000, 100, 0, 1_000],
      JSON.stringify(copied),
    );
    assert.equal(await target.dbsize(), 2_000);
    assert.deepEqual([await target.get('app:7'), await target.get('other:7')], ['source', 'foreign']);

    const found = await run(rig, { kind: 'verify' });
    assert.deepEqual(found.differences, { foreign: 1_000 });
    const kept = await run(rig, { kind: 'verify', repair: true });
    assert.deepEqual([kept.deleted, kept.keptForeign, await target.dbsize()], [0, 1_000, 2_000]);
    const fewer = await run(rig, { kind: 'verify', repair: true, deletes: 400 });
    assert.deepEqual([fewer.deleted, fewer.keptForeign, await target.dbsize()], [400, 600, 1_600]);
    shard.startJob(
      { ...fewer, kind: 'verify', workloads: null, again: false, limits: {}, repair: true, deletes: 600 },
      'ada',
    );
    await ended(rig);
    assert.deepEqual([job(rig).deleted, job(rig).keptForeign, await target.dbsize()], [600, 0, 1_000]);
    await rig.assertEqual();
    assert.ok((await events(rig)).some(({ event, keys, by }) => event === 'deletes' && keys === 600 && by === 'ada'));
  });
});

test('foreign keys of which the deletion was confirmed are deleted by the backfill, in every database, and by nothing before it', async () => {
  await withRig(OFF, async (rig) => {
    const { shard } = rig.shard;
    await fill(rig, 'source', 'app', 50, 'source', 2);
    for (const db of [0, 2, 5]) await fill(rig, 'target', 'other', 20, 'foreign', db);
    const consent = { overwrite: false, deleteForeign: true, confirm: 60 };
    const done = await shard.promote({
      workload: 'default',
      consent,
      force: true,
      reason: 'a test: the clients of the rig bypass the proxy',
      by: 'ada',
    });
    assert.equal(done.gates.find(({ name }) => name === 'target')!.answer, 'yes');
    const change = (await events(rig)).find(
      ({ event, to }) => event === 'stage' && (to as { stage: string }).stage === 'dualwrite',
    )!;
    assert.deepEqual(change.consent, consent);
    assert.deepEqual((await rig.shard.state()).admitted.default.deleteForeign, 60);
    const { deleted, keptForeign } = await run(rig, { kind: 'backfill' });
    assert.deepEqual([deleted, keptForeign], [60, 0]);
    await rig.assertEqual();
    // The file follows the end of the job.
    await until(async () => (await rig.shard.state()).admitted.default.foreign === 0);
  });
});

test('back in dualwrite, what the shard wrote before is its own: stale keys of it are deleted, and nobody is asked', async () => {
  await withRig(OFF, async (rig) => {
    const { shard } = rig.shard;
    await fill(rig, 'source', 'app', 50, 'source');
    await shard.changeStage(toDualwrite);
    await run(rig, { kind: 'backfill' });
    await shard.changeStage({ workload: 'default', stage: 'off' });
    await rig.client().del('app:1', 'app:2', 'app:3');
    const { gates } = await shard.promote({ workload: 'default', dryRun: true });
    assert.match(
      gates.find(({ name }) => name === 'target')!.evidence,
      /this shard wrote all keys of this workload on the target/,
    );
    await shard.changeStage(toDualwrite);
    const { copied, overwritten, deleted, keptForeign } = await run(rig, { kind: 'backfill' });
    assert.deepEqual([copied, overwritten, deleted, keptForeign], [47, 0, 3, 0]);
    await rig.assertEqual();
  });
});

test('a foreign key that a client reads is kept; one that a client writes and deletes is not', async () => {
  await withRig(OFF, async (rig) => {
    const { shard } = rig.shard;
    await fill(rig, 'target', 'other', 4, 'foreign');
    const [proxy, target] = [rig.client(), rig.client({ of: rig.target })];
    await target.expire('other:3', 1_000);
    await shard.changeStage({ ...toDualwrite, consent: { overwrite: true, deleteForeign: false, confirm: 4 } });
    await run(rig, { kind: 'backfill' });
    await shard.changeStage({ workload: 'default', stage: 'shadow' });
    assert.equal(await proxy.get('other:0'), null);
    await until(() => Object.keys(shard.snapshot().mismatches).length > 0);
    await rig.shard.settled();
    assert.equal(await target.get('other:0'), 'foreign');
    // A write that reads it.
    assert.equal(await proxy.copy('other:3', 'copied'), 0);
    await rig.shard.settled();
    assert.equal(await target.get('other:3'), 'foreign');
    await proxy.set('other:1', 'mine');
    await proxy.del('other:1');
    await rig.shard.settled();
    assert.deepEqual((await target.keys('*')).sort(), ['other:0', 'other:2', 'other:3']);
  });
});

test('a plan whose first stage writes to the target is held to the same: the workload stays off, and clients are served', async () => {
  await withServers(async (servers) => {
    const before = await startOn({ ...servers, ...OFF });
    await fill(before, 'target', 'other', 5, 'foreign');
    await before.stop();
    for (const stage of ['dualwrite', 'shadow'] as const) {
      const rig = await startOn({
        ...servers,
        workloads: [{ name: 'users', keys: ['user:*'], stage }],
        default: { stage },
      });
      try {
        assert.deepEqual(
          rig.shard.snapshot().workloads.map((each) => `${each.name} ${each.stage}`),
          [`users ${stage}`, 'default off'],
        );
        await rig.client().set('other:1', 'for the source');
        assert.equal(await rig.client({ of: rig.target }).get('other:1'), 'foreign');
        assert.ok(
          (await events(rig)).some(
            ({ event, workload, reason }) =>
              event === 'stage' && workload === 'default' && /5 are foreign keys/.test(String(reason)),
          ),
        );
        await rig.client().del('other:1');
      } finally {
        await rig.stop();
      }
    }
    await assert.rejects(startOn({ ...servers, default: { stage: 'shadow' }, alike: true }), {
      code: 'gates-closed',
      message: /5 keys/,
    });
  });
});

test('FLUSHALL, FLUSHDB and SWAPDB reach no key of the target that the shard did not write, and what it wrote goes', async () => {
  for (const command of [['FLUSHALL'], ['FLUSHDB'], ['SWAPDB', '0', '1']] as const) {
    await withRig(
      { workloads: [{ name: 'users', keys: ['user:*'], stage: 'shadow' }], default: { stage: 'off' } },
      async (rig) => {
        await fill(rig, 'target', 'other', 10, 'foreign');
        const proxy = rig.client();
        for (let i = 0; i < 20; i++) await proxy.set(`user:${i}`, 'mine');
        assert.equal(await proxy.call(...(command as unknown as [string])), 'OK');
        await proxy.set('user:after', 'mine');
        await assert.rejects(
          proxy.eval("return redis.call('FLUSHALL')", 0),
          /the target may hold keys that the proxy did not write/,
        );
        await until(
          () => job(rig)?.state === 'done' && rig.shard.snapshot().workloads.every(({ suspect }) => suspect === null),
        );
        await rig.shard.settled();
        const target = rig.client({ of: rig.target });
        assert.deepEqual((await target.keys('other:*')).length, 10, command[0]);
        assert.deepEqual(await target.keys('user:*'), ['user:after'], command[0]);
      },
    );
  }
});

test('where the shard wrote all that the target has, FLUSHALL is repeated there', async () => {
  await withRig({}, async (rig) => {
    const proxy = rig.client();
    for (let i = 0; i < 20; i++) await proxy.set(`user:${i}`, 'mine');
    await proxy.flushall();
    await rig.shard.settled();
    assert.equal(await rig.client({ of: rig.target }).dbsize(), 0);
    assert.equal(job(rig), null);
    await rig.assertEqual();
  });
});

test('another server that answers in place of the target, with keys of its own, keeps them', async () => {
  await withRig({}, async (rig) => {
    const proxy = rig.client();
    for (let i = 0; i < 50; i++) await proxy.set(`user:${i}`, 'mine');
    await rig.assertEqual();
    const { port } = rig.target;
    const another = await startTestTarget();
    await fill({ ...rig, target: another }, 'target', 'other', 300, 'foreign');
    await rig.client({ of: another }).save();
    await rig.target.stop();
    const other = await startTestTarget({ port, config: { dir: another.dir } });
    try {
      await until(() => job(rig)?.state === 'done' && rig.shard.snapshot().mirror.connected);
      await rig.shard.settled();
      const target = rig.client({ of: other });
      assert.deepEqual([(await target.keys('other:*')).length, (await target.keys('user:*')).length], [300, 50]);
      assert.equal(job(rig).keptForeign, 300);
    } finally {
      await Promise.all([other.stop(), another.stop()]);
    }
  });
});
