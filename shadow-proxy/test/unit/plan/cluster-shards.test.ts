/** Shards of a cluster: who has which slots, by what name and address. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  commonSlots,
  countSlots,
  describeShards,
  formatSlots,
  masterOf,
  refine,
  unserved,
  withShards,
  type SlotMaster,
} from '../../../src/plan/cluster-shards.js';
import { checkPlan } from '../../../src/plan/check.js';
import { formatAddress } from '../../../src/plan/endpoint.js';
import { parseSlots } from '../../../src/plan/owns.js';
import { checkReload, firstStages } from '../../../src/plan/reload.js';
import { sameServer, sharersOf } from '../../../src/plan/normalise.js';
import type { Plan } from '../../../src/plan/plan.js';
import { SLOTS } from '../../../src/route/slot.js';
import { problemsOf, smallPlan, printProblems, toPlan } from '../../support/plans.js';

const rejects = (plan: object): string =>
  printProblems(
    problemsOf((small) => {
      for (const field of Object.keys(small)) delete small[field];
      Object.assign(small, plan);
    }),
  );

const master = (id: string, slots: string): SlotMaster => ({
  id,
  address: { host: '10.0.0.1', port: 6379 },
  slots: parseSlots(slots),
});
const THREE = [master('a', '0-5460'), master('b', '5461-10922'), master('c', '10923-16383')];
const shown = (source: readonly SlotMaster[], target: readonly SlotMaster[] | null, cuts: number[] = []): string[] =>
  refine(source, target, cuts).map(
    (shard) => `${shard.name} ${formatSlots(shard.slots)} ${shard.source.id}>${shard.target?.id ?? '*'}`,
  );

test('with the same ranges on both sides there is a shard for each master', () => {
  assert.deepEqual(shown(THREE, [master('x', '0-5460'), master('y', '5461-10922'), master('z', '10923-16383')]), [
    'slots-0 0-5460 a>x',
    'slots-5461 5461-10922 b>y',
    'slots-10923 10923-16383 c>z',
  ]);
});

test('other ranges cut the masters, slots apart stay one shard, one KeyDB has them all', () => {
  assert.deepEqual(shown(THREE, [master('x', '0-8191'), master('y', '8192-16383')]), [
    'slots-0 0-5460 a>x',
    'slots-5461 5461-8191 b>x',
    'slots-8192 8192-10922 b>y',
    'slots-10923 10923-16383 c>y',
  ]);
  assert.deepEqual(shown([master('a', '0-99,200-16383'), master('b', '100-199')], null), [
    'slots-0 0-99,200-16383 a>*',
    'slots-100 100-199 b>*',
  ]);
});

test('a cut begins a further shard', () => {
  assert.deepEqual(shown([master('a', '0-16383')], null, [4000, 9000]), [
    'slots-0 0-3999 a>*',
    'slots-4000 4000-8999 a>*',
    'slots-9000 9000-16383 a>*',
  ]);
});

test('the shards have each served slot once, and one master at each side', () => {
  const map = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 8, maxLength: 40 }).map((owners) => {
    const width = Math.ceil(SLOTS / owners.length);
    const of = new Map<number, [number, number][]>();
    owners.forEach((owner, i) => {
      if (i * width >= SLOTS) return;
      of.set(owner, [...(of.get(owner) ?? []), [i * width, Math.min(SLOTS, (i + 1) * width) - 1]]);
    });
    return [...of].map(([id, slots]): SlotMaster => ({ ...master(String(id), '0'), slots }));
  });
  fc.assert(
    fc.property(
      map,
      map,
      fc.array(fc.integer({ min: 1, max: SLOTS - 1 }), { maxLength: 3 }),
      (source, target, cuts) => {
        const shards = refine(source, target, cuts);
        assert.equal(
          shards.reduce((sum, { slots }) => sum + countSlots(slots), 0),
          SLOTS,
        );
        assert.deepEqual(unserved(shards.map((shard) => ({ ...shard.source, slots: shard.slots }))), []);
        for (const { slots, source: from, target: to } of shards) {
          assert.equal(countSlots(commonSlots(slots, from.slots)), countSlots(slots));
          assert.equal(countSlots(commonSlots(slots, to!.slots)), countSlots(slots));
        }
        assert.equal(new Set(shards.map(({ name }) => name)).size, shards.length);
      },
    ),
    { numRuns: 50 },
  );
});

test('slots without a master are named, and the master of some is the one that has the most', () => {
  assert.deepEqual(unserved([master('a', '0-99,101-16000')]), [
    [100, 100],
    [16001, 16383],
  ]);
  assert.equal(masterOf(THREE, parseSlots('5400-5500'))!.id, 'a');
  assert.equal(masterOf(THREE, parseSlots('5455-5500'))!.id, 'b');
  assert.equal(masterOf([], parseSlots('0')), undefined);
});

const CLUSTER = {
  version: 1,
  name: 'test',
  cluster: {
    source: 'redis://u:pw@10.0.0.1:6379,10.0.0.2',
    target: 'redis://10.0.1.1',
    listen: 'redis://127.0.0.1:7000',
    admin: { listen: '127.0.0.1:9401' },
  },
};
const derived = (change: object = {}, target: readonly SlotMaster[] | null = null, cuts: number[] = []): Plan => {
  const plan = toPlan({ ...CLUSTER, cluster: { ...CLUSTER.cluster, ...change } });
  return withShards(plan, plan.cluster!, refine(THREE, target, cuts));
};

test('ports and addresses count up, and {shard} is the name', () => {
  const { shards } = derived();
  assert.deepEqual(
    shards.map(({ name, listen, announce, admin }) => [name, listen.label, announce!.port, admin!.port]),
    [
      ['slots-0', 'redis://127.0.0.1:7000', 7000, 9401],
      ['slots-5461', 'redis://127.0.0.1:7001', 7001, 9402],
      ['slots-10923', 'redis://127.0.0.1:7002', 7002, 9403],
    ],
  );
  assert.deepEqual(derived({ announce: 'proxy-{shard}.internal:7000' }).shards[1].announce, {
    host: 'proxy-slots-5461.internal',
    port: 7000,
  });
  assert.deepEqual(derived({ announce: '[::1]:8000' }).shards[2].announce, { host: '::1', port: 8002 });
});

test('a shard is announced as a replica, too, where the plan allows reads from replicas', () => {
  const doors = (change: object): unknown =>
    derived(change).shards.map(({ replica }) => replica && [replica.listen.label, formatAddress(replica.announce)]);
  assert.deepEqual(doors({}), [null, null, null]);
  assert.deepEqual(doors({ announce: 'proxy:7000', replicas: { port: 7100 } }), [
    ['redis://127.0.0.1:7100', 'proxy:7100'],
    ['redis://127.0.0.1:7101', 'proxy:7101'],
    ['redis://127.0.0.1:7102', 'proxy:7102'],
  ]);
  assert.deepEqual(doors({ replicas: { port: 7100, announce: '{shard}.internal:1' } }), [
    ['redis://127.0.0.1:7100', 'slots-0.internal:1'],
    ['redis://127.0.0.1:7101', 'slots-5461.internal:1'],
    ['redis://127.0.0.1:7102', 'slots-10923.internal:1'],
  ]);
  const plan = derived({ replicas: { port: 7100 } });
  assert.match(describeShards(plan.shards).join('\n'), /connect to 127\.0\.0\.1:7001, or to 127\.0\.0\.1:7101 to read/);
  assert.match(
    checkReload(derived(), plan, firstStages(plan)).join('; '),
    /replicas of shard slots-0 changed: restart the proxy/,
  );
  const [taken] = checkPlan(derived({ replicas: { port: 7001 } }));
  assert.match(taken.message, /is 127\.0\.0\.1:7001, which shards\.\d\.\w+ uses already/);
});

test('a shard with servers of its own shares nothing; others keep to their slots', () => {
  const alone = derived({}, THREE).shards[0];
  assert.deepEqual([alone.owns, alone.sharedTarget, alone.sharedSource], [null, false, false]);
  const plan = derived({}, [master('x', '0-8191'), master('y', '8192-16383')]);
  const [first, second, third] = plan.shards;
  assert.deepEqual(first.owns, { slots: [[0, 5460]] });
  assert.deepEqual([first.sharedTarget, first.sharedSource], [true, false]);
  assert.deepEqual([second.sharedTarget, second.sharedSource], [true, true]);
  assert.ok(sameServer(second.source, third.source));
  assert.ok(!sameServer(first.source, second.source));
  assert.deepEqual(sharersOf(plan, second), { source: ['slots-8192'], target: ['slots-0'] });
  assert.match(
    describeShards([second]).join('\n'),
    /slots-5461: 2731 slots \(5461-8191\)[^]*clients connect to 127\.0\.0\.1:7001/,
  );
  assert.equal(first.source.label, 'redis://u:***@10.0.0.1:6379 (slots 0-5460)');
});

test('after a failover the plan can still be taken over; moved slots need a restart', () => {
  const before = derived();
  const failedOver = { ...master('a2', '0-5460') };
  const plan = toPlan(CLUSTER);
  const after = (source: readonly SlotMaster[]): Plan => withShards(plan, plan.cluster!, refine(source, null, []));
  assert.deepEqual(checkReload(before, after([failedOver, THREE[1], THREE[2]]), firstStages(plan)), []);
  const moved = after([master('a', '1-5460'), master('b', '0,5461-10922'), THREE[2]]);
  assert.match(checkReload(before, moved, firstStages(plan)).join('; '), /slots of shard slots-0 changed: restart/);
});

test('what a cluster of a plan may not be is named', () => {
  const wrong = (change: object, rest: object = {}): string =>
    rejects({ ...CLUSTER, ...rest, cluster: { ...CLUSTER.cluster, ...change } });
  assert.match(
    wrong({ source: 'redis://10.0.0.1/1' }),
    /cluster\.source: has a database: a cluster has only database 0/,
  );
  assert.match(wrong({ source: 'redis+sentinel://h:1/m' }), /cluster\.source: is a Sentinel URL/);
  assert.match(wrong({ listen: 'redis://0.0.0.0:7000' }), /cluster\.announce: is missing, and listen is 0\.0\.0\.0/);
  assert.match(wrong({ announce: 'proxy' }), /cluster\.announce: has no port/);
  assert.match(wrong({ cuts: [0] }), /cluster\.cuts\.0/);
  assert.match(wrong({ replicas: { port: 70_000 } }), /cluster\.replicas\.port/);
  assert.match(
    wrong({ replicas: { port: 7000 } }),
    /cluster\.replicas\.announce: is 127\.0\.0\.1:7000, which is announced for the master already/,
  );
  assert.match(wrong({}, { shards: smallPlan().shards }), /cluster: and shards are both given/);
  assert.match(rejects({ version: 1, name: 'x' }), /shards: is missing: give shards, or cluster/);
  assert.match(
    wrong({}, { topology: { mode: 'active-active', regions: ['eu', 'us'] } }),
    /topology\.mode: is active-active, which is not possible with cluster/,
  );
});
