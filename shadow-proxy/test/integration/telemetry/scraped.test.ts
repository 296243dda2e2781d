/**
 * What a shard reports to a scrape, on real servers: a scrape never waits; values that only a server knows come with a
 * later scrape.
 *
 * Needs real servers: CLIENT LIST of a source, which shows connections that bypass the proxy.
 */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import type { WatchSnapshot } from '../../../src/telemetry/snapshot.js';
import { withRig } from '../../support/rig.js';
import { until } from '../../support/shard.js';

const gatesOf = ({ workloads }: WatchSnapshot, name: string): Readonly<Record<string, string>> =>
  workloads.find(({ workload }) => workload === name)!.gates;

test('gates, guard, clients that bypass the proxy and leases are reported without a wait, and are unknown before a server was asked', async (t) => {
  const workloads = [{ name: 'limits', keys: ['rl:*'], class: 'counter', stage: 'shadow' }] as const;
  await withRig({ workloads }, async ({ source, shard: { shard } }) => {
    const beside = new Redis(source.url, { connectionName: 'app' });
    try {
      await beside.ping();
      // It sends nothing, as a connection of the kit that has no name yet.
      const silent = connect(source.port, '127.0.0.1');
      t.after(() => silent.destroy());
      await until(async () => ((await beside.client('LIST')) as string).includes('cmd=NULL'));
      const first = shard.scrape().watch;
      assert.deepEqual(
        [gatesOf(first, 'limits').bypass, gatesOf(first, 'limits').counters, gatesOf(first, 'limits').suspects],
        ['unknown', 'unknown', 'yes'],
      );
      assert.deepEqual([first.bypassing, first.guard], [null, []]);
      await until(() => shard.scrape().watch.bypassing !== null);
      const { leases, guard, bypassing, certificates, ...then } = shard.scrape().watch;
      assert.deepEqual(leases, { source: true, target: true });
      assert.equal(bypassing, 1);
      assert.deepEqual(guard, [{ workload: 'limits', verdict: 'safe' }]);
      assert.deepEqual(
        [then.workloads[0].gates.bypass, then.workloads[0].gates.counters, then.workloads[0].gates.compared],
        ['no', 'yes', 'no'],
      );
      assert.deepEqual(certificates, {}, 'all in the clear');
      assert.equal(then.latency.source.count, 0, 'nobody has asked anything through the proxy');
      const app = new Redis({ host: '127.0.0.1', port: shard.port });
      await app.set('rl:a', '1');
      await app.quit();
      assert.ok(shard.scrape().watch.latency.source.p99 > 0);
    } finally {
      beside.disconnect();
    }
  });
});
