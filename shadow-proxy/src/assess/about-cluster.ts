/**
 * Findings about a source that is a Redis Cluster: its health, how its slots are filled and used, and what KeyDB's
 * cluster lacks.
 */
import { count, number, percent } from '../text/figures.js';
import { refine } from '../plan/cluster-shards.js';
import { SLOTS } from '../route/slot.js';
import { MANY_KEYS } from './cluster/traffic.js';
import { slotsOf, total, weightOf } from './cluster/weights.js';
import type { ClusterQuestion, Finding, Question } from './finding.js';

/** The largest number with which the kit was tested. */
export const MAX_SOURCE_MASTERS = 12;
/** A slot (of 16,384) is reported if its share of all commands, or of all keys, is at least this. */
const STANDS_OUT = 0.01;
const ENOUGH_KEYS = 1_000;
/** Maximum number of slots that are named. */
const NAMED = 5;
/** The largest master's share divided by the smallest one's, above which the masters are uneven. */
const UNEVEN = 1.5;

/** `CLUSTER HELP` of KeyDB 6.3.4 lists none of these. */
const LACKING = ['shards', 'links', 'myshardid', 'slot-stats', 'addslotsrange', 'delslotsrange'].map(
  (name) => `cluster|${name}`,
);
const SHARDED = ['spublish', 'ssubscribe', 'sunsubscribe'];
/** Commands that `newerCommands` leaves to this file. */
export const isClusters = (name: string): boolean => name.startsWith('cluster|') || SHARDED.includes(name);

export const clusters = ({ sources, cluster }: Question): Finding[] =>
  cluster === null
    ? []
    : [
        ...size(cluster),
        ...health(cluster),
        balance(cluster, sources),
        measured(cluster),
        ...sample(sources),
        ...hotSlots(cluster),
        ...fullSlots(cluster),
        ...proxies(cluster),
        ...present(cluster),
        ...lacking(sources),
        {
          about: 'databases',
          weight: 'note',
          what: 'a cluster has database 0 only',
          means: 'SELECT of another database, MOVE and SWAPDB work neither there nor on KeyDB: nothing to migrate',
        },
      ];

function size({ facts: { masters } }: ClusterQuestion): Finding[] {
  const replicas = masters.reduce((sum, master) => sum + master.replicas.length, 0);
  const what = `Redis Cluster of ${count(masters.length, 'master')} with ${count(replicas, 'replica')}`;
  const about = 'cluster';
  if (masters.length > MAX_SOURCE_MASTERS)
    return [{ about, weight: 'no-go', what, means: `the kit was tried with up to ${MAX_SOURCE_MASTERS} masters` }];
  return [
    {
      about,
      weight: 'note',
      what,
      means:
        'the proxy serves it as shards: each has one master of the source, one of the target, and the slots they share',
    },
  ];
}

function health({ facts: { state, failed, unserved, moving } }: ClusterQuestion): Finding[] {
  const troubles = [
    ...(state === 'ok' ? [] : [`cluster_state is ${state}`]),
    ...(unserved > 0 ? [`${count(unserved, 'slot')} without a master`] : []),
    ...(failed.length > 0 ? [`failed or not reached: ${failed.join(', ')}`] : []),
    ...(moving > 0 ? [`${count(moving, 'slot')} being moved`] : []),
  ];
  return troubles.length === 0
    ? []
    : [
        {
          about: 'cluster state',
          weight: 'first',
          what: troubles.join('; '),
          means: 'bring the cluster to cluster_state ok and finish resharding; do not move slots during the migration',
        },
      ];
}

