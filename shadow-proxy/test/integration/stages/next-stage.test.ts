/**
 * What a shard shows of its workloads' gates to the programs that watch it.
 *
 * Needs real processes: SIGSTOP of both servers, and how long each takes for a SORT of 20,000 elements.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LatencyRow } from '../../../src/stages/latency-gate.js';
import { withRig } from '../../support/rig.js';
import { until } from '../../support/shard.js';

const WORKLOADS = [
  { name: 'sessions', keys: ['session:*'] },
  { name: 'done', keys: ['done:*'], stage: 'complete' as const },
];

test('each workload with the gates of its next stage, behind which there may be none', async () => {
  await withRig({ workloads: WORKLOADS, alike: true }, async ({ shard }) => {
    const { workloads, mismatches, latencies } = await shard.shard.evidence();
    assert.deepEqual(
      workloads.map(({ workload, from, to }) => [workload, from.stage, to?.stage]),
      [
        ['sessions', 'off', 'dualwrite'],
        ['done', 'complete', undefined],
        ['default', 'shadow', 'live'],
      ],
    );
    assert.deepEqual(
      workloads.map(({ gates }) => gates.length > 0),
      [true, false, true],
    );
    assert.deepEqual([mismatches, latencies], [{ total: 0, notWritten: 0, latest: [] }, []]);
    await until(() => shard.shard.series(0).at.length > 0, 30_000);
  });
});

test('it comes while a server hangs, and what that one would have to tell is unknown', async () => {
  await withRig({ alike: true }, async ({ shard, source, target }) => {
    for (const server of [source, target]) await server.kill('SIGSTOP');
    // One of several threads may answer once more before it stops.
    await sleep(300);
    try {
      const late = new Promise<'late'>((resolve) => setTimeout(resolve, 20_000, 'late').unref());
      const evidence = await Promise.race([shard.shard.evidence(), late]);
      assert.ok(evidence !== 'late', 'nothing came');
      const answers = new Map(evidence.workloads[0].gates.map(({ name, answer }) => [name, answer]));
      assert.deepEqual([answers.get('bypass'), answers.get('evictions')], ['unknown', 'unknown']);
    } finally {
      for (const server of [source, target]) await server.kill('SIGCONT');
    }
  });
});

test('the latency of a workload is that of its own commands, of both servers', async () => {
  const workloads = ['busy', 'slow'].map((name) => ({ name, keys: [`${name}:*`], stage: 'shadow' as const }));
  await withRig({ workloads, alike: true }, async ({ shard, wire: connect }) => {
    const wire = await connect();
    await wire.pipeline([['RPUSH', 'slow:list', ...Array.from({ length: 20_000 }, (_, i) => String(i))]]);
    for (let round = 0; round < 10; round++) {
      await wire.pipeline(Array.from({ length: 100 }, (_, i) => ['SET', `busy:${i}`, 'v']));
      await wire.pipeline([['SORT', 'slow:list', 'LIMIT', '0', '1']]);
    }
    let latency = new Map<string, readonly LatencyRow[]>();
    await until(async () => {
      const evidence = await shard.shard.evidence();
      latency = new Map(evidence.workloads.map(({ workload, latency: rows }) => [workload, rows]));
      return (latency.get('slow')?.[1]?.replies ?? 0) >= 11;
    });
    const of = (workload: string): Map<string, LatencyRow> =>
      new Map(latency.get(workload)!.map((row) => [row.server, row]));
    for (const server of ['source', 'target']) {
      assert.equal(of('busy').get(server)!.replies, 1_000, server);
      // The kit's own question about a key is one more.
      assert.ok(of('slow').get(server)!.replies < 15, server);
    }
    assert.deepEqual(latency.get('default'), [], 'nobody has asked for its keys');
  });
});
