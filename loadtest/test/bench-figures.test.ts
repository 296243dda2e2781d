import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { median } from '../figures/median.js';
import { figuresOf } from '../proxy/bench/record.js';
import { judge, parseRequirement, ratioTo, rowOf, type Sample } from '../proxy/bench/figures.js';
import { rotate } from '../rounds/schedule.js';
import type { PeerName } from '../proxy/bench/peers.js';

const sample = (peer: PeerName, round: number, opsPerSecond: number, more: Partial<Sample> = {}): Sample => ({
  ...{ peer, round, opsPerSecond, pipeline: 16, operations: 1, p50: 1, p99: 1, cpu: null, sourceCpu: 1, targetCpu: 1 },
  ...{ rss: null, peakRss: null, mirrored: 1, mirrorLagMs: 0, equal: null },
  ...more,
});

test('the median is the middle value, or the mean of the two in the middle', () => {
  assert.equal(median([9, 1, 5]), 5);
  assert.equal(median([10, 9, 1, 2]), 5.5);
  assert.equal(median([]), null);
});

test('a ratio compares the two peers within each round, not their medians', () => {
  const shadow = [210, 380, 690];
  const samples = shadow.flatMap((ops, round) => [
    sample('envoy', round, 100 * (round + 1)),
    sample('shadow', round, ops),
  ]);
  const ratio = ratioTo(samples, 'envoy', 16)!;
  assert.deepEqual([ratio.median, ratio.min, ratio.max], [2.1, 1.9, 2.3]);
});

test('a requirement fails below its ratio, holds at it, and fails where the peer was not measured', () => {
  const samples = [sample('envoy', 0, 100), sample('shadow', 0, 200)];
  assert.equal(judge(samples, { peer: 'envoy', pipeline: 16, atLeast: 2 }).holds, true);
  assert.equal(judge(samples, { peer: 'envoy', pipeline: 16, atLeast: 2.01 }).holds, false);
  assert.equal(judge(samples, { peer: 'envoy', pipeline: 1, atLeast: 0.1 }).holds, false);
});

test('requirements are read with their peer, depth and ratio; anything else is refused', () => {
  assert.deepEqual(parseRequirement('twemproxy@16=0.75'), { peer: 'twemproxy', pipeline: 16, atLeast: 0.75 });
  assert.deepEqual(parseRequirement('envoy@1>=1.1'), { peer: 'envoy', pipeline: 1, atLeast: 1.1 });
  for (const wrong of ['envoy', 'envoy@x=1', 'shadow@1=1', 'nginx@1=1', 'envoy@1=', 'envoy@1=-1']) {
    assert.throws(() => parseRequirement(wrong), /peer@pipeline=ratio/, wrong);
  }
});

test('one round with different values on the two servers makes the row unequal', () => {
  const samples = [true, false, true].map((equal, round) => sample('shadow', round, 1, { equal }));
  assert.equal(rowOf(samples, 'shadow', 16).equal, false);
  assert.equal(rowOf(samples.slice(2), 'shadow', 16).equal, true);
  assert.equal(rowOf([sample('direct', 0, 1)], 'direct', 16).equal, null);
});

test('every round begins with another peer and leaves none out', () => {
  assert.deepEqual(
    [0, 1, 2, 3].map((by) => rotate(['a', 'b', 'c'], by).join('')),
    ['abc', 'bca', 'cab', 'abc'],
  );
});

test('what is recorded has the rows and columns of docs/figures.json', () => {
  const file = new URL('../../../docs/figures.json', import.meta.url);
  const { bench } = JSON.parse(readFileSync(file, 'utf8')) as { bench: { figures: Record<string, object> } };
  const samples = [1, 16].flatMap((pipeline) =>
    (['direct', 'haproxy', 'twemproxy', 'envoy', 'shadow'] as const).map((peer) =>
      sample(peer, 0, 100.4, { pipeline, ...(peer === 'direct' ? {} : { cpu: 1.26, rss: 3 * 2 ** 20 }) }),
    ),
  );
  const rows = samples.map(({ peer, pipeline }) => rowOf(samples, peer, pipeline));
  const wanted = [
    ['envoy', 1],
    ['envoy', 16],
    ['twemproxy', 16],
  ] as const;
  const figures = figuresOf(
    rows,
    wanted.map(([peer, pipeline]) => ratioTo(samples, peer, pipeline)!),
  );
  const shape = (all: Readonly<Record<string, object>>): Record<string, string[]> =>
    Object.fromEntries(Object.entries(all).map(([row, columns]) => [row, Object.keys(columns)]));
  assert.deepEqual(shape(figures), shape(bench.figures));
  assert.deepEqual(figures['shadow@16'], {
    'ops/s': 100,
    'p50 ms': 1,
    'p99 ms': 1,
    'CPU s per million': 1.3,
    'RSS MiB': 3,
  });
});
