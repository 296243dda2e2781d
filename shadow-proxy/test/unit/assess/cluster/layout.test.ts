/** The layout of the target: few shards first, then even masters. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { groupMasters } from '../../../../src/assess/cluster/groups.js';
import { divide, layoutsOf, type Layout, type Weights } from '../../../../src/assess/cluster/layout.js';
import { slotsOf, weightOf } from '../../../../src/assess/cluster/weights.js';
import { formatSlots, rangesOf, type SlotMaster } from '../../../../src/plan/cluster-shards.js';
import { SLOTS } from '../../../../src/route/slot.js';

const equal = (count: number): SlotMaster[] =>
  Array.from({ length: count }, (_, i) => ({
    id: `m${i}`,
    address: { host: 'h', port: i },
    slots: [[Math.floor((i * SLOTS) / count), Math.floor(((i + 1) * SLOTS) / count) - 1]],
  }));

/** Each master's weight, spread over its slots. */
function weightsOf(masters: readonly SlotMaster[], load: readonly number[], memory = load): Weights {
  const spread = (each: readonly number[]): Float64Array => {
    const weight = new Float64Array(SLOTS);
    masters.forEach((master, i) => {
      const slots = slotsOf(master);
      for (const slot of slots) weight[slot] = each[i] / slots.length;
    });
    return weight;
  };
  return { load: spread(load), memory: spread(memory) };
}

const shape = ({ kind, masters, shards }: Layout): string =>
  `${kind} ${masters.map(({ slots }) => formatSlots(slots)).join(' | ')} (${shards.length})`;

test('with as many masters on both sides, each has the slots of one', () => {
  const source = equal(3);
  const layouts = layoutsOf(source, weightsOf(source, [1, 1, 1]), 'load');
  assert.equal(
    layouts
      .filter(({ masters }) => masters.length === 3)
      .map(shape)
      .join('\n'),
    'aligned 0-5460 | 5461-10921 | 10922-16383 (3)',
  );
});

test('one master has everything: the shards are those of the source', () => {
  const source = equal(5);
  const [one] = layoutsOf(source, weightsOf(source, [1, 1, 1, 1, 1]), 'load');
  assert.equal(shape(one), 'aligned 0-16383 (5)');
  assert.deepEqual(one.largest, { load: 1, memory: 1 });
});

test('fewer masters get unions of neighbours where those are even', () => {
  const source = equal(6);
  const layouts = layoutsOf(source, weightsOf(source, [1, 1, 1, 1, 1, 1]), 'load');
  assert.deepEqual(layouts.slice(1, 3).map(shape), [
    'aligned 0-8191 | 8192-16383 (6)',
    'aligned 0-5460 | 5461-10921 | 10922-16383 (6)',
  ]);
});

test('fewer masters get unions of distant ones where neighbours would be uneven', () => {
  const source = equal(4);
  // Neighbours would be 5 and 11, or 9 and 7, or 10 and 6.
  const layouts = layoutsOf(source, weightsOf(source, [5, 2, 3, 6]), 'load');
  assert.equal(
    shape(layouts.find(({ masters }) => masters.length === 2)!),
    'aligned 0-4095,8192-12287 | 4096-8191,12288-16383 (4)',
  );
});

test('more masters divide the heaviest of the source, and there is one shard for each', () => {
  const source = equal(4);
  const layouts = layoutsOf(source, weightsOf(source, [2, 1, 1, 1]), 'load');
  const five = layouts.find(({ masters }) => masters.length === 5)!;
  assert.equal(shape(five), 'aligned 0-2047 | 2048-4095 | 4096-8191 | 8192-12287 | 12288-16383 (5)');
});

test('where whole masters are uneven, an even layout is offered, with more shards', () => {
  const source = equal(3);
  const two = layoutsOf(source, weightsOf(source, [1, 1, 1]), 'load').filter(({ masters }) => masters.length === 2);
  assert.deepEqual(
    two.map(({ kind, shards, largest }) => [kind, shards.length, largest.load.toFixed(2)]),
    [
      ['aligned', 3, '0.67'],
      ['even', 4, '0.50'],
    ],
  );
});

test('what is balanced is chosen: load, or memory', () => {
  const source = equal(4);
  const weights = weightsOf(source, [9, 1, 1, 1], [1, 1, 1, 9]);
  const of = (by: 'load' | 'memory'): Layout =>
    layoutsOf(source, weights, by).find(({ kind, masters }) => kind === 'aligned' && masters.length === 2)!;
  assert.deepEqual(
    [formatSlots(of('load').masters[0].slots), formatSlots(of('memory').masters[1].slots)],
    ['0-4095', '12288-16383'],
  );
});

