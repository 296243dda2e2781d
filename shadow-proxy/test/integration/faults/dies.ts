/**
 * An authority dies under the load of both client libraries: who decides, what clients see, and what is left when it is
 * back.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { compareKeyspaces } from '../random/comparer.js';
import type { Side, Stage } from '../../../src/route/stage.js';
import { withServers } from '../../support/servers.js';
import { startTestShard, until, type TestShard } from '../../support/shard.js';
import { Wire } from '../../support/wire.js';
import { lostOn, startWriters } from './outage.js';

export interface Death {
  readonly stage: Stage;
  readonly percent?: number;
  readonly side: Side;
  readonly how: 'killed' | 'hangs' | 'restarts empty';
  readonly policy?: 'manual' | 'automatic';
}

const DOWN_AFTER_MS = 1_000;

export async function dies(t: TestContext, { stage, percent, side, how, policy = 'automatic' }: Death): Promise<void> {
  await withServers(async (servers) => {
    const [dead, other] = side === 'source' ? [servers.source, servers.target] : [servers.target, servers.source];
    const shard = await startTestShard({
      ...servers,
      default: { stage, percent },
      failover: policy,
      limits: { downAfterMs: DOWN_AFTER_MS },
    });
    const writers = await startWriters(shard.port);
    try {
      await until(() => writers.acknowledged.size > 500);
      const [from] = shard.snapshot().workloads;
      const died = performance.now();
      if (how === 'restarts empty') await dead.restart();
      else await dead.kill(how === 'killed' ? 'SIGKILL' : 'SIGSTOP');
      if (policy === 'manual') await decideByHand(shard, side, how);
      const to = side === 'source' ? 'live' : 'shadow';
      await until(
        () => shard.snapshot().workloads[0].stage === to && shard.snapshot().workloads[0].percent === 100,
        30_000,
        () => JSON.stringify(shard.snapshot().outage),
      );
      const movedMs = performance.now() - died;
      const before = writers.acknowledged.size;
      await until(() => writers.acknowledged.size > before + 500, 20_000);
      const resumedMs = performance.now() - died;
      await writers.stop();
      assert.deepEqual(
        writers.errors.filter((error) => policy === 'automatic' || !error.startsWith('MASTERDOWN')),
        [],
        'clients saw what a plain failover shows',
      );
      assert.deepEqual(await lostOn(other, writers), []);
      const { outage, failovers, source, target } = shard.snapshot();
      const [moved] = outage!.workloads;
      assert.equal(failovers, policy === 'automatic' ? 1 : 0);
      assert.ok(outage!.endedAt !== null && source.silentMs + target.silentMs === 0);
      if (policy === 'automatic')
        assert.deepEqual(
          [moved.from, moved.movedTo?.stage, moved.why],
          [{ stage: from.stage, percent: from.percent }, to, null],
        );
      assert.equal(moved.keys.length, Math.min(20, moved.unanswered));
      t.diagnostic(
        `moved ${Math.round(movedMs)} ms after it ${how}, clients went on by ${Math.round(resumedMs)} ms; ${moved.unanswered} writes in flight; ${writers.acknowledged.size} acknowledged, none lost`,
      );
      const events = (await shard.shard.history()).filter(({ event }) => event === 'stage');
      if (policy === 'automatic')
        assert.ok(
          events.length > 0 && events.every(({ by, reason }) => by === 'failover' && /is lost/.test(String(reason))),
          JSON.stringify(events),
        );
      // The server that was down is not trusted when it is connected again: each of its keys is suspect until it is
      // verified, and is repaired from the other server.
      if (how !== 'restarts empty') assert.match(shard.snapshot().workloads[0].suspect ?? '', /was down/);
      if (how === 'killed') await dead.start();
      else if (how === 'hangs') await dead.kill('SIGCONT');
      await until(
        () => shard.snapshot().workloads[0].clean && shard.snapshot().suspects.total === 0,
        30_000,
        () => JSON.stringify(shard.snapshot()),
      );
      assert.deepEqual((await compareKeyspaces(servers.source, servers.target)).differences.slice(0, 5), []);
      assert.deepEqual(await lostOn(dead, writers), []);
    } finally {
      await dead.kill('SIGCONT');
      writers.kill();
      await shard.stop();
    }
  });
}

/**
 * Clients get an error that says what is; the status says what can be done; and the operator does it, without force.
 */
async function decideByHand(shard: TestShard, side: Side, how: Death['how']): Promise<void> {
  await until(() => shard.snapshot().outage !== null);
  // Of one that hangs nobody knows that it will not answer: who has a connection waits, as for any Redis.
  if (how === 'killed') {
    const wire = await Wire.open({ port: shard.port });
    assert.match(
      await wire.ask('SET', 'k:x', 'y'),
      new RegExp(
        `^-MASTERDOWN the ${side} redis://127\\.0\\.0\\.1:\\d+ is lost \\(no answer for [\\d.]+ s\\): nothing was read or written`,
      ),
    );
    wire.destroy();
  }
  const { outage, workloads } = shard.snapshot();
  assert.match(outage!.workloads[0].why!, /failover is manual; the mirror is clean/);
  assert.match(
    outage!.workloads[0].instead!.command,
    side === 'source' ? /^promote default --to live/ : /^rollback default$/,
  );
  assert.equal(workloads[0].stage, side === 'source' ? 'shadow' : 'live');
  if (side === 'target') await shard.shard.rollback({ workload: 'default' });
  else
    await shard.shard.promote({
      workload: 'default',
      to: 'live',
      percent: 100,
      force: true,
      forceUsers: true,
      reason: 'the source died',
    });
}
