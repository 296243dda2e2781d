/**
 * The random trial of a cluster: three masters to a KeyDB cluster of three, and to one KeyDB.
 *
 * Needs real servers: the random trial on real cluster nodes, which fail over by themselves.
 */
import { test } from 'node:test';
import { clusterTrial, failover, reshard, stages } from './trial.js';

const durationMs = Number(process.env.RANDOM_MINUTES ?? 1) * 60_000;

test('three masters to a KeyDB cluster of three: stages change, masters fail on both sides, a slot moves', (t) =>
  clusterTrial(t, {
    durationMs,
    source: { replicas: 1 },
    target: { replicas: 1 },
    events: [stages('live', 'shadow'), failover('source'), failover('target'), reshard, stages('live', 'shadow')],
  }));

test('three masters to one KeyDB: stages change, a master fails, a slot moves', (t) =>
  clusterTrial(t, {
    durationMs,
    source: { replicas: 1 },
    target: 'standalone',
    events: [stages('live', 'shadow'), failover('source'), reshard, stages('live', 'shadow')],
  }));
