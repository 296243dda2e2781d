/**
 * The shards of a cluster that does not answer are those of the last start.
 *
 * Needs real servers: the slots of a cluster, and the errors of servers that are down or in no cluster.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startCluster } from '../../../src/local/start-cluster.js';
import { startRedis } from '../../../src/local/servers.js';
import { derive } from '../../../src/upstream/open-plan.js';
import { scratch, toPlan } from '../../support/plans.js';

test('a source that is retired keeps no proxy from starting, and one that never answered does', async (t) => {
  const [source, target] = await Promise.all([startCluster({ program: 'redis', masters: 2 }), startRedis()]);
  t.after(() => Promise.all([source.stop(), target.stop()]));
  const cluster = { source: `redis://${source.seeds}`, target: target.url, listen: 'redis://127.0.0.1:7000' };
  const plan = toPlan({ version: 1, name: 'test', cluster }, {}, scratch(t));
  const before = await derive(plan, 'the test', true);
  assert.deepEqual(
    before.shards.map(({ name }) => name),
    ['slots-0', 'slots-8192'],
  );
  await source.stop();
  assert.deepEqual((await derive(plan, 'the test')).shards, before.shards);
  const other = toPlan({ version: 1, name: 'test', cluster }, {}, scratch(t));
  await assert.rejects(derive(other, 'the test'), /cluster\.source cannot be read: .*ECONNREFUSED/);
});

test('what is no cluster is named', async (t) => {
  const [source, target] = await Promise.all([startRedis(), startRedis()]);
  t.after(() => Promise.all([source.stop(), target.stop()]));
  const listen = 'redis://127.0.0.1:7000';
  const of = (from: string, to: string): Promise<unknown> =>
    derive(toPlan({ version: 1, name: 'test', cluster: { source: from, target: to, listen } }), 'the test');
  await assert.rejects(of(source.url, target.url), /cluster\.source is not in cluster mode: write shards/);
  const node = await startCluster({ program: 'redis', masters: 1 });
  t.after(() => node.stop());
  await assert.rejects(
    of(node.masters[0].url, `redis://127.0.0.1:${source.port},127.0.0.1:${target.port}`),
    /cluster\.target names several servers that are not in cluster mode/,
  );
});
