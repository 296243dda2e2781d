/**
 * Rule 2: state beats plan. A plan's stage is a workload's first stage, and nothing more.
 *
 * Needs real files: stages in the state folder, over restarts with other plans, and a damaged file.
 */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Stage } from '../../../src/route/stage.js';
import { withScene, type Scene } from './scene.js';

const planned = (
  stage: Stage,
  percent?: number,
): { workloads: { name: string; keys: string[]; stage: Stage; percent?: number }[]; default: { stage: Stage } } => ({
  workloads: [{ name: 'a', keys: ['a:*'], stage, ...(percent !== undefined && { percent }) }],
  default: { stage: 'shadow' },
});

const stages = ({ shard }: Scene): string[] =>
  shard.snapshot().workloads.map(({ name, stage, percent }) => `${name} ${stage} ${percent}`);

/** The server whose replies clients get. Each server gets a value of its own, which distinguishes them. */
async function authorityOf({ client, source, target }: Scene, key: string): Promise<string | null> {
  await Promise.all([client({ of: source }).set(key, 'source'), client({ of: target }).set(key, 'target')]);
  return client().get(key);
}

test("the stages that were reached hold after a restart, whatever the plan's are", async () => {
  await withScene(planned('shadow'), async (scene) => {
    assert.equal(await authorityOf(scene, 'a:1'), 'source');
    await scene.shard.settled();
    await scene.shard.shard.changeStage({ workload: 'a', stage: 'live' });
    for (const stage of ['shadow', 'off', 'complete'] as const) {
      await scene.stopShard();
      await scene.startShard(planned(stage));
      assert.deepEqual(stages(scene), ['a live 100', 'default shadow 100']);
      assert.equal(await authorityOf(scene, `a:${stage}`), 'target');
      assert.equal(await authorityOf(scene, `b:${stage}`), 'source');
      await scene.shard.settled();
    }
  });
});

test('so do percents, and both ends of a process', async () => {
  await withScene(planned('shadow'), async (scene) => {
    await scene.shard.shard.changeStage({ workload: 'a', stage: 'live', percent: 50 });
    await scene.stopShard('drained');
    await scene.startShard(planned('live', 10));
    assert.deepEqual(stages(scene), ['a live 50', 'default shadow 100']);
    // Hash slots 15495 and 2152: the upper and the lower half.
    assert.equal(await authorityOf(scene, 'a:{a}'), 'source');
    assert.equal(await authorityOf(scene, 'a:{c2}'), 'target');
    await scene.shard.settled();
    await scene.shard.shard.changeStage({ workload: 'a', stage: 'shadow' });
    await scene.stopShard();
    await scene.startShard(planned('live'));
    assert.deepEqual(stages(scene), ['a shadow 100', 'default shadow 100']);
  });
});

test("a workload that the state does not know begins in its plan's stage", async () => {
  await withScene({ default: { stage: 'shadow' } }, async (scene) => {
    await scene.stopShard();
    await scene.startShard(planned('shadow'));
    assert.deepEqual(stages(scene), ['a shadow 100', 'default shadow 100']);
    await scene.stopShard();
    // Its keys were those of `default`, which are in shadow: they cannot be live at a stroke.
    await assert.rejects(
      scene.startShard({
        ...planned('shadow'),
        workloads: [...planned('shadow').workloads, { name: 'b', keys: ['b:*'], stage: 'live' }],
      }),
      /b/,
    );
  });
});

test('the file says what holds, and a damaged one stops the shard instead of sending clients to the wrong server', async () => {
  await withScene(planned('shadow'), async (scene) => {
    await scene.shard.shard.changeStage({ workload: 'a', stage: 'live' });
    const directory = join(scene.shard.stateDir, 'test');
    const text = await readFile(join(directory, 'state.json'), 'utf8');
    assert.deepEqual(JSON.parse(text).workloads, {
      a: { stage: 'live', percent: 100 },
      default: { stage: 'shadow', percent: 100 },
    });
    assert.match(
      await readFile(join(directory, 'history.jsonl'), 'utf8'),
      /"event":"stage","workload":"a","from":\{"stage":"shadow","percent":100\},"to":\{"stage":"live"/,
    );
    await scene.stopShard();
    await writeFile(join(directory, 'state.json'), text.slice(0, 40));
    await assert.rejects(scene.startShard(), { code: 'state-corrupt' });
    await writeFile(join(directory, 'state.json'), text);
    await scene.startShard(planned('off'));
    assert.deepEqual(stages(scene), ['a live 100', 'default shadow 100']);
  });
});
