/** What is found about a Redis Cluster, from made-up facts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { advise } from '../../../../src/assess/cluster/advice.js';
import type { ClusterFacts } from '../../../../src/assess/cluster/cluster-facts.js';
import type { SlotTraffic } from '../../../../src/assess/cluster/traffic.js';
import { weigh } from '../../../../src/assess/cluster/weights.js';
import type { InstanceFacts } from '../../../../src/assess/instance-facts.js';
import type { ClusterQuestion, Finding, Question } from '../../../../src/assess/finding.js';
import { concludeFrom, findingsOf } from '../../../../src/assess/findings.js';
import type { SlotMaster } from '../../../../src/plan/cluster-shards.js';
import { SLOTS } from '../../../../src/route/slot.js';
import { facts } from '../../../support/instance-facts.js';

const CAPACITY = 36_000;

interface Made {
  readonly cluster?: Partial<ClusterFacts>;
  readonly sources?: readonly Partial<InstanceFacts>[];
  readonly traffic?: ClusterQuestion['traffic'];
  readonly targetMasters?: readonly SlotMaster[] | null;
  readonly question?: Partial<Question>;
}

const MASTERS = [0, 1, 2].map((i) => ({
  id: `m${i}`,
  address: { host: `10.0.0.${i + 1}`, port: 6379 },
  slots: [[Math.floor((i * SLOTS) / 3), Math.floor(((i + 1) * SLOTS) / 3) - 1]] as const,
  replicas: [`10.0.1.${i + 1}:6379`],
}));

function judge({
  cluster,
  sources: changes = [{}, {}, {}],
  traffic = null,
  targetMasters = null,
  question,
}: Made = {}): Finding[] {
  const sources = changes.map((each, i) =>
    facts({ label: `redis://10.0.0.${i + 1}:6379`, mode: 'cluster', cpu: 0.9, ...each }),
  );
  const clusterFacts: ClusterFacts = {
    state: 'ok',
    masters: MASTERS,
    failed: [],
    unserved: 0,
    moving: 0,
    keysBySlot: new Uint32Array(SLOTS).fill(10),
    ...cluster,
  };
  const weights = weigh(clusterFacts, sources, traffic);
  const advice =
    clusterFacts.masters.length > 12
      ? null
      : advise(clusterFacts.masters, weights, { masters: 3, kind: 'aligned', by: 'load', capacity: CAPACITY });
  return findingsOf({
    sources,
    cluster: { facts: clusterFacts, weights, traffic, targetMasters, advice, capacity: CAPACITY },
    target: null,
    requires: [],
    proxyOps: 60_000,
    ...question,
  });
}

const textOf = (findings: readonly Finding[], about: string): string =>
  findings
    .filter((finding) => finding.about === about)
    .map(({ weight, what }) => `${weight}: ${what}`)
    .join('\n');

test('a cluster is no reason against the migration; what it is like is said', () => {
  const findings = judge();
  assert.equal(concludeFrom(findings).conclusion, 'go');
  assert.equal(textOf(findings, 'cluster'), 'note: Redis Cluster of 3 masters with 3 replicas');
  assert.equal(
    textOf(findings, 'slot balance'),
    'note: a master has 33 % to 33 % of the keys, 33 % to 33 % of the memory of keys and values, 33 % to 33 % of the commands',
  );
  assert.match(textOf(findings, 'slots'), /^note: keys of each slot: 16,384 × CLUSTER COUNTKEYSINSLOT/);
  assert.match(textOf(findings, 'databases'), /^note: a cluster has database 0 only$/);
  assert.match(textOf(findings, 'cluster commands'), /^note: KeyDB's cluster lacks CLUSTER SHARDS, CLUSTER LINKS/);
  assert.equal(textOf(findings, 'cluster state'), '');
});

test('a sample of Redis 7.4 or later is one of the lowest slots', () => {
  assert.equal(textOf(judge(), 'sample'), '');
  for (const version of ['7.4.1', '8.0.0'])
    assert.match(textOf(judge({ sources: [{ version }, {}, {}] }), 'sample'), /^note: .* lowest slots of each master/);
});

test('more masters than were tried are too many', () => {
  const masters = Array.from({ length: 13 }, (_, i) => ({ ...MASTERS[0], id: `m${i}`, slots: [[i, i]] as const }));
  const findings = judge({ cluster: { masters }, sources: masters.map(() => ({})) });
  assert.equal(textOf(findings, 'cluster'), 'no-go: Redis Cluster of 13 masters with 13 replicas');
});

test('a cluster in trouble has to be fixed first', () => {
  const findings = judge({
    cluster: { state: 'fail', failed: ['10.0.0.9:6379'], unserved: 1, moving: 2 },
  });
  assert.equal(
    textOf(findings, 'cluster state'),
    'first: cluster_state is fail; 1 slot without a master; failed or not reached: 10.0.0.9:6379; 2 slots being moved',
  );
});

test('masters that are uneven are named by what is uneven', () => {
  const [uneven] = judge({ sources: [{ opsPerSecond: 9_000 }, { opsPerSecond: 500 }, { opsPerSecond: 500 }] }).filter(
    ({ about }) => about === 'slot balance',
  );
  assert.match(uneven.what, /5\.0 % to 90 % of the commands$/);
  assert.match(uneven.means, /^uneven in load:/);
});

test('hot slots are those of MONITOR, with how many keys they are about; full ones those with many keys', () => {
  const keysBySlot = new Uint32Array(SLOTS).fill(1);
  keysBySlot[77] = 20_000;
  const traffic = new Map<number, SlotTraffic>([
    ...Array.from({ length: 5_000 }, (_, slot) => [slot, { commands: 1, keys: 1 }] as const),
    [6_000, { commands: 4_000, keys: 1 }] as const,
    [12_000, { commands: 1_000, keys: 100 }] as const,
  ]);
  const findings = judge({ cluster: { keysBySlot }, traffic });
  assert.equal(
    textOf(findings, 'hot slots'),
    'note: 6000 (40 % of the commands, on 1 key), 12000 (10 % of the commands, on 100 keys or more)',
  );
  assert.equal(textOf(findings, 'full slots'), 'note: 77 (20,000 keys, 55 %)');
  assert.match(textOf(findings, 'slots'), /MONITOR, 10,000 commands with a key$/);
  assert.equal(textOf(judge(), 'hot slots'), '');
});

test('a master above one proxy is cut; a slot above one proxy speaks against it', () => {
  const busy = judge({ sources: [{ opsPerSecond: 60_000 }, {}, {}] });
  assert.match(textOf(busy, 'proxy'), /^first: a master gets more than the 36,000 commands a second/);
  assert.match(busy.find(({ about }) => about === 'proxy')!.means, /1 cut, 4 proxies in all$/);
  const traffic = new Map([[7, { commands: 5_000, keys: 1 }]]);
  const crowded = judge({ sources: [{ opsPerSecond: 60_000 }, {}, {}], traffic });
  assert.match(textOf(crowded, 'proxy'), /^no-go: slot 7 gets 60,000 commands a second, over the 36,000/);
});

test("what KeyDB's cluster lacks is named with its calls, and what it has is not", () => {
  const calls = new Map([
    ['get', 5],
    ['cluster|slots', 40],
    ['cluster|nodes', 2],
    ['cluster|countkeysinslot', 16_384],
    ['cluster|shards', 3],
    ['spublish', 12],
    ['ssubscribe', 1],
  ]);
  const findings = judge({ sources: [{ calls }, { calls }, { calls }] });
  assert.equal(textOf(findings, 'sharded pub/sub'), 'no-go: clients use SPUBLISH (36 calls), SSUBSCRIBE (3 calls)');
  assert.equal(textOf(findings, 'cluster commands'), 'first: clients use CLUSTER SHARDS (9 calls)');
  assert.equal(textOf(findings, 'commands'), '');
});

test('what is the same of several masters is said once, and clients are those of all of them', () => {
  const api = { host: '10.1.0.1', name: 'api', library: '', user: 'default' };
  const findings = judge({
    sources: [
      { connections: [api], refusals: ['CONFIG GET: NOPERM'] },
      { connections: [api], refusals: ['CONFIG GET: NOPERM'] },
      { connections: [api, api], refusals: ['CONFIG GET: NOPERM'], evicted: 7 },
    ],
  });
  assert.equal(textOf(findings, 'clients'), 'first: 4 connections to 3 masters: 10.1.0.1 api (4)');
  assert.equal(textOf(findings, 'permissions'), 'note: each master refused: CONFIG GET: NOPERM');
  assert.match(textOf(findings, 'evictions'), /^note: redis:\/\/10\.0\.0\.3:6379 has evicted 7 keys/);
});

test('a target that is a cluster already is compared with the best layout', () => {
  const shifted: SlotMaster[] = [
    { id: 'x', address: { host: 'x', port: 1 }, slots: [[0, 6_000]] },
    { id: 'y', address: { host: 'y', port: 1 }, slots: [[6_001, 12_000]] },
    { id: 'z', address: { host: 'z', port: 1 }, slots: [[12_001, 16_383]] },
  ];
  assert.match(
    textOf(judge({ targetMasters: shifted }), 'target layout'),
    /^first: with the slots that the 3 masters of the target have now, there are 5 shards$/,
  );
  assert.match(textOf(judge({ targetMasters: MASTERS }), 'target layout'), /^note: .* there are 3 shards$/);
  const alone = judge({
    question: { cluster: null, target: facts({ label: 'redis://t:1', mode: 'cluster', isKeydb: true }) },
  });
  assert.match(textOf(alone, 'target'), /^first: redis:\/\/t:1 runs in cluster mode, and the sources do not$/);
});
