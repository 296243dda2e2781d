/**
 * Whether a workload that is a counter is safe on the present nodes. Pure decisions from the plan, the facts of the
 * live nodes, and what the proxies have observed.
 *
 * Room: guard: whether a topology is safe for counters: pure decisions over facts read from the nodes.
 * Called by: stages, cli.
 * Calls: text, io, resp, plan, command, upstream.
 */
import { countingKind } from '../command/counting.js';
import { LOSES, type CountingKind } from '../command/counting-kind.js';
import { countsByClass } from '../plan/counters.js';
import type { Topology, WorkloadPlan } from '../plan/plan.js';
import { number } from '../text/figures.js';
import { acceptsWrites, sharesIntegers, type Cluster, type NodeFacts, type Writer } from './node-facts.js';

export type Safety = 'safe' | 'unsafe' | 'unknown';

export interface Verdict {
  readonly workload: string;
  readonly class: string;
  readonly verdict: Safety;
  readonly why: string;
  /** Which writes are lost, and when; null if none are. */
  readonly lost: string | null;
  /** What to do; null if nothing is needed. */
  readonly todo: string | null;
}

/** Observations of one kind of counting command. */
export interface CountingObservation {
  readonly workload: string;
  readonly kind: CountingKind;
  /** Prefix of the keys, such as `rl:user:*`; null if no key was recorded. */
  readonly prefix: string | null;
  /** Number of commands by name, since the proxy started. */
  readonly commands: Readonly<Record<string, number>>;
  readonly perSecond: number;
}

/** What the proxies have observed; null if they were not asked, or did not answer. */
export interface Sightings {
  readonly counting: readonly CountingObservation[];
  /** Writes through a proxy of another region than the workload's writer, by workload. */
  readonly secondWriter: Readonly<Record<string, number>>;
}

export interface Question {
  readonly topology: Topology;
  readonly workload: Pick<WorkloadPlan, 'name' | 'class' | 'writer' | 'counterLayout'>;
  readonly clusters: readonly Cluster[];
  readonly sightings: Sightings | null;
}

type Finding = Pick<Verdict, 'verdict' | 'why' | 'lost' | 'todo'>;

const WORST: readonly Safety[] = ['unsafe', 'unknown', 'safe'];

/** Null for a workload whose class is no counter, and which was not used as one. */
export function judgeWorkload(question: Question): Verdict | null {
  const { workload, clusters } = question;
  const seen = seenOf(question);
  if (!countsByClass(workload.class) && seen.length === 0) return null;
  const findings = clusters.map((cluster) => judgeCluster(question, cluster, seen));
  const worst =
    WORST.flatMap((verdict) => findings.filter((finding) => finding.verdict === verdict))[0] ??
    unknown('no node could be queried', 'check that the plan’s targets answer');
  return { workload: workload.name, class: workload.class, ...worst };
}

const seenOf = ({ workload, sightings }: Question): readonly CountingObservation[] =>
  (sightings?.counting ?? []).filter((each) => each.workload === workload.name);

function judgeCluster(question: Question, cluster: Cluster, seen: readonly CountingObservation[]): Finding {
  const { topology, workload } = question;
  const writable = cluster.nodes.filter(acceptsWrites);
  const [unread] = cluster.unread;
  if (writable.length < 2) {
    if (unread !== undefined)
      return unknown(
        `${unread.label} cannot be queried (${unread.why})`,
        'check that it answers, and accepts the same user as the target',
      );
    if (writable.length === 0) return unknown('no node accepts writes', 'check which node is the master');
    if (topology.mode === 'active-active')
      return unknown(
        `the plan says active-active, but ${writable[0].label} has no peer that accepts writes`,
        'set up replication between the regions’ nodes, then check again',
      );
    const counted = countsByClass(workload.class)
      ? ''
      : `; keys are incremented, although the class is ${workload.class}: ${tell(seen)}`;
    return safe(`one node accepts writes: ${writable[0].label} (${writable[0].role})${counted}`);
  }
  const both = `${writable.map(({ label }) => label).join(' and ')} accept writes`;
  if (workload.counterLayout !== 'plain') return judgeLayout(question, cluster, writable, seen);
  if (workload.writer !== null) return judgePinned(question, cluster, writable);
  const where = topology.mode === 'active-active' ? both : `the plan says primary-replica, but ${both}`;
  return unsafe(seen.length === 0 ? where : `${where}; seen: ${tell(seen)}`, losses(seen), todoFor(question, seen));
}

/** Judges a conflict-free layout: the observations must match it, and KeyDB must be configured as tested. */
function judgeLayout(
  { workload: { name, counterLayout }, sightings }: Question,
  { nodes }: Cluster,
  writable: readonly NodeFacts[],
  seen: readonly CountingObservation[],
): Finding {
  const plainKeys = sightings?.secondWriter[name] ?? 0;
  if (counterLayout === 'per-region' && plainKeys > 0) {
    return unsafe(
      `counterLayout is per-region, but the proxy met plain keys of it on the target, ${number(plainKeys)} times in its samples: a client bypasses the proxy, or the keys are left from before`,
      LOSES.increment,
      'point these clients at a proxy, and delete the plain keys',
    );
  }
  const plain = seen.filter(({ kind }) => kind === 'increment' || kind === 'float' || kind === 'rewrite');
  if (counterLayout === 'library' && plain.length > 0) {
    return unsafe(
      `counterLayout is library, but plain counters came through the proxy: ${tell(plain)}`,
      losses(plain),
      'have these clients use the counters package, too',
    );
  }
  if (writable.length > 2)
    return unknown(
      `conflict-free layout (${counterLayout}), but ${writable.length} nodes accept writes: more than two were not tested through restarts`,
      'keep to two active nodes, with replicas behind them',
    );
  const [beside] = counterLayout === 'per-region' ? besideAt(nodes) : [];
  if (beside !== undefined)
    return unknown(
      `conflict-free layout (per-region), but ${beside}, bypassing the proxy; the node does not show which keys`,
      'point that client at a proxy, or make sure that it writes other keys',
    );
  return safe(`conflict-free layout (${counterLayout})`);
}

