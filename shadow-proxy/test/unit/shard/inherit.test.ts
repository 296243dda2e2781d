/** After slots have moved, a shard goes on in the stages of those that served its slots. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { pino } from 'pino';
import type { Plan, ShardPlan } from '../../../src/plan/plan.js';
import { parseSlots } from '../../../src/plan/owns.js';
import type { Stage } from '../../../src/route/stage.js';
import { inheritState, nowServed, union } from '../../../src/shard/inherit.js';
import { readState, StateStore } from '../../../src/storage/state.js';

const quiet = pino({ level: 'silent' });
const shard = (slots: string): ShardPlan =>
  ({ name: `slots-${slots.split(/[-,]/)[0]}`, slots: parseSlots(slots) }) as unknown as ShardPlan;

async function folder(t: TestContext, served: Readonly<Record<string, Stage>>): Promise<Plan> {
  const state = mkdtempSync(join(tmpdir(), 'inherit-'));
  t.after(() => rmSync(state, { recursive: true }));
  for (const [slots, stage] of Object.entries(served)) {
    const store = await StateStore.open(state, shard(slots).name);
    await store.update({ served: slots, workloads: { default: { stage, percent: 100 } } });
    await store.close();
  }
  return { state } as unknown as Plan;
}

/** What is known of the target's keys: all written by the shard, or one foreign key. */
const admit = async ({ state }: Plan, name: string, foreign: number): Promise<void> => {
  const store = await StateStore.open(state, name);
  await store.update({
    admitted: { default: { at: '2026-01-01T00:00:00.000Z', target: name, foreign, overwrites: 0, deleteForeign: 0 } },
  });
  await store.close();
};

const foreignOf = async ({ state }: Plan, name: string): Promise<number | undefined> =>
  (await readState(join(state, name), name))!.admitted.default?.foreign;

const stageOf = async ({ state }: Plan, name: string): Promise<string | undefined> =>
  (await readState(join(state, name), name))?.workloads.default.stage;

test('a new shard takes over the stages of the ones that had its slots', async (t) => {
  const plan = await folder(t, { '0-5460': 'live', '5461-10922': 'live' });
  await inheritState(plan, shard('5460-10922'), quiet);
  assert.equal(await stageOf(plan, 'slots-5460'), 'live');
});

test('keys on the target are ours where each shard that had the slots wrote all of its own', async (t) => {
  for (const [foreign, expected] of [
    [0, 0],
    [1, undefined],
  ] as const) {
    const plan = await folder(t, { '0-5460': 'shadow', '5461-10922': 'shadow' });
    await admit(plan, 'slots-0', 0);
    await admit(plan, 'slots-5461', foreign);
    // A new shard, and one that gets slots.
    for (const slots of ['5460-10922', '0-6000']) {
      await inheritState(plan, shard(slots), quiet);
      assert.equal(await foreignOf(plan, shard(slots).name), expected, slots);
    }
  }
});

test('nothing is written where nobody served the slots, or the shard did', async (t) => {
  const plan = await folder(t, { '0-5460': 'live' });
  await inheritState(plan, shard('5461-16383'), quiet);
  assert.equal(await stageOf(plan, 'slots-5461'), undefined);
  await inheritState(plan, shard('0-5000'), quiet);
  assert.equal(await stageOf(plan, 'slots-0'), 'live');
});

test('other stages, and slots that are not known here, are refused', async (t) => {
  const plan = await folder(t, { '0-5460': 'live', '5461-10922': 'shadow' });
  await assert.rejects(
    inheritState(plan, shard('5460-10922'), quiet),
    /shards slots-0 and slots-5461 served in other stages/,
  );
  await assert.rejects(inheritState(plan, shard('5461-12000'), quiet), /not known here.*for 5461-10922 of 5461-12000/);
});

test('what a shard has served is kept', async (t) => {
  const plan = await folder(t, { '0-5460': 'live' });
  const state = await readState(join(plan.state, 'slots-0'), 'slots-0');
  assert.equal(nowServed(state!, shard('0-5000,6000')), '0-5460,6000');
  assert.deepEqual(union(parseSlots('5-9,1-2'), parseSlots('3-4')), [[1, 9]]);
});