/** Each master's share of the keys, the memory and the commands. */
function balance({ facts, weights }: ClusterQuestion, sources: Question['sources']): Finding {
  const of = (values: readonly number[]): { text: string; ratio: number } => {
    const shares = values.map((value) => value / (total(values) || 1));
    const [least, most] = [Math.min(...shares), Math.max(...shares)];
    return {
      text: `${percent(least)} to ${percent(most)}`,
      ratio: least === 0 ? (most === 0 ? 1 : Infinity) : most / least,
    };
  };
  const keys = of(
    facts.masters.map((master, i) => keysOf(facts.keysBySlot, slotsOf(master)) ?? sources[i].databases.get(0) ?? 0),
  );
  const memory = of(facts.masters.map((master) => weightOf(slotsOf(master), weights.memory)));
  const load = of(sources.map(({ opsPerSecond }) => opsPerSecond));
  const uneven = Object.entries({ keys, memory, load })
    .filter(([, { ratio }]) => ratio > UNEVEN)
    .map(([name]) => name);
  return {
    about: 'slot balance',
    weight: 'note',
    what: `a master has ${keys.text} of the keys, ${memory.text} of the memory of keys and values, ${load.text} of the commands`,
    means:
      uneven.length === 0
        ? 'the masters are about even'
        : `uneven in ${uneven.join(' and ')}: see the target layout below, which need not repeat it`,
  };
}

const keysOf = (keysBySlot: Uint32Array | null, slots: readonly number[]): number | null =>
  keysBySlot === null ? null : slots.reduce((sum, slot) => sum + keysBySlot[slot], 0);

function measured({ facts: { keysBySlot }, weights: { loadBy }, traffic }: ClusterQuestion): Finding {
  const keys =
    keysBySlot === null
      ? 'keys of each slot: not known, CLUSTER COUNTKEYSINSLOT is refused'
      : `keys of each slot: ${number(SLOTS)} × CLUSTER COUNTKEYSINSLOT, which reads no key`;
  const commands =
    loadBy === 'monitor'
      ? `commands of each slot: MONITOR, ${number(seen(traffic!))} commands with a key`
      : traffic === null
        ? 'commands of each slot: not measured; those of a master are divided among its slots by their keys'
        : `commands of each slot: MONITOR showed only ${number(seen(traffic))} commands with a key, too few of a master; they are divided by the keys`;
  return {
    about: 'slots',
    weight: 'note',
    what: `${keys}; memory of a slot: that of its master, divided by the keys; ${commands}`,
    means:
      loadBy === 'monitor'
        ? 'this was a short sample'
        : 'to see hot slots, run assess with --monitor 10s (it costs throughput)',
  };
}

/** From 7.4 on, SCAN of a cluster's node goes slot by slot. */
function sample(sources: Question['sources']): Finding[] {
  const isBySlot = ({ version, isKeydb }: Question['sources'][number]): boolean => {
    const [major, minor] = version.split('.').map(Number);
    return !isKeydb && (major > 7 || (major === 7 && minor >= 4));
  };
  return sources.some(isBySlot)
    ? [
        {
          about: 'sample',
          weight: 'note',
          what: 'the sampled keys are those of the lowest slots of each master: SCAN of Redis 7.4 and later goes slot by slot',
          means: 'large keys in other slots were not looked for',
        },
      ]
    : [];
}

const seen = (traffic: NonNullable<ClusterQuestion['traffic']>): number =>
  [...traffic.values()].reduce((sum, { commands }) => sum + commands, 0);

function hotSlots({ traffic }: ClusterQuestion): Finding[] {
  if (traffic === null || seen(traffic) < ENOUGH_KEYS) return [];
  const hot = [...traffic]
    .filter(([, { commands }]) => commands / seen(traffic) >= STANDS_OUT)
    .sort(([, a], [, b]) => b.commands - a.commands);
  if (hot.length === 0) return [];
  const named = hot
    .slice(0, NAMED)
    .map(
      ([slot, { commands, keys }]) =>
        `${slot} (${percent(commands / seen(traffic))} of the commands, on ${keys >= MANY_KEYS ? `${MANY_KEYS} keys or more` : count(keys, 'key')})`,
    );
  return [
    {
      about: 'hot slots',
      weight: 'note',
      what: `${named.join(', ')}${hot.length > NAMED ? ` and ${hot.length - NAMED} more` : ''}`,
      means:
        'a slot is on one master and one proxy, whatever the layout: one key, or a hash tag that many keys share, cannot be spread',
    },
  ];
}

