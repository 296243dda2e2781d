/**
 * Rule 23: a record that cannot be read is a suspicion, never an empty list.
 *
 * Needs real files: journals and states that are cut, changed or missing.
 */
import assert from 'node:assert/strict';
import { readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { tracesOf } from '../../../src/stages/served-before.js';
import type { Plan } from '../../../src/plan/plan.js';
import { smallPlan, toPlan } from '../../support/plans.js';
import { ask, ended } from '../../support/jobs.js';
import { differences } from '../../support/keyspace.js';
import { until } from '../../support/shard.js';
import { withScene, type Scene } from './scene.js';

const KEYS = 50;
const file = ({ shard }: Scene, name: string): string => join(shard.stateDir, 'test', name);
const suspicions = ({ shard }: Scene): (string | null)[] => shard.snapshot().workloads.map(({ suspect }) => suspect);
/** One more in the file, on every byte that a number may have there. */
const flip = (path: string, at: number): void => {
  const bytes = readFileSync(path);
  bytes[at] ^= 4;
  writeFileSync(path, bytes);
};

/** Ends the process with 50 keys that the target has never got. */
async function endWithKeysMissing(scene: Scene): Promise<void> {
  scene.toTarget.hold('up');
  const client = scene.client();
  await Promise.all(Array.from({ length: KEYS }, (_, i) => client.set(`k:${i}`, i)));
  await scene.stopShard();
  scene.toTarget.release();
  assert.equal((await differences(scene.source, scene.target)).length, KEYS);
}

for (const [what, damage] of [
  ['empty', (path: string) => truncateSync(path, 0)],
  ['cut', (path: string) => truncateSync(path, 500)],
  ['missing', (path: string) => rmSync(path)],
  ['damaged in the length of a record', (path: string) => flip(path, 72 + 8 + 5)],
] as const) {
  test(`a journal that is ${what} puts every key that is written twice in suspicion, says so, and has it verified`, async () => {
    const options = {
      workloads: [
        { name: 'a', keys: ['k:*'], stage: 'shadow' as const },
        { name: 'b', keys: ['b:*'], stage: 'off' as const },
      ],
    };
    await withScene(options, async (scene) => {
      await endWithKeysMissing(scene);
      damage(file(scene, 'journal-a'));
      await scene.startShard();
      assert.match(
        suspicions(scene)[0]!,
        /^the last process crashed: .*journal-a (is|was) (damaged|truncated|missing)/,
      );
      assert.equal(suspicions(scene)[1], null, 'what is written once cannot differ');
      assert.match(suspicions(scene)[2]!, /last process crashed/);
      assert.equal(scene.shard.snapshot().workloads[0].clean, false);
      const [event] = (await scene.shard.shard.history()).filter((each) => each.event === 'suspect');
      assert.deepEqual(event.workloads, ['a', 'default']);
      assert.match(String(event.reason), /journal-a/);
      await until(() => suspicions(scene).every((suspicion) => suspicion === null));
      await scene.assertEqual();
    });
  });
}

test('after an end in order a journal is not needed, and nothing is in suspicion', async () => {
  await withScene({}, async (scene) => {
    await scene.client().set('k', 'v');
    await scene.stopShard('drained');
    truncateSync(file(scene, 'journal-a'), 0);
    await scene.startShard();
    assert.deepEqual(suspicions(scene), [null]);
  });
});

test('a state of one process beside the journal of another puts everything in suspicion', async () => {
  await withScene({}, async (scene) => {
    await scene.stopShard('drained');
    const [state, history] = ['state.json', 'history.jsonl'].map((name) => readFileSync(file(scene, name)));
    await scene.startShard();
    await endWithKeysMissing(scene);
    // A copy from before that process, which says that nothing was under way.
    writeFileSync(file(scene, 'state.json'), state);
    await assert.rejects(scene.startShard(), { code: 'state-old' });
    writeFileSync(file(scene, 'history.jsonl'), history);
    rmSync(file(scene, 'journal-b'));
    await scene.startShard();
    assert.match(suspicions(scene)[0]!, /journal-a is not of the process that state.json names/);
    await until(() => suspicions(scene)[0] === null);
    await scene.assertEqual();
  });
});

test('a state with one letter changed is refused', async () => {
  await withScene({ default: { stage: 'live' } }, async (scene) => {
    await scene.stopShard();
    const path = file(scene, 'state.json');
    writeFileSync(path, readFileSync(path, 'utf8').replace('"live"', '"off"'));
    await assert.rejects(scene.startShard(), { code: 'state-corrupt', message: /its checksum does not match/ });
  });
});

test('a backfill goes on where it was only if what it wrote down of that is whole, and of the process that served last', async () => {
  await withScene({ default: { stage: 'off' } }, async (scene) => {
    const direct = scene.client({ of: scene.source });
    await direct.mset(Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`k:${i}`, i])));
    await scene.shard.shard.changeStage({ workload: 'default', stage: 'dualwrite' });
    ask(scene, { kind: 'backfill', limits: { keysPerSecond: 10_000 } });
    await until(() => /"cursor":"[1-9]/.test(readFileSync(file(scene, 'job.json'), 'utf8')));
    await scene.stopShard();
    const path = file(scene, 'job.json');
    const written = readFileSync(path, 'utf8');
    writeFileSync(
      path,
      written.replace(/"cursor":"./, (cursor) => `${cursor.slice(0, -1)}${cursor.endsWith('1') ? '2' : '1'}`),
    );
    await scene.startShard();
    // No job may go on: it would have begun by now.
    await sleep(100);
    assert.equal(scene.shard.snapshot().job, null);
    assert.equal(scene.shard.snapshot().workloads[0].clean, false);
    await scene.stopShard();
    // Whole, but of the process before.
    writeFileSync(path, written);
    await scene.startShard();
    // No job may go on: it would have begun by now.
    await sleep(100);
    assert.equal(scene.shard.snapshot().job, null);
    ask(scene, { kind: 'backfill' });
    await ended(scene);
    await scene.assertEqual();
  });
});