/** Judges a workload with one writer: no other client may write, and KeyDB must keep a time for each key. */
function judgePinned(
  { workload: { name, writer }, sightings }: Question,
  { shards, unread }: Cluster,
  writable: readonly NodeFacts[],
): Finding {
  const writes = sightings?.secondWriter[name] ?? 0;
  if (writes > 0)
    return unsafe(
      `its writer is ${writer}, but ${number(writes)} writes came through a proxy of another region`,
      LOSES.increment,
      `point these clients at the proxy of ${writer}; secondWriter: refuse keeps them out`,
    );
  if (writable.length > 2)
    return unsafe(
      `its writer is ${writer}, but ${writable.length} nodes accept writes: after a full resync of one link between them, a node was seen to lack increments of a single writer`,
      'increments of a single writer, permanently, on one of the nodes that it does not write to',
      'keep to two active nodes, with read-only replicas behind them',
    );
  const shared = writable.filter(sharesIntegers);
  if (shared.length > 0) {
    return unsafe(
      `its writer is ${writer}, but ${shared.map(({ label }) => label).join(' and ')} keep one modification time for all keys with the same number from 0 to 9999 (maxmemory-policy ${shared[0].policy}, ${shared[0].maxmemory === 0 ? 'no maxmemory' : 'with maxmemory'})`,
      'in a full resync the newest increments of a single writer: an old number wins if any other key was given that number later',
      'set maxmemory above the highest use, and an LRU or LFU policy, such as volatile-lru, on each node',
    );
  }
  // If the plan does not show which node is the writer's, none is.
  const home = shards.find(({ region }) => region === writer)?.runId ?? null;
  const others = writable.filter(({ runId }) => runId !== home);
  const silent = others.find(({ writers }) => writers === null);
  if (silent !== undefined)
    return unknown(
      `its writer is ${writer}, but ${silent.label} does not list its clients`,
      'allow CLIENT LIST to the kit’s user',
    );
  const [beside] = besideAt(others);
  if (beside !== undefined)
    return unknown(
      `its writer is ${writer}, but ${beside}, bypassing the proxy; the node does not show which keys`,
      'point that client at the proxy, or make sure that it writes other keys',
    );
  if (unread.length > 0)
    return unknown(
      `${unread[0].label} cannot be queried (${unread[0].why})`,
      'check that it answers, and accepts the same user as the target',
    );
  return safe(`one writer: ${writer}`);
}

/** Prefix of the names of the kit's own connections. */
const KIT = 'shadow-proxy';
const besideAt = (nodes: readonly NodeFacts[]): string[] =>
  nodes.flatMap(({ label, writers }) =>
    (writers ?? []).filter(isBeside).map(({ who, command }) => `${who} writes at ${label} (${command})`),
  );
const isBeside = ({ who, command }: Writer): boolean => !who.startsWith(KIT) && countingKind(command) !== null;

function losses(seen: readonly CountingObservation[]): string {
  const kinds = new Set(seen.map(({ kind }) => kind));
  if (kinds.size === 0) kinds.add('increment');
  return [...kinds].map((kind) => `${kind}: ${LOSES[kind]}`).join('; ');
}

const SHOWN = 4;

/** For example `rl:user:* incr 1,200 (20/s)`; the most frequent first. */
export function tell(seen: readonly CountingObservation[]): string {
  const total = ({ commands }: CountingObservation): number => Object.values(commands).reduce((a, b) => a + b, 0);
  const sorted = [...seen].sort((a, b) => total(b) - total(a));
  const shown = sorted.slice(0, SHOWN).map(({ prefix, commands, perSecond }) => {
    const names = Object.entries(commands).map(([name, calls]) => `${name} ${number(calls)}`);
    return `${prefix ?? 'keys not sampled'} ${names.join(', ')}${perSecond >= 0.1 ? ` (${perSecond >= 10 ? number(Math.round(perSecond)) : perSecond.toFixed(1)}/s)` : ''}`;
  });
  return `${shown.join(', ')}${sorted.length > SHOWN ? ` and ${sorted.length - SHOWN} more` : ''}`;
}

/** Kinds for which only the sum matters, so that a conflict-free layout would be possible. */
const SUMS: ReadonlySet<CountingKind> = new Set(['increment', 'window', 'rewrite', 'script']);

function todoFor({ topology, workload }: Question, seen: readonly CountingObservation[]): string {
  const one = `give it one writer (writer: ${topology.regions[0] ?? 'a region'})`;
  const layout = 'or class counter and a conflict-free layout (counterLayout: library or per-region)';
  const plan = workload.class !== 'leaderboard' && seen.every(({ kind }) => SUMS.has(kind)) ? `${one}, ${layout}` : one;
  return topology.mode === 'active-active'
    ? plan
    : `make all nodes but one read-only replicas (active-replica no), or set mode active-active in the plan and ${plan}`;
}

const safe = (why: string): Finding => ({ verdict: 'safe', why, lost: null, todo: null });
const unsafe = (why: string, lost: string, todo: string): Finding => ({ verdict: 'unsafe', why, lost, todo });
const unknown = (why: string, todo: string): Finding => ({ verdict: 'unknown', why, lost: null, todo });
