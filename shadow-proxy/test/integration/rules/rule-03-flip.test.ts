/**
 * Rule 3: a flip waits for both servers, or times out with nothing changed; clients notice only a pause.
 *
 * Needs real processes: SIGSTOP of each server during a stage change, and cursors of SCAN.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StageRequest } from '../../../src/stages/stage-change.js';
import { changeStage, until } from '../../support/shard.js';
import { patienceMs } from '../../support/patience.js';
import { assertCounted, startLoad, type Load } from './load.js';
import { withScene } from './scene.js';

const flow = (load: Load, commands = 2_000): Promise<void> => {
  const from = load.answered;
  return until(
    () => load.answered > from + commands,
    20_000,
    () => `${load.answered - from} of ${commands} commands were answered`,
  );
};

async function flipUnderLoad(path: readonly Omit<StageRequest, 'workload'>[], transactions: boolean): Promise<void> {
  await withScene({}, async (scene) => {
    const load = await startLoad(scene, { transactions });
    for (const step of path) {
      await flow(load);
      const { to, heldMs } = await scene.shard.shard.changeStage({ workload: 'default', ...step });
      assert.deepEqual(to, { stage: step.stage, percent: step.percent ?? 100 });
      assert.ok(heldMs < patienceMs(2_000), `held for ${heldMs} ms`);
    }
    await flow(load);
    const shared = await load.stop();
    await scene.assertEqual();
    await assertCounted(scene, shared);
    const { mismatches, flips, allowed } = scene.shard.snapshot();
    assert.deepEqual(
      { mismatches, allowed, flips },
      { mismatches: {}, allowed: {}, flips: path.length },
      JSON.stringify(scene.shard.findings().slice(0, 3)),
    );
  });
}

test('clients with pipelines notice nothing of flips to the target and back', async () => {
  const there = { stage: 'live' } as const;
  const back = { stage: 'shadow' } as const;
  await flipUnderLoad([there, back, there, { stage: 'rampdown' }, there, back, { stage: 'dualwrite' }, back], true);
});

test('nor of flips by percent', async () => {
  const live = (percent: number): Omit<StageRequest, 'workload'> => ({ stage: 'live', percent });
  await flipUnderLoad([live(1), live(50), live(100), live(50), { stage: 'shadow' }, live(100), live(1)], false);
});

test('a flip times out while the new authority is stopped, and clients go on', async () => {
  await withScene({ limits: { flipMs: 300 } }, async (scene) => {
    const load = await startLoad(scene);
    await flow(load);
    const before = await scene.shard.state();
    await scene.target.kill('SIGSTOP');
    await flow(load);
    await assert.rejects(scene.shard.shard.changeStage({ workload: 'default', stage: 'live' }), { code: 'deadline' });
    assert.deepEqual([scene.shard.snapshot().workloads[0].stage, scene.shard.snapshot().flips], ['shadow', 0]);
    assert.deepEqual(await scene.shard.state(), before);
    await flow(load);
    await scene.target.kill('SIGCONT');
    const shared = await load.stop();
    await scene.assertEqual();
    await assertCounted(scene, shared);
    await changeStage(scene.shard.shard, { workload: 'default', stage: 'live' });
  });
});

test('a flip times out while the old authority does not answer, and its clients get their replies in the end', async () => {
  await withScene({ limits: { flipMs: 300 } }, async (scene) => {
    const wire = await scene.wire();
    await wire.ask('SET', 'k', 0);
    await scene.source.kill('SIGSTOP');
    const before = scene.toSource.passed('up');
    wire.send('INCR', 'k');
    await until(() => scene.toSource.passed('up') > before);
    await assert.rejects(scene.shard.shard.changeStage({ workload: 'default', stage: 'live' }), { code: 'deadline' });
    wire.send('INCR', 'k');
    await scene.source.kill('SIGCONT');
    assert.deepEqual(await wire.frames(2), [':1', ':2']);
    await scene.assertEqual();
  });
});

test('a flip to a server that is down is refused, although nothing waits for it', async () => {
  await withScene({}, async (scene) => {
    const wire = await scene.wire();
    await wire.ask('SET', 'k', 'v');
    await scene.shard.settled();
    await scene.target.kill('SIGKILL');
    await until(() => !scene.shard.snapshot().mirror.connected);
    for (const force of [false, true]) {
      await assert.rejects(scene.shard.shard.changeStage({ workload: 'default', stage: 'live', force }), {
        code: 'refused',
        message: /the target cannot be reached/,
      });
    }
    assert.equal(await wire.ask('GET', 'k'), '$1\r\nv');
    assert.equal(scene.shard.snapshot().workloads[0].stage, 'shadow');
  });
});

test('keys that are written while a copy begins are on both servers, or suspect', async () => {
  await withScene({ default: { stage: 'off' } }, async (scene) => {
    const wire = await scene.wire();
    await wire.ask('PING');
    // The question how many keys there are is on its way while they are written.
    scene.toTarget.hold('down');
    const flip = scene.shard.shard.changeStage({ workload: 'default', stage: 'dualwrite' });
    const replies = wire.pipeline([
      ['SET', 'a', 1],
      ['INCR', 'a'],
    ]);
    await new Promise(setImmediate);
    scene.toTarget.release();
    await flip;
    assert.deepEqual(await replies, ['+OK', ':2']);
    await scene.shard.settled();
    if (scene.shard.snapshot().workloads[0].clean) assert.equal(await scene.client({ of: scene.target }).get('a'), '2');
    // With a key from before, the workload is suspect for certain, also after a restart.
    await scene.shard.shard.changeStage({ workload: 'default', stage: 'off' });
    await scene.shard.shard.changeStage({ workload: 'default', stage: 'dualwrite' });
    await scene.stopShard();
    await scene.startShard();
    assert.equal(scene.shard.snapshot().workloads[0].clean, false);
  });
});

test('a flip and commands that run alone keep out of each other’s way', async () => {
  await withScene({}, async (scene) => {
    const load = await startLoad(scene, { prefix: 'n:', clients: 3 });
    const flusher = await scene.wire();
    await flusher.ask('SELECT', 2);
    for (let round = 0; round < 12; round++) {
      const flip = scene.shard.shard.changeStage({ workload: 'default', stage: round % 2 === 0 ? 'live' : 'shadow' });
      const replies = flusher.pipeline([
        ['SET', `x:${round}`, 1],
        ['MOVE', `x:${round}`, 3],
        ['FLUSHDB'],
        ['SET', 'last', round],
        ['GET', 'last'],
      ]);
      await flip;
      assert.deepEqual(await replies, ['+OK', ':1', '+OK', '+OK', `$${String(round).length}\r\n${round}`]);
    }
    const shared = await load.stop();
    await scene.assertEqual();
    await assertCounted(scene, shared);
    assert.deepEqual(scene.shard.snapshot().mismatches, {});
  });
});

test('a SCAN goes on at the server where it began, after a flip and after the way back', async () => {
  await withScene({}, async (scene) => {
    const wire = await scene.wire();
    const keys = Array.from({ length: 3000 }, (_, i) => `k:${i}`);
    await wire.pipeline(keys.map((key) => ['SET', key, 1]));
    await scene.shard.settled();
    let page = 0;
    const next = async (scan: { cursor: string; found: Set<string> }): Promise<boolean> => {
      // KeyDB answers a long page from another thread, a short one not.
      const reply = (await wire.ask('SCAN', scan.cursor, 'COUNT', page++ % 2 ? 150 : 50)).split('\r\n');
      scan.cursor = reply[2];
      for (const key of reply.slice(4).filter((_, i) => i % 2 === 1)) scan.found.add(key);
      assert.ok(Number.isSafeInteger(Number(scan.cursor)), scan.cursor);
      return scan.cursor !== '0';
    };
    const atSource = { cursor: '0', found: new Set<string>() };
    for (let i = 0; i < 5; i++) assert.ok(await next(atSource));
    await scene.shard.shard.changeStage({ workload: 'default', stage: 'live' });
    const atTarget = { cursor: '0', found: new Set<string>() };
    for (let i = 0; i < 5; i++) assert.ok((await next(atTarget)) && (await next(atSource)));
    await scene.shard.shard.changeStage({ workload: 'default', stage: 'shadow' });
    while (await next(atTarget));
    await scene.shard.shard.changeStage({ workload: 'default', stage: 'live' });
    while (await next(atSource));
    for (const { found } of [atSource, atTarget]) assert.deepEqual([...found].sort(), [...keys].sort());
    assert.match(await wire.ask('SCAN', 'x'), /^-ERR invalid cursor/);
    assert.match(await wire.ask('SCAN'), /^-ERR wrong number/);
  });
});