test('a cluster without any load or key is divided by its slots', () => {
  const source = equal(3);
  const layouts = layoutsOf(source, weightsOf(source, [0, 0, 0]), 'load');
  assert.equal(shape(layouts[0]), 'aligned 0-16383 (3)');
  assert.deepEqual(
    layouts.filter(({ masters }) => masters.length === 3).map(({ largest }) => largest.load.toFixed(2)),
    ['0.33'],
  );
});

test('a slot that is heavier than all others is alone on an even master', () => {
  const source = equal(3);
  const weights = weightsOf(source, [1, 1, 1]);
  weights.load[0] = 100;
  const even = layoutsOf(source, weights, 'load').find(({ kind, masters }) => kind === 'even' && masters.length === 3);
  assert.equal(even === undefined ? undefined : formatSlots(even.masters[0].slots), '0');
});

/** Masters of random slots, and random weights. */
const clusters = fc
  .record({
    masters: fc.integer({ min: 1, max: 12 }),
    bounds: fc.array(fc.integer({ min: 1, max: SLOTS - 1 }), { minLength: 12, maxLength: 30 }),
    owners: fc.array(fc.nat(11), { minLength: 40, maxLength: 40 }),
    loads: fc.array(fc.nat(1_000), { minLength: 12, maxLength: 12 }),
  })
  .map(({ masters, bounds, owners, loads }) => {
    const starts = [...new Set([0, ...bounds])].sort((a, b) => a - b);
    const slots: number[][] = Array.from({ length: masters }, () => []);
    starts.forEach((start, i) => {
      // Each has something.
      const owner = i < masters ? i : owners[i] % masters;
      for (let slot = start; slot < (starts[i + 1] ?? SLOTS); slot++) slots[owner].push(slot);
    });
    const source = slots
      .filter((each) => each.length > 0)
      .map((each, i): SlotMaster => ({ id: `m${i}`, address: { host: 'h', port: i }, slots: rangesOf(each) }))
      .sort((a, b) => a.slots[0][0] - b.slots[0][0]);
    return { source, weights: weightsOf(source, loads.slice(0, source.length)) };
  });

test('every layout has each slot once, as many masters as it says, and no more shards than it may', () => {
  fc.assert(
    fc.property(clusters, ({ source, weights }) => {
      for (const { kind, masters, shards, largest } of layoutsOf(source, weights, 'load')) {
        const all = masters.flatMap(slotsOf);
        assert.deepEqual([all.length, new Set(all).size], [SLOTS, SLOTS]);
        const [few, most] = [Math.max(source.length, masters.length), source.length + masters.length - 1];
        assert.ok(kind === 'aligned' ? shards.length === few : shards.length <= most, `${kind}: ${shards.length}`);
        assert.ok(largest.load <= 1 + 1e-9 && largest.load * masters.length >= 1 - 1e-9);
      }
    }),
    { numRuns: 25 },
  );
});

test('no other groups of whole masters are lighter by more than the 5 % that neighbours may cost', () => {
  const heaviest = (groups: readonly (readonly number[])[], weights: readonly number[]): number =>
    Math.max(...groups.map((group) => group.reduce((sum, master) => sum + weights[master], 0)));
  fc.assert(
    fc.property(
      fc.array(fc.nat(100), { minLength: 1, maxLength: 7 }),
      fc.integer({ min: 1, max: 6 }),
      (weights, asked) => {
        const count = Math.min(asked, weights.length);
        const groups = groupMasters(weights, count);
        assert.deepEqual(
          groups.flat().sort((a, b) => a - b),
          [...weights.keys()],
        );
        assert.ok(groups.length === count && groups.every(({ length }) => length > 0));
        let best = Infinity;
        for (let code = 0; code < count ** weights.length; code++) {
          const tried: number[][] = Array.from({ length: count }, () => []);
          weights.forEach((_, i) => tried[Math.floor(code / count ** i) % count].push(i));
          if (tried.every(({ length }) => length > 0)) best = Math.min(best, heaviest(tried, weights));
        }
        assert.ok(heaviest(groups, weights) <= best * 1.05 + 1e-9, `${heaviest(groups, weights)} instead of ${best}`);
      },
    ),
    { numRuns: 100 },
  );
});

test('slots are divided into parts of the same weight, and each part has one', () => {
  const weight = new Float64Array(SLOTS);
  weight.fill(1, 0, 10);
  assert.deepEqual(divide([0, 1, 2, 3], weight, 2), [
    [0, 1],
    [2, 3],
  ]);
  weight[0] = 100;
  assert.deepEqual(divide([0, 1, 2, 3], weight, 3), [[0], [1], [2, 3]]);
  weight.fill(0);
  assert.equal(
    divide([5, 6, 7], weight, 3).every((part) => part.length === 1),
    true,
  );
  assert.equal(weightOf([0, 1], weight), 0);
});
