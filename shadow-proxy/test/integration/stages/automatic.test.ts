/** What moves a workload without an operator: the guard takes it back, the rollout takes it on. Real servers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Relay } from '../../../src/local/relay.js';
import type { HistoryEvent } from '../../../src/storage/state.js';
import { clientsOf } from '../../support/clients.js';
import { differences } from '../../support/keyspace.js';
import { withServers } from '../../support/servers.js';
import { startTestShard, until } from '../../support/shard.js';

const GUARD = { forSeconds: 4, maxP99Ratio: 3 };
const OPEN = {
  ...{ minCompared: 0, minMinutes: 0, maxP99Ratio: 1_000, maxAllowedShare: 1, maxInconclusiveShare: 1 },
  drill: false,
};

test('a target that becomes slow is left by the guard, which loses nothing and waits for an operator', async (t) => {
  await withServers(async ({ source, target }) => {
    const relay = await Relay.start(target);
    t.after(() => relay.close());
    const events: HistoryEvent[] = [];
    const shard = await startTestShard({
      source,
      target: relay.url,
      plan: { guard: GUARD },
      recorded: (event) => events.push(event),
    });
    t.after(() => shard.stop());
    const { client, closeAll } = clientsOf(() => shard.port);
    t.after(closeAll);
    const redis = client();
    const acknowledged = new Map<string, string>();
    let writes = 0;
    const isOver = new AbortController();
    const load = (async () => {
      while (!isOver.signal.aborted) {
        const [key, value] = [`k${writes % 50}`, `v${writes++}`];
        await redis.set(key, value);
        acknowledged.set(key, value);
        await redis.get(key);
        await sleep(2);
      }
    })();
    const workload = () => shard.snapshot().workloads[0];
    await shard.shard.changeStage({ workload: 'default', stage: 'live' });
    // Only time can show that the guard does nothing.
    await sleep(6_000);
    assert.deepEqual(workload().automatic, { guard: true, rollout: false, exceeds: [], hold: null });
    assert.equal(workload().stage, 'live', 'nothing is wrong yet');

    relay.delayMs = 200;
    await until(() => workload().stage === 'shadow', 60_000);
    const { hold } = workload().automatic;
    assert.equal(hold!.why, 'rolled-back');
    assert.match(hold!.reason, /^for 4 s in live: p99 of the target is [\d.]+ times the source's .* at most 3$/);
    const event = events.findLast((each) => each.event === 'stage')!;
    assert.deepEqual([event.automatic, event.by, event.reason], ['guard', 'the guard', hold!.reason]);
    assert.deepEqual((await shard.state()).holds.default, hold, 'it outlives the process');

    relay.delayMs = 0;
    isOver.abort();
    await load;
    await shard.settled(60_000);
    for (const [key, value] of acknowledged) assert.equal(await redis.get(key), value);
    assert.deepEqual(await differences(source, target), []);

    // An operator promotes it again: what the guard has seen before counts no longer.
    await shard.shard.changeStage({ workload: 'default', stage: 'live', percent: 1 });
    assert.equal(workload().automatic.hold, null);
    assert.equal(events.filter((each) => each.automatic === 'guard').length, 1);
  });
});

test('the rollout takes a workload from 1 to 100 % of its keys, waits while it is paused, and goes no further', async (t) => {
  await withServers(async ({ source, target }) => {
    const events: HistoryEvent[] = [];
    const shard = await startTestShard({
      source,
      target,
      plan: { rollout: { holdMinutes: 0.05 }, gates: OPEN },
      recorded: (event) => events.push(event),
    });
    t.after(() => shard.stop());
    const { client, closeAll } = clientsOf(() => shard.port);
    t.after(closeAll);
    const redis = client();
    const workload = () => shard.snapshot().workloads[0];
    for (let i = 0; i < 200; i++) await redis.set(`k${i}`, 'v');
    shard.shard.startJob({
      ...{ kind: 'verify', workloads: null, repair: false, dryRun: false, again: false, deletes: 0, sample: 100 },
      ...{ limits: {}, automatic: false },
    });
    await until(() => shard.snapshot().job?.state === 'done');
    // Only time can show that nothing begins.
    await sleep(6_000);
    assert.equal(workload().stage, 'shadow', 'an operator begins it');

    await shard.shard.changeStage({ workload: 'default', stage: 'live', percent: 1 });
    await shard.shard.automate({ workload: 'default', state: 'pause', reason: 'a release', by: 'ada' });
    const traffic = setInterval(() => {
      for (let i = 0; i < 20; i++) void redis.set(`k${i}`, 'v').then(() => redis.get(`k${i}`));
    }, 20);
    t.after(() => clearInterval(traffic));
    // Only time can show that it waits.
    await sleep(12_000);
    assert.equal(workload().percent, 1, 'it is paused');
    assert.equal(workload().automatic.hold!.by, 'ada');
    await shard.shard.automate({ workload: 'default', state: 'resume', reason: 'it is over' });
    await until(() => workload().percent === 100, 90_000);
    // Only time can show that it stays.
    await sleep(6_000);
    assert.equal(workload().stage, 'live', 'what comes then is for an operator');
    const steps = events.filter(({ event, automatic }) => event === 'stage' && automatic === 'rollout');
    assert.deepEqual(
      steps.map(({ to }) => (to as { percent: number }).percent),
      [10, 50, 100],
    );
    assert.match(String(steps[0].reason), /^all gates were open for \d+ s$/);
  });
});
