/**
 * A dry run is the way of the real command up to the change: both end alike, from every stage and in every state.
 *
 * Not simulated yet: a dry run beside the real command, in 300 random states.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asAdminError } from '../../../src/admin/errors.js';
import { promoteAll, rollbackAll } from '../../../src/admin/stages.js';
import { closedGates } from '../../../src/stages/gates.js';
import type { Workload } from '../../../src/route/router.js';
import { STAGES, type Stage } from '../../../src/route/stage.js';
import type { Shard } from '../../../src/shard/contract.js';
import type { Suspects } from '../../../src/suspects/suspects.js';
import { WorkloadSuspicions } from '../../../src/suspects/workload-suspicions.js';
import { withRig } from '../../support/rig.js';
import { partsOf } from '../../support/shard.js';

/** Many: one that is complete stays so. */
const WORKLOADS = Array.from({ length: 10 }, (_, i) => ({ name: `w${i}`, keys: [`w${i}:*`] }));
const NAMES = [...WORKLOADS.map(({ name }) => name), 'unknown'];
const MIGRATION = 'test';

/** Repeatable: a failure names its step. */
const SEED = 2;
const STEPS = 300;

function randomOf(seed: number): <T>(choices: readonly T[]) => T {
  let state = seed;
  return (choices) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return choices[(state >>> 8) % choices.length];
  };
}

interface Ended {
  readonly code: string;
  readonly status: number;
  readonly why: string;
}

async function endOf(work: () => Promise<unknown>): Promise<Ended> {
  try {
    await work();
    return { code: 'done', status: 200, why: '' };
  } catch (error) {
    const { code, status, message } = asAdminError(error);
    // How many suspects a repair has left is a matter of the moment.
    return { code, status, why: message.replaceAll(/\d+/g, '#') };
  }
}

/** Step by step, to a stage that may be an earlier one. */
async function moveTo(shard: Shard, workload: Workload, stage: Stage, percent: number): Promise<void> {
  if (workload.position.stage === 'complete') return;
  partsOf(shard).counters.of(workload).spanning = 0;
  for (let at = STAGES.indexOf(workload.position.stage); at !== STAGES.indexOf(stage);) {
    at += Math.sign(STAGES.indexOf(stage) - at);
    await shard.changeStage({ workload: workload.name, stage: STAGES[at], force: true });
  }
  if (stage === 'live') await shard.changeStage({ workload: workload.name, stage, percent, force: true });
}

/** The state of both runs: a verification that starts by itself would clear it between them. */
const hold = ({ workloads }: Suspects, workload: Workload, suspect: string | null): unknown =>
  Object.assign(workloads, {
    of: (each: Workload) => (each === workload ? suspect : WorkloadSuspicions.prototype.of.call(workloads, each)),
  });
function release({ workloads }: Suspects, workload: Workload): void {
  Reflect.deleteProperty(workloads, 'of');
  workloads.clear(workload);
}

test('dry run and real run agree on verdict and reason in random states', async () => {
  await withRig({ workloads: WORKLOADS, alike: true, plan: { gates: { drill: false, steps: false } } }, async (rig) => {
    const { shard } = rig.shard;
    const shards = [shard];
    const counts: Record<string, number> = {};
    const one = randomOf(SEED);
    for (let step = 0; step < STEPS; step++) {
      const parts = partsOf(shard);
      const workload = one(NAMES);
      const force = one([true, false, true]);
      const to = one([undefined, undefined, ...STAGES]);
      const percent = one([undefined, undefined, 1, 50, 100]);
      const known = parts.sequencer.router.named(workload);
      if (known !== undefined) {
        parts.suspects.workloads.clear(known);
        await moveTo(shard, known, one(STAGES.slice(0, -1)), one([100, 100, 10]));
        parts.counters.of(known).spanning = one([0, 0, 3]);
      }
      const suspect = one([null, null, 'the test says so']);
      const dry = { dryRun: true };
      const noted = { reason: 'the test', by: undefined };
      const forced = { force, forceUsers: force, forceSuspects: one([force, false]) };
      const promotion = { workload, to, percent, ...forced, ...noted, pointOfNoReturn: MIGRATION };
      const commands: Record<string, (more: object) => Promise<unknown>> = {
        async promote(more) {
          const done = await promoteAll(MIGRATION, shards, { ...promotion, ...more });
          // The command line ends with these where the real request is refused for them.
          const closed = done.flatMap(({ gates }) => closedGates(gates, promotion));
          if (closed.length > 0)
            throw Object.assign(new Error(closed.map(({ name }) => name).join()), { code: 'gates-closed' });
        },
        rollback: (more) => rollbackAll(shards, { workload, to, force, ...noted, ...more }),
        drill: (more) => rollbackAll(shards, { workload, drill: true, ...noted, ...more }),
      };
      const name = one(['promote', 'promote', 'promote', 'rollback', 'drill']);
      const before = shard.snapshot().workloads.map((each) => `${each.name} ${each.stage} ${each.percent}`);
      if (known !== undefined) hold(parts.suspects, known, suspect);
      const said = await endOf(() => commands[name](dry));
      assert.deepEqual(
        shard.snapshot().workloads.map((each) => `${each.name} ${each.stage} ${each.percent}`),
        before,
        'a dry run changes nothing',
      );
      const happened = await endOf(() => commands[name]({}));
      if (known !== undefined) release(parts.suspects, known);
      const context = `step ${step}: ${name} ${JSON.stringify(promotion)} from ${before.join(', ')}`;
      const closed = said.code === 'internal' && happened.code === 'gates-closed';
      if (closed)
        for (const gate of said.why.split(',')) assert.match(happened.why, new RegExp(`\\b${gate}\\b`), context);
      else assert.deepEqual(said, happened, context);
      counts[happened.code] = (counts[happened.code] ?? 0) + 1;
    }
    for (const code of [
      'done',
      'not-adjacent',
      'no-return',
      'refused',
      'not-clean',
      'gates-closed',
      'unknown-workload',
    ])
      assert.ok((counts[code] ?? 0) > 0, `${code} came: ${JSON.stringify(counts)}`);
  });
});
