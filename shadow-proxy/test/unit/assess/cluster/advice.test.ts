/** Weights of slots, and cuts where one proxy is not enough. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { advise } from '../../../../src/assess/cluster/advice.js';
import { cutsOf } from '../../../../src/assess/cluster/cuts.js';
import type { ClusterFacts } from '../../../../src/assess/cluster/cluster-facts.js';
import { SlotSample } from '../../../../src/assess/cluster/traffic.js';
import { slotsOf, weigh, weightOf } from '../../../../src/assess/cluster/weights.js';
import type { InstanceFacts } from '../../../../src/assess/instance-facts.js';
import { Sample } from '../../../../src/assess/monitor.js';
import { refine } from '../../../../src/plan/cluster-shards.js';
import { hashSlot, SLOTS } from '../../../../src/route/slot.js';

const MASTERS = [
  { id: 'a', slots: [[0, 8191]] as const, address: { host: 'a', port: 1 }, replicas: [] },
  { id: 'b', slots: [[8192, 16383]] as const, address: { host: 'b', port: 1 }, replicas: [] },
];

const facts = (keysBySlot: Uint32Array | null): ClusterFacts => ({
  state: 'ok',
  masters: MASTERS,
  failed: [],
  unserved: 0,
  moving: 0,
  keysBySlot,
});

const sources = [
  { opsPerSecond: 1_000, memory: { used: 5, dataset: 300 } },
  { opsPerSecond: 500, memory: { used: 100, dataset: null } },
] as InstanceFacts[];

test('the load and the memory of a master are divided among its slots by their keys', () => {
  const keys = new Uint32Array(SLOTS);
  [keys[0], keys[1], keys[9_000]] = [3, 1, 7];
  const { load, memory, loadBy } = weigh(facts(keys), sources, null);
  assert.deepEqual([load[0], load[1], load[2], load[9_000]], [750, 250, 0, 500]);
  assert.deepEqual([memory[0], memory[1], memory[9_000]], [225, 75, 100]);
  assert.equal(loadBy, 'keys');
});

test('where nothing is known of the keys, every slot of a master weighs the same', () => {
  const { load } = weigh(facts(null), sources, null);
  assert.deepEqual([load[0] * 8_192, load[16_383] * 8_192], [1_000, 500]);
});

test('what MONITOR showed of a master divides its load, if it was enough', () => {
  const keys = new Uint32Array(SLOTS).fill(1);
  const seen = new Map([
    [5, { commands: 900, keys: 1 }],
    [6, { commands: 100, keys: 9 }],
    [9_000, { commands: 10, keys: 1 }],
  ]);
  const some = weigh(facts(keys), sources, seen);
  assert.deepEqual([some.load[5], some.load[6], some.load[7]], [900, 100, 0]);
  assert.deepEqual([some.load[9_000] * 8_192, some.loadBy], [500, 'keys'], 'too few of the second master');
  const all = weigh(facts(keys), sources, new Map([...seen, [9_000, { commands: 1_000, keys: 1 }]]));
  assert.deepEqual([all.load[9_000], all.loadBy], [500, 'monitor']);
});

test('slots are seen in the lines of MONITOR: each command once, and not what scripts call', () => {
  const slots = new SlotSample();
  const sample = new Sample((key) => slots.add(key));
  const line = (words: string, address = '10.0.0.1:5000'): void =>
    sample.add(`+1700000000.123456 [0 ${address}] ${words}`);
  line('"MSET" "{u1}a" "1" "{u1}b" "2"');
  line('"get" "{u1}a"');
  line('"EVAL" "return 1" "1" "{u1}c"');
  line('"set" "{u1}a" "1"', 'lua');
  line('"get" "other"');
  line('"ping"');
  const of = (tag: string) => slots.slots.get(hashSlot(Buffer.from(tag), 0, tag.length));
  assert.deepEqual(of('u1'), { commands: 3, keys: 2 });
  assert.deepEqual(of('other'), { commands: 1, keys: 1 });
  assert.equal(slots.slots.size, 2);
});

test('a master with more load than a proxy takes is cut, and no part has more', () => {
  const load = new Float64Array(SLOTS);
  load.fill(100_000 / 8_192, 0, 8_192).fill(10_000 / 8_192, 8_192);
  const shards = refine(MASTERS, MASTERS, []);
  const cuts = cutsOf(shards, load, 35_400);
  assert.equal(cuts.length, 2);
  const parts = refine(MASTERS, MASTERS, cuts);
  assert.equal(parts.length, 4);
  for (const part of parts) assert.ok(weightOf(slotsOf(part), load) <= 35_400, part.name);
});

test('a hot slot among others gets as many cuts as leave no other part with too much', () => {
  const load = new Float64Array(SLOTS);
  load[100] = 90;
  load[5_000] = 60;
  load[5_001] = 60;
  const cuts = cutsOf(refine(MASTERS, null, []), load, 100);
  for (const part of refine(MASTERS, null, cuts)) assert.ok(weightOf(slotsOf(part), load) <= 100, part.name);
});

test('a slot that is too much for one proxy is named, and the cuts end', () => {
  const load = new Float64Array(SLOTS);
  load[100] = 500;
  const weights = { load, memory: load };
  const advice = advise(MASTERS, weights, { masters: 2, kind: 'aligned', by: 'load', capacity: 100 });
  assert.deepEqual(advice.crowded, [100]);
  assert.ok(advice.chosen.proxies <= 18, `${advice.chosen.proxies} proxies`);
});

test('the asked layout is chosen; aligned where there is no even one', () => {
  const load = new Float64Array(SLOTS).fill(1);
  const of = (masters: number, kind: 'aligned' | 'even') =>
    advise(MASTERS, { load, memory: load }, { masters, kind, by: 'load', capacity: 1e9 }).chosen;
  assert.deepEqual([of(3, 'even').kind, of(3, 'aligned').kind, of(2, 'even').kind], ['even', 'aligned', 'aligned']);
  assert.deepEqual([of(3, 'aligned').cuts, of(3, 'aligned').proxies], [[], 3]);
});
