import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { METRICS, Metrics } from '../../src/record/metrics.js';
import { jobSnapshot, shardSnapshot, workloadSnapshot } from './snapshots.js';

/** The samples of a scrape: `name{labels}` to its value, without those of the process. */
async function scrape(metrics: Metrics): Promise<Map<string, number>> {
  const text = await metrics.text();
  const lines = text.split('\n').filter((line) => line.startsWith('shadow_proxy_'));
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]));
}

describe('metrics', () => {
  test('are read from the snapshot', async () => {
    const samples = await scrape(new Metrics(() => [shardSnapshot({ mismatches: { value: 2, type: 1 }, mirror: { ...shardSnapshot().mirror, lagMs: 1500 } })]));
    for (const [name, value] of [
      ['shadow_proxy_operations_total{shard="cache-0"}', 1000],
      ['shadow_proxy_compared_total{shard="cache-0"}', 990],
      ['shadow_proxy_explained_total{shard="cache-0",rule="unordered"}', 8],
      ['shadow_proxy_mismatches_total{shard="cache-0",kind="value"}', 2],
      ['shadow_proxy_mismatches_total{shard="cache-0",kind="type"}', 1],
      ['shadow_proxy_mirror_lag_seconds{shard="cache-0"}', 1.5],
      ['shadow_proxy_latency_seconds{shard="cache-0",server="target",quantile="0.99"}', 0.0003],
      ['shadow_proxy_up{shard="cache-0",server="source"}', 1],
      ['shadow_proxy_workload_stage{shard="cache-0",workload="sessions",stage="shadow"}', 1],
      ['shadow_proxy_workload_stage{shard="cache-0",workload="sessions",stage="live"}', 0],
      ['shadow_proxy_workload_operations_total{shard="cache-0",workload="sessions",type="read"}', 700],
      ['shadow_proxy_workload_operations_total{shard="cache-0",workload="sessions",type="other"}', 10],
      ['shadow_proxy_workload_clean{shard="cache-0",workload="sessions"}', 1],
    ] as const) {
      assert.equal(samples.get(name), value, name);
    }
  });

  test('show the totals of now, however often they are scraped, and forget labels that are gone', async () => {
    let snapshot = shardSnapshot({ suspects: { total: 1, byReason: { outage: 1 } } });
    const metrics = new Metrics(() => [snapshot]);
    await scrape(metrics);
    await scrape(metrics);
    snapshot = shardSnapshot({ operations: 1001 });
    const samples = await scrape(metrics);
    assert.equal(samples.get('shadow_proxy_operations_total{shard="cache-0"}'), 1001);
    assert.equal(samples.has('shadow_proxy_suspects{shard="cache-0",reason="outage"}'), false);
  });

  test('hold several shards apart', async () => {
    const samples = await scrape(new Metrics(() => [shardSnapshot(), shardSnapshot({ name: 'cache-1', clients: 9 })]));
    assert.equal(samples.get('shadow_proxy_clients{shard="cache-0"}'), 3);
    assert.equal(samples.get('shadow_proxy_clients{shard="cache-1"}'), 9);
  });

  test('cannot be grown without bound by the names of commands', async () => {
    const unsupported = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`cmd${i}`, 1]));
    const samples = await scrape(new Metrics(() => [shardSnapshot({ unsupported })]));
    const commands = [...samples].filter(([name]) => name.startsWith('shadow_proxy_unsupported_total'));
    assert.equal(commands.length, 201);
    assert.equal(samples.get('shadow_proxy_unsupported_total{shard="cache-0",command="(other)"}'), 4_800);
  });

  test('say whether the target is the authority', async () => {
    const workloads = [workloadSnapshot({ name: 'a', stage: 'shadow' }), workloadSnapshot({ name: 'b', stage: 'live', percent: 10 })];
    const samples = await scrape(new Metrics(() => [shardSnapshot({ workloads })]));
    assert.equal(samples.get('shadow_proxy_workload_authority_target{shard="cache-0",workload="a"}'), 0);
    assert.equal(samples.get('shadow_proxy_workload_authority_target{shard="cache-0",workload="b"}'), 1);
    assert.equal(samples.get('shadow_proxy_workload_percent{shard="cache-0",workload="b"}'), 10);
  });

  test('follow Prometheus’ naming, each with a help text', () => {
    assert.equal(new Set(METRICS.map(({ name }) => name)).size, METRICS.length);
    for (const { name, type, help, labels } of METRICS) {
      assert.match(name, /^shadow_proxy_[a-z_]+$/);
      assert.equal(name.endsWith('_total'), type === 'counter', name);
      assert.doesNotMatch(name, /_(ms|us|percent_|kb)(_|$)/, `${name}: seconds and bytes`);
      assert.ok(help.length > 5 && !labels.includes('shard'));
    }
  });

  test('every metric of the table has a sample for a shard with everything', async () => {
    const full = shardSnapshot({ mismatches: { value: 1 }, inconclusive: { lost: 1 }, unsupported: { LCS: 1 }, suspects: { total: 1, byReason: { outage: 1 } }, job: jobSnapshot() });
    const names = new Set([...(await scrape(new Metrics(() => [full]))).keys()].map((sample) => sample.replace(/\{.*/, '')));
    for (const { name } of METRICS) assert.ok(names.has(name), name);
  });

  test('tell of the process too', async () => {
    assert.match(await new Metrics(() => []).text(), /^process_resident_memory_bytes \d+$/m);
  });
});
