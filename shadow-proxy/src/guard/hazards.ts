/**
 * Hazards that make the resync after a broken link between two nodes full, or a full resync worse. They are found
 * before it happens. Pure.
 */
import { number } from '../text/figures.js';
import { isActive, acceptsWrites, sharesIntegers, type Cluster, type NodeFacts } from './node-facts.js';

export interface Hazard {
  readonly about: 'backlog' | 'aof' | 'integers' | 'nodes' | 'clocks' | 'links' | 'evictions' | 'server';
  readonly what: string;
  readonly todo: string;
}

const MIB = 1 << 20;
/** Reserve on top of the estimate, because load varies. */
const RESERVE = 1.25;
/**
 * Clocks may differ by this, plus the error of measurement, in ms: less than the time between two writes of one key by
 * a person.
 */
const CLOCK_MS = 20;

/** The backlog with which an outage does not end in a full resync, in bytes (whole MiB). */
export const backlogFor = (bytesPerSecond: number, outageMinutes: number): number =>
  Math.max(1, Math.ceil((bytesPerSecond * outageMinutes * 60 * RESERVE) / MIB)) * MIB;

/**
 * The hazards of nodes that replicate from each other. A single node, or one with read-only replicas, can only have the
 * hazard `server`.
 */
export function hazardsOf(cluster: Cluster, outageMinutes: number): Hazard[] {
  const { nodes } = cluster;
  const active = nodes.filter((node) => isActive(node) || (acceptsWrites(node) && node.masters.length > 0));
  return [
    ...nodes.flatMap(notKeydb),
    ...(active.length === 0
      ? []
      : [
          ...active.flatMap((node) => [
            ...backlog(node, outageMinutes),
            ...aof(node),
            ...links(node),
            ...evictions(node),
          ]),
          ...integers(active),
          ...many(active),
          ...clocks(active),
        ]),
  ];
}

const notKeydb = ({ isKeydb, label, version }: NodeFacts): Hazard[] =>
  isKeydb
    ? []
    : [
        {
          about: 'server',
          what: `${label} is no KeyDB, but ${version}`,
          todo: 'findings about KeyDB do not apply to it',
        },
      ];

function backlog({ label, backlogBytes, streamBytesPerSecond: rate }: NodeFacts, minutes: number): Hazard[] {
  const needed = backlogFor(rate, minutes);
  if (needed <= backlogBytes) return [];
  const lasts = backlogBytes / rate;
  return [
    {
      about: 'backlog',
      what: `${label} writes ${size(rate)} of replication a second: its backlog of ${size(backlogBytes)} lasts for an outage of ${lasts < 120 ? `${Math.floor(lasts)} s` : `${Math.floor(lasts / 60)} min`}, not ${minutes} min; after a longer outage, the nodes do a full resync`,
      todo: `CONFIG SET repl-backlog-size ${needed} (${size(needed)}), and in its configuration file, too`,
    },
  ];
}

const aof = ({ aof: on, label }: NodeFacts): Hazard[] =>
  on
    ? [
        {
          about: 'aof',
          what: `${label} is an active replica with an AOF: after a restart from the AOF, it lacks all writes received from its peers`,
          todo: 'set appendonly no, and save by RDB, which has these writes',
        },
      ]
    : [];

const links = ({ label, masters }: NodeFacts): Hazard[] =>
  masters
    .filter(({ up }) => !up)
    .map(({ address }) => ({
      about: 'links',
      what: `${label} has no link to ${address}`,
      todo: 'repair the link before the backlog overflows: then a partial resync is enough',
    }));

const evictions = ({ label, evicted }: NodeFacts): Hazard[] =>
  evicted > 0
    ? [
        {
          about: 'evictions',
          what: `${label} has evicted ${number(evicted)} keys, which its peers keep`,
          todo: 'raise maxmemory: each node evicts by itself',
        },
      ]
    : [];

function integers(active: readonly NodeFacts[]): Hazard[] {
  const shared = active.filter(sharesIntegers);
  if (shared.length === 0) return [];
  return [
    {
      about: 'integers',
      what: `${names(shared)} keep one modification time for all keys that hold the same whole number from 0 to 9999, and a full resync uses it: an old number may win, even of a key that only one node writes`,
      todo: 'set maxmemory above the highest use, with an LRU or LFU policy; or store values that are not whole numbers, as the counters package does',
    },
  ];
}

const many = (active: readonly NodeFacts[]): Hazard[] =>
  active.length < 3
    ? []
    : [
        {
          about: 'nodes',
          what: `${active.length} nodes are active: ${names(active)}; KeyDB was seen to lose and to resurrect keys with three (issues 142, 227, 312)`,
          todo: 'keep to two active nodes, with read-only replicas behind them',
        },
      ];

function clocks(active: readonly NodeFacts[]): Hazard[] {
  const sorted = [...active].sort((a, b) => a.clock.offsetMs - b.clock.offsetMs);
  const [first, last] = [sorted[0], sorted[sorted.length - 1]];
  const apart = last.clock.offsetMs - first.clock.offsetMs;
  if (apart <= CLOCK_MS + first.clock.errorMs + last.clock.errorMs) return [];
  return [
    {
      about: 'clocks',
      what: `the clock of ${last.label} is ${apart} ms ahead of that of ${first.label}: a full resync keeps the value that is newer by these clocks`,
      todo: 'run NTP or chrony on all hosts',
    },
  ];
}

const names = (nodes: readonly NodeFacts[]): string => nodes.map(({ label }) => label).join(' and ');

function size(bytes: number): string {
  if (bytes >= MIB) return `${(bytes / MIB).toFixed(bytes % MIB === 0 ? 0 : 1)} MiB`;
  return bytes >= 1024 ? `${(bytes / 1024).toFixed(1)} KiB` : `${bytes.toFixed(0)} B`;
}