test('without its state folder a shard does not start where its target holds keys, unless the operator confirms that this is the first start', async () => {
  const started = { firstStart: false, default: { stage: 'off' as const } };
  await withScene(started, async (scene) => {
    // Both are empty: it is the first start.
    assert.equal(scene.shard.snapshot().workloads[0].stage, 'off');
    for (const stage of ['dualwrite', 'shadow', 'live'] as const)
      await scene.shard.shard.changeStage({ workload: 'default', stage });
    await scene.client().set('k', 'v');
    await scene.stopShard('drained');
    rmSync(join(scene.shard.stateDir, 'test'), { recursive: true });
    for (let attempt = 0; attempt < 2; attempt++) {
      await assert.rejects(scene.startShard(), (error: Error & { code: string }) => {
        assert.equal(error.code, 'state-missing');
        assert.match(
          error.message,
          /^shard test has no state in \S+, but its target redis:\S+ holds 1 keys: .* Mount or restore the folder .* start once with --first-start$/,
        );
        return true;
      });
    }
    await scene.startShard({ firstStart: true });
    await scene.stopShard('drained');
    await scene.startShard();
    assert.equal(scene.shard.snapshot().workloads[0].stage, 'off');
  });
});

test('on a target that shards share, keys of other shards are no trace of this one', async () => {
  await withScene({}, async ({ source, target, client }) => {
    const plan = (owns: boolean): Plan => {
      const shard = (name: string) => ({
        name,
        listen: 'redis://127.0.0.1:0',
        source: name === 'a' ? source.url : 'redis://127.0.0.1:1',
        target: target.url,
        ...(owns && { owns: [`${name}:*`] }),
      });
      return toPlan({ ...smallPlan(), shards: [shard('a'), shard('b')] });
    };
    const direct = client({ of: target, db: 2 });
    await direct.mset(Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`b:${i}`, i])));
    const [a, b] = plan(true).shards;
    assert.equal(await tracesOf(plan(true), a), null);
    assert.equal(await tracesOf(plan(true), b), 'holds keys that this shard owns');
    assert.equal(
      await tracesOf(plan(false), plan(false).shards[0]),
      null,
      'one that does not say which keys it has stays in shadow',
    );
    await direct.set('a:1', 'v');
    assert.equal(await tracesOf(plan(true), a), 'holds keys that this shard owns');
    await target.kill('SIGSTOP');
    const { limits } = plan(true);
    await assert.rejects(tracesOf({ ...plan(true), limits: { ...limits, connectMs: 300 } }, a), /does not answer/);
    await target.kill('SIGCONT');
    await target.kill('SIGKILL');
    await assert.rejects(tracesOf(plan(true), a));
  });
});
