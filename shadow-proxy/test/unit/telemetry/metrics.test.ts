/** The metrics of Prometheus, from the snapshot of each shard. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { METRICS, Metrics } from '../../../src/telemetry/metrics.js';
import type { ScrapedShard } from '../../../src/telemetry/snapshot.js';
import { jobSnapshot, scrapedShard, shardSnapshot, watchSnapshot, workloadSnapshot } from '../../support/snapshots.js';

/** The samples of a scrape: `name{labels}` to its value, without those of the process. */
async function scrape(metrics: Metrics): Promise<Map<string, number>> {
  const text = await metrics.text();
  const lines = text.split('\n').filter((line) => line.startsWith('shadow_proxy_'));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  );
}

const of = (...shards: ScrapedShard[]): Metrics => new Metrics(() => ({ shards, waiting: [], receivers: [] }));

describe('metrics', () => {
  test('are read from the snapshot', async () => {
    const samples = await scrape(
      of(scrapedShard({ mismatches: { value: 2, type: 1 }, mirror: { ...shardSnapshot().mirror, lagMs: 1500 } })),
    );
    for (const [name, value] of [
      ['shadow_proxy_operations_total{shard="cache-0"}', 1000],
      ['shadow_proxy_compared_total{shard="cache-0"}', 990],
      ['shadow_proxy_allowed_total{shard="cache-0",rule="unordered"}', 8],
      ['shadow_proxy_mismatches_total{shard="cache-0",kind="value"}', 2],
      ['shadow_proxy_mismatches_total{shard="cache-0",kind="type"}', 1],
      ['shadow_proxy_mirror_lag_seconds{shard="cache-0"}', 1.5],
      ['shadow_proxy_latency_seconds{shard="cache-0",server="target",quantile="0.99"}', 0.0003],
      ['shadow_proxy_latency_minute_seconds{shard="cache-0",server="target",quantile="0.99"}', 0.0004],
      [
        'shadow_proxy_workload_latency_minute_seconds{shard="cache-0",workload="sessions",server="target",quantile="0.99"}',
        0.00041,
      ],
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

  test('say nothing of whether a server answers that no workload uses', async () => {
    const { target } = shardSnapshot();
    const scrapedUp = async (up: boolean | null): Promise<number | undefined> =>
      (await scrape(of(scrapedShard({ target: { ...target, up } })))).get(
        'shadow_proxy_up{shard="cache-0",server="target"}',
      );
    assert.deepEqual([await scrapedUp(null), await scrapedUp(false), await scrapedUp(true)], [undefined, 0, 1]);
  });

  test('show the current totals, however often they are scraped, and drop labels that no longer exist', async () => {
    let shard = scrapedShard({ suspects: { total: 1, byReason: { outage: 1 } } });
    const metrics = new Metrics(() => ({ shards: [shard], waiting: [], receivers: [] }));
    await scrape(metrics);
    await scrape(metrics);
    shard = scrapedShard({ operations: 1001 });
    const samples = await scrape(metrics);
    assert.equal(samples.get('shadow_proxy_operations_total{shard="cache-0"}'), 1001);
    assert.equal(samples.has('shadow_proxy_suspects{shard="cache-0",reason="outage"}'), false);
  });

  test('hold several shards apart', async () => {
    const samples = await scrape(of(scrapedShard(), scrapedShard({ name: 'cache-1', clients: 9 })));
    assert.equal(samples.get('shadow_proxy_clients{shard="cache-0"}'), 3);
    assert.equal(samples.get('shadow_proxy_clients{shard="cache-1"}'), 9);
  });

  test('cannot be grown without bound by the names of commands', async () => {
    const unsupported = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`cmd${i}`, 1]));
    const samples = await scrape(of(scrapedShard({ workloads: [workloadSnapshot({ unsupported })] })));
    const commands = [...samples].filter(([name]) => name.startsWith('shadow_proxy_unsupported_total'));
    assert.equal(commands.length, 201);
    assert.equal(
      samples.get('shadow_proxy_unsupported_total{shard="cache-0",workload="sessions",command="(other)"}'),
      4_800,
    );
  });

  test('say whether the target is the authority', async () => {
    const workloads = [
      workloadSnapshot({ name: 'a', stage: 'shadow' }),
      workloadSnapshot({ name: 'b', stage: 'live', percent: 10 }),
    ];
    const samples = await scrape(of(scrapedShard({ workloads })));
    assert.equal(samples.get('shadow_proxy_workload_authority_target{shard="cache-0",workload="a"}'), 0);
    assert.equal(samples.get('shadow_proxy_workload_authority_target{shard="cache-0",workload="b"}'), 1);
    assert.equal(samples.get('shadow_proxy_workload_percent{shard="cache-0",workload="b"}'), 10);
  });

  test('tell what is known without a server, and nothing for what is not known', async () => {
    const asked = await scrape(
      of(
        scrapedShard(
          { job: jobSnapshot({ kind: 'backfill', state: 'failed', endedAt: '2026-11-21T12:00:10.000Z' }) },
          {
            guard: [{ workload: 'rate-limits', verdict: 'unsafe' }],
            certificates: { target: 1_800_000_000_000 },
            leases: { source: true, target: false },
          },
        ),
      ),
    );
    for (const [name, value] of [
      ['shadow_proxy_workload_gate{shard="cache-0",workload="sessions",gate="compared",answer="no"}', 1],
      ['shadow_proxy_workload_gate{shard="cache-0",workload="sessions",gate="compared",answer="yes"}', 0],
      ['shadow_proxy_workload_gate{shard="cache-0",workload="sessions",gate="bypass",answer="unknown"}', 1],
      ['shadow_proxy_workload_guard{shard="cache-0",workload="rate-limits",verdict="unsafe"}', 1],
      ['shadow_proxy_workload_guard{shard="cache-0",workload="rate-limits",verdict="safe"}', 0],
      ['shadow_proxy_workload_stage_start_timestamp_seconds{shard="cache-0",workload="sessions"}', 1_795_000_000],
      ['shadow_proxy_certificate_end_timestamp_seconds{shard="cache-0",certificate="target"}', 1_800_000_000],
      ['shadow_proxy_lease{shard="cache-0",server="target"}', 0],
      ['shadow_proxy_job_ended{shard="cache-0",kind="backfill",how="failed"}', 1],
      ['shadow_proxy_job_ended{shard="cache-0",kind="verify",how="failed"}', 0],
      ['shadow_proxy_job_end_timestamp_seconds{shard="cache-0"}', Date.parse('2026-11-21T12:00:10.000Z') / 1000],
      ['shadow_proxy_bypassing_clients{shard="cache-0"}', 0],
    ] as const) {
      assert.equal(asked.get(name), value, name);
    }
    const unknown = await scrape(of(scrapedShard({}, { bypassing: null })));
    for (const name of [
      'bypassing_clients',
      'workload_verified_timestamp_seconds',
      'job_end_timestamp_seconds',
      'workload_guard',
      'certificate_end_timestamp_seconds',
    ]) {
      assert.deepEqual(
        [...unknown.keys()].filter((each) => each.startsWith(`shadow_proxy_${name}`)),
        [],
        name,
      );
    }
  });

  test('name the shards that a standby waits for', async () => {
    const samples = await scrape(
      new Metrics(() => ({ shards: [scrapedShard()], waiting: ['cache-1'], receivers: [] })),
    );
    assert.equal(samples.get('shadow_proxy_standby{shard="cache-0"}'), 0);
    assert.equal(samples.get('shadow_proxy_standby{shard="cache-1"}'), 1);
    assert.equal(samples.has('shadow_proxy_clients{shard="cache-1"}'), false);
  });

  test('follow Prometheus’ naming, each with a help text', () => {
    assert.equal(new Set(METRICS.map(({ name }) => name)).size, METRICS.length);
    for (const { name, type, help, labels } of METRICS) {
      assert.match(name, /^shadow_proxy_[a-z_]+$/);
      assert.equal(name.endsWith('_total'), type === 'counter', name);
      assert.doesNotMatch(name, /_(ms|us|percent_|kb)(_|$)/, `${name}: seconds and bytes`);
      assert.ok(help.length > 5 && ['shard', 'receiver'].includes(labels[0]));
    }
  });

  test('every metric of the table has a sample for a shard with everything', async () => {
    const full = scrapedShard(
      {
        mismatches: { value: 1 },
        inconclusive: { lost: 1 },
        workloads: [workloadSnapshot({ unsupported: { lcs: 1 } })],
        suspects: { total: 1, byReason: { outage: 1 } },
        job: jobSnapshot({ state: 'done', endedAt: '2026-11-21T12:00:10.000Z' }),
      },
      {
        guard: [{ workload: 'rate-limits', verdict: 'unsafe' }],
        certificates: { listener: 1_800_000_000_000 },
        workloads: [{ ...watchSnapshot().workloads[0], gates: { time: 'no' }, since: 0, verifiedAt: 1 }],
      },
    );
    const receiver = {
      name: 'ops',
      queued: 1,
      sent: 2,
      failedAttempts: 3,
      dropped: { full: 4, expired: 5, refused: 6 },
    };
    const samples = await scrape(new Metrics(() => ({ shards: [full], waiting: [], receivers: [receiver] })));
    assert.equal(samples.get('shadow_proxy_notifications_dropped_total{receiver="ops",reason="refused"}'), 6);
    const names = new Set([...samples.keys()].map((sample) => sample.replace(/\{.*/, '')));
    for (const { name } of METRICS) assert.ok(names.has(name), name);
  });

  test('tell of the process too', async () => {
    assert.match(await of().text(), /^process_resident_memory_bytes \d+$/m);
  });
});
