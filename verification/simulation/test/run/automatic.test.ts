/** What moves a workload without an operator, in virtual time: the guard takes it back, the rollout takes it on. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LaunchedShard } from '../../../../shadow-proxy/src/shard/launch.js';
import type { WorkloadSnapshot } from '../../../../shadow-proxy/src/telemetry/snapshot.js';
import type { HistoryEvent } from '../../../../shadow-proxy/src/storage/state.js';
import { KeptWorld } from '../../kept/world.js';
import { WORLD } from '../../world/events.js';

const OPEN = {
  ...{ minCompared: 0, minMinutes: 0, maxP99Ratio: 1_000, maxAllowedShare: 1, maxInconclusiveShare: 1 },
  drill: false,
};

/** Of the rollout, at each of its steps. */
const HOLD_MS = 6_000;

const workload = (kept: KeptWorld): WorkloadSnapshot => kept.proxy.snapshot()!.workloads[0];

/** Runs it as code of the proxy, and waits for its end. */
async function act(kept: KeptWorld, what: (shard: LaunchedShard['shard']) => unknown): Promise<void> {
  let end: { problem?: unknown } | null = null;
  kept.proxy.within(({ shard }) => {
    Promise.resolve(what(shard)).then(
      () => (end = {}),
      (problem: unknown) => (end = { problem }),
    );
  });
  await kept.until(() => end !== null, 'the operator is answered');
  const { problem } = end!;
  if (problem !== undefined) throw problem;
}

/** A client writes and reads every 50 ms while the program runs. @returns the last value of each key */
async function underLoad(kept: KeptWorld, program: () => Promise<void>): Promise<ReadonlyMap<string, string>> {
  const client = await kept.client();
  const written = new Map<string, string>();
  let [sent, isOver] = [0, false];
  const work = (): void => {
    if (isOver) return;
    const [key, value] = [`k${sent % 50}`, `v${sent}`];
    written.set(key, value);
    for (const command of [
      ['SET', key, value],
      ['GET', key],
    ])
      client.send(command);
    sent += 2;
    kept.world.events.after(50, WORLD, work);
  };
  work();
  await program();
  isOver = true;
  await kept.until(() => client.replies.length === sent, 'each command is answered');
  return written;
}

function stagesOf(kept: KeptWorld): HistoryEvent[] {
  const lines = kept.proxy.host.disk.readFile('/state/s0/history.jsonl').toString().trim().split('\n');
  return lines.map((line) => JSON.parse(line) as HistoryEvent).filter(({ event }) => event === 'stage');
}

test('a target that becomes slow is left by the guard, which loses nothing and waits for an operator', () =>
  KeptWorld.run(
    async (kept) => {
      const written = await underLoad(kept, async () => {
        await act(kept, (shard) => shard.changeStage({ workload: 'default', stage: 'live' }));
        await kept.pass(30_000);
        assert.deepEqual(workload(kept).automatic, { guard: true, rollout: false, exceeds: [], hold: null });
        assert.equal(workload(kept).stage, 'live', 'nothing is wrong yet');
        kept.target.worksOn = () => 50;
        await kept.until(() => workload(kept).stage === 'shadow', 'the guard moves it');
        kept.target.worksOn = () => 0;
      });
      const { hold } = workload(kept).automatic;
      assert.equal(hold!.why, 'rolled-back');
      assert.match(hold!.reason, /^for 4 s in live: p99 of the target is [\d.]+ times the source's .* at most 3$/);
      const event = stagesOf(kept).at(-1)!;
      assert.deepEqual([event.automatic, event.by, event.reason], ['guard', 'the guard', hold!.reason]);
      await kept.until(() => kept.isClean, 'the mirror has everything');
      for (const [key, value] of written) assert.deepEqual(kept.values(`0 ${key}`), [value, value]);

      kept.proxy.kill();
      kept.proxy.start();
      await kept.until(() => kept.proxy.launched !== null, 'the next process serves');
      assert.deepEqual(workload(kept).automatic.hold, hold, 'it outlives the process');
      // An operator promotes it again: what the guard has seen before counts no longer.
      await kept.until(() => kept.isClean, 'it is clean again');
      await act(kept, (shard) => shard.changeStage({ workload: 'default', stage: 'live', percent: 1 }));
      assert.equal(workload(kept).automatic.hold, null);
      assert.equal(stagesOf(kept).filter((each) => each.automatic === 'guard').length, 1);
    },
    { default: { stage: 'shadow' }, guard: { forSeconds: 4, maxP99Ratio: 3 } },
  ));

test('the rollout takes a workload from 1 to 100 % of its keys, waits while it is paused, and goes no further', () =>
  KeptWorld.run(
    async (kept) => {
      await underLoad(kept, async () => {
        await kept.pass(5_000);
        const verify = { kind: 'verify', workloads: null, repair: false, dryRun: false, again: false } as const;
        await act(kept, (shard) =>
          shard.startJob({ ...verify, deletes: 0, sample: 100, limits: {}, automatic: false }),
        );
        await kept.until(() => kept.proxy.snapshot()!.job?.state === 'done', 'everything is verified');
        await kept.pass(3 * HOLD_MS);
        assert.equal(workload(kept).stage, 'shadow', 'an operator begins it');

        await act(kept, (shard) => shard.changeStage({ workload: 'default', stage: 'live', percent: 1 }));
        await act(kept, (shard) =>
          shard.automate({ workload: 'default', state: 'pause', reason: 'a release', by: 'ada' }),
        );
        await kept.pass(3 * HOLD_MS);
        assert.equal(workload(kept).percent, 1, 'it is paused');
        assert.equal(workload(kept).automatic.hold!.by, 'ada');
        await act(kept, (shard) => shard.automate({ workload: 'default', state: 'resume', reason: 'it is over' }));
        for (const percent of [10, 50, 100]) {
          const begun = kept.world.events.now;
          await kept.until(() => workload(kept).percent === percent, `${percent} % of the keys`);
          // Beside the time of a look, and of the change.
          const ms = kept.world.events.now - begun;
          assert.ok(ms >= HOLD_MS && ms < HOLD_MS + 18_000, `${percent} % after ${ms} ms`);
        }
        await kept.pass(3 * HOLD_MS);
        assert.equal(workload(kept).stage, 'live', 'what comes then is for an operator');
      });
      const steps = stagesOf(kept).filter(({ automatic }) => automatic === 'rollout');
      assert.deepEqual(
        steps.map(({ to }) => (to as { percent: number }).percent),
        [10, 50, 100],
      );
      assert.match(String(steps[0].reason), /^all gates were open for \d+ s$/);
    },
    { default: { stage: 'shadow' }, rollout: { holdMinutes: HOLD_MS / 60_000 }, gates: OPEN },
  ));