function fullSlots({ facts: { keysBySlot } }: ClusterQuestion): Finding[] {
  if (keysBySlot === null) return [];
  const keys = total(keysBySlot);
  const full = [...keysBySlot.keys()]
    .filter((slot) => keysBySlot[slot] >= ENOUGH_KEYS && keysBySlot[slot] / keys >= STANDS_OUT)
    .sort((a, b) => keysBySlot[b] - keysBySlot[a]);
  const named = full
    .slice(0, NAMED)
    .map((slot) => `${slot} (${count(keysBySlot[slot], 'key')}, ${percent(keysBySlot[slot] / keys)})`);
  return full.length === 0
    ? []
    : [
        {
          about: 'full slots',
          weight: 'note',
          what: `${named.join(', ')}${full.length > NAMED ? ` and ${full.length - NAMED} more` : ''}`,
          means: 'many keys share a hash tag: they stay on one master',
        },
      ];
}

function proxies({ advice, capacity, weights: { load } }: ClusterQuestion): Finding[] {
  if (advice === null) return [];
  if (advice.crowded.length > 0)
    return [
      {
        about: 'proxy',
        weight: 'no-go',
        what: `${advice.crowded.map((slot) => `slot ${slot} gets ${number(load[slot])} commands a second`).join(', ')}, over the ${number(capacity)} that one proxy should get`,
        means:
          'a slot cannot be divided: spread its keys over other hash tags first; if your machines are faster, measure it (docs/capacity.md) and set --proxy-ops',
      },
    ];
  const { cuts, proxies: needed } = advice.chosen;
  return cuts.length === 0
    ? []
    : [
        {
          about: 'proxy',
          weight: 'first',
          what: `a master gets more than the ${number(capacity)} commands a second that one proxy should get`,
          means: `cut its slots: the layout below has ${count(cuts.length, 'cut')}, ${count(needed, 'proxy', 'proxies')} in all`,
        },
      ];
}

/** The slots of a target that is already a cluster. */
function present({ facts, advice, targetMasters }: ClusterQuestion): Finding[] {
  if (targetMasters === null) return [];
  const shards = refine(facts.masters, targetMasters, []).length;
  const best = advice?.proposals.find(({ masters }) => masters.length === targetMasters.length);
  const isWorse = best !== undefined && shards > best.shards.length;
  return [
    {
      about: 'target layout',
      weight: isWorse ? 'first' : 'note',
      what: `with the slots that the ${count(targetMasters.length, 'master')} of the target ${targetMasters.length === 1 ? 'has' : 'have'} now, there are ${count(shards, 'shard')}`,
      means: isWorse
        ? `lay its slots out as below while it is empty: ${count(best.shards.length, 'shard')}, each with a proxy of its own`
        : 'no layout with as many masters has fewer',
    },
  ];
}

function lacking(sources: Question['sources']): Finding[] {
  const used = (names: readonly string[]): string[] =>
    names
      .map((name) => [name, sources.reduce((sum, { calls }) => sum + (calls.get(name) ?? 0), 0)] as const)
      .filter(([, calls]) => calls > 0)
      .map(([name, calls]) => `${name.replace('|', ' ').toUpperCase()} (${count(calls, 'call')})`);
  const [sharded, topology] = [used(SHARDED), used(LACKING)];
  const found: Finding[] = [];
  if (sharded.length > 0)
    found.push({
      about: 'sharded pub/sub',
      weight: 'no-go',
      what: `clients use ${sharded.join(', ')}`,
      means: 'KeyDB has no sharded pub/sub: use SUBSCRIBE and PUBLISH, which reach every node of a cluster, first',
    });
  if (topology.length > 0)
    found.push({
      about: 'cluster commands',
      weight: 'first',
      what: `clients use ${topology.join(', ')}`,
      means: "KeyDB's cluster has CLUSTER SLOTS and CLUSTER NODES instead: set the client libraries to use those",
    });
  if (found.length === 0)
    found.push({
      about: 'cluster commands',
      weight: 'note',
      what: "KeyDB's cluster lacks CLUSTER SHARDS, CLUSTER LINKS and sharded pub/sub (SSUBSCRIBE, SPUBLISH)",
      means: 'no use of them was counted since the masters started',
    });
  return found;
}
