/** The arithmetic of the bench: medians, ratios and their spread. Pure. */
import { median } from '../../figures/median.js';
import type { PeerName } from './peers.js';
import { samePoint, type Point } from './point.js';
import type { Spent } from './threads.js';

/** One measurement of one peer. CPU is in seconds per million operations, until the mirror was quiet. */
export interface Sample extends Point {
  readonly round: number;
  readonly peer: PeerName;
  readonly operations: number;
  readonly opsPerSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** CPU of the whole process; for `direct`, of Redis. */
  readonly cpu: number;
  /** CPU of the sequencing thread: the shadow proxy's main thread, or another peer's busiest thread. */
  readonly threadCpu: number;
  /** CPU of every thread that ran: the sequencing thread first, then the busiest. */
  readonly threads: readonly Spent[];
  readonly loadCpu: number;
  readonly sourceCpu: number;
  readonly sourceThreadCpu: number;
  readonly targetCpu: number;
  readonly targetThreadCpu: number;
  /** Bytes after the load, and the highest during it; null for a peer without a process. */
  readonly rss: number | null;
  readonly peakRss: number | null;
  /** Commands that reached the target, of those that reached the source (1 = all). */
  readonly mirrored: number;
  /** Milliseconds from the load's end until the mirror was quiet. */
  readonly mirrorLagMs: number;
  /** Whether both servers held the same values afterwards; null for a peer that does not mirror. */
  readonly equal: boolean | null;
}

const MEASURES = [
  'opsPerSecond',
  'p50',
  'p99',
  'cpu',
  'threadCpu',
  'loadCpu',
  'sourceCpu',
  'sourceThreadCpu',
  'targetCpu',
  'targetThreadCpu',
  'rss',
  'peakRss',
  'mirrored',
  'mirrorLagMs',
] as const;
type Measure = (typeof MEASURES)[number];

/** The medians over the rounds of one peer at one point. */
export interface Row extends Point, Record<Measure, number | null> {
  readonly peer: PeerName;
  /** The peer's threads as in a sample: the n-th is the median of each round's n-th. */
  readonly threads: readonly number[];
  readonly ratios: Readonly<Partial<Record<Comparison, Spread>>>;
  /** False when after some round the two servers held different values; null for a peer that does not mirror. */
  readonly equal: boolean | null;
}

/** What of a peer is divided by the same of another one, in the same round. */
export const COMPARISONS = {
  'thread/redis': { measure: 'threadCpu', to: 'direct', title: 'sequencing thread / Redis' },
  'cpu/envoy': { measure: 'cpu', to: 'envoy', title: 'CPU / Envoy' },
  'ops/envoy': { measure: 'opsPerSecond', to: 'envoy', title: 'throughput / Envoy' },
  'ops/twemproxy': { measure: 'opsPerSecond', to: 'twemproxy', title: 'throughput / twemproxy' },
  'p99/redis': { measure: 'p99', to: 'direct', title: 'p99 / Redis' },
} as const satisfies Record<string, { measure: Measure; to: PeerName; title: string }>;
export type Comparison = keyof typeof COMPARISONS;
export const COMPARISON_NAMES = Object.keys(COMPARISONS) as Comparison[];

/** Latency says something only at a rate that all keep, and nothing else does there. */
export const comparable = (comparison: Comparison, { rate }: Pick<Point, 'rate'>): boolean =>
  (comparison === 'p99/redis') === (rate !== null);

/** Over the rounds. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export function spreadOf(values: readonly number[]): Spread | null {
  const middle = median(values);
  return middle === null ? null : { median: middle, min: Math.min(...values), max: Math.max(...values) };
}

/** Null when the two did not both run in any round, or one at another point only. */
export function ratioOf(
  samples: readonly Sample[],
  peer: PeerName,
  comparison: Comparison,
  point: Point,
): Spread | null {
  const { measure, to } = COMPARISONS[comparison];
  const of = (name: PeerName): Map<number, number> =>
    new Map(samples.filter((s) => s.peer === name && samePoint(s, point)).map((s) => [s.round, s[measure]]));
  const [own, other] = [of(peer), of(to)];
  return spreadOf([...own].filter(([round]) => other.has(round)).map(([round, value]) => value / other.get(round)!));
}

/** Commands a second beside what takes so many seconds of CPU for a million of them, on all cores. */
export const mostOpsBeside = (cpu: number, cores: number): number => (cores * 1e6) / cpu;

/**
 * The most that any peer in the place of `peer` could reach of the throughput of the one that it is compared with: one
 * that takes no CPU time itself, while the load and both servers take what they took, on all cores. By the median of
 * the rounds; null for other ratios than that of a throughput.
 */
export function reachOf(
  samples: readonly Sample[],
  peer: PeerName,
  comparison: Comparison,
  point: Point,
  cores: number,
): number | null {
  const { measure, to } = COMPARISONS[comparison];
  if (measure !== 'opsPerSecond') return null;
  const others = samples
    .filter((s) => s.peer === peer && samePoint(s, point))
    .map(({ loadCpu, sourceCpu, targetCpu }) => loadCpu + sourceCpu + targetCpu);
  const [rest, reached] = [median(others), rowOf(samples, to, point).opsPerSecond];
  return rest === null || reached === null ? null : mostOpsBeside(rest, cores) / reached;
}

export function rowOf(samples: readonly Sample[], peer: PeerName, point: Point): Row {
  const own = samples.filter((s) => s.peer === peer && samePoint(s, point));
  const medians = MEASURES.map((name) => [name, median(own.map((s) => s[name]).filter((v) => v !== null))] as const);
  const equal = own.some((s) => s.equal === null) ? null : own.every((s) => s.equal);
  return {
    ...{ peer, pipeline: point.pipeline, clients: point.clients, rate: point.rate, equal },
    ...(Object.fromEntries(medians) as Record<Measure, number | null>),
    threads: threadsOf(own),
    ratios: Object.fromEntries(
      COMPARISON_NAMES.filter((name) => comparable(name, point) && COMPARISONS[name].to !== peer)
        .map((name) => [name, ratioOf(samples, peer, name, point)] as const)
        .filter(([, ratio]) => ratio !== null),
    ),
  };
}

function threadsOf(samples: readonly Sample[]): number[] {
  const most = Math.max(0, ...samples.map(({ threads }) => threads.length));
  return Array.from({ length: most }, (_, i) => median(samples.map(({ threads }) => threads[i]?.cpu ?? 0))!);
}

/** Less than this of the wanted rate was not kept: the latencies are those of another load. Connecting takes a part. */
const KEPT = 0.97;

export const keptRate = ({ opsPerSecond, rate }: Pick<Row, 'opsPerSecond' | 'rate'>): boolean =>
  rate === null || (opsPerSecond ?? 0) >= KEPT * rate;
