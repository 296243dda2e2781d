/** The arithmetic of the bench: medians, ratios and their spread. Pure. */
import { median } from '../../figures/median.js';
import type { PeerName } from './peers.js';
import { samePoint, type Point } from './point.js';
import type { Spent } from './threads.js';

/** One measurement of one peer. CPU is in seconds per million operations, measured until the mirror was quiet. */
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
  /** Resident bytes after the load, and the maximum during it; null for a peer without a process. */
  readonly rss: number | null;
  readonly peakRss: number | null;
  /** Share of the source's commands that reached the target (1: all). */
  readonly mirrored: number;
  /** Milliseconds from the end of the load until the mirror was quiet. */
  readonly mirrorLagMs: number;
  /** Whether both servers had the same values afterwards; null for a peer that does not mirror. */
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
  /** False if the two servers had different values after some round; null for a peer that does not mirror. */
  readonly equal: boolean | null;
}

/** Figures of a peer that are divided by the same figures of another peer, in the same round. */
export const COMPARISONS = {
  'thread/redis': { measure: 'threadCpu', to: 'direct', title: 'sequencing thread / Redis' },
  'cpu/envoy': { measure: 'cpu', to: 'envoy', title: 'CPU / Envoy' },
  'ops/envoy': { measure: 'opsPerSecond', to: 'envoy', title: 'throughput / Envoy' },
  'ops/twemproxy': { measure: 'opsPerSecond', to: 'twemproxy', title: 'throughput / twemproxy' },
  'p99/redis': { measure: 'p99', to: 'direct', title: 'p99 / Redis' },
} as const satisfies Record<string, { measure: Measure; to: PeerName; title: string }>;
export type Comparison = keyof typeof COMPARISONS;
export const COMPARISON_NAMES = Object.keys(COMPARISONS) as Comparison[];

/** Latency is comparable only at a rate that all peers keep, and nothing else is comparable there. */
export const comparable = (comparison: Comparison, { rate }: Pick<Point, 'rate'>): boolean =>
  (comparison === 'p99/redis') === (rate !== null);

/** The spread over the rounds. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export function spreadOf(values: readonly number[]): Spread | null {
  const middle = median(values);
  return middle === null ? null : { median: middle, min: Math.min(...values), max: Math.max(...values) };
}

/** Null if the two peers were never measured in the same round at this point. */
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

/** Maximum commands per second on all cores, if everything else takes `cpu` seconds for a million of them. */
export const mostOpsBeside = (cpu: number, cores: number): number => (cores * 1e6) / cpu;

/**
 * The maximum ratio that any peer could reach in the place of `peer`: a peer that takes no CPU time itself, while the
 * load and both servers take the measured time on all cores. Median of the rounds; null for ratios that are not of a
 * throughput.
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

/**
 * If less than this share of the requested rate was reached, the latencies are those of another load. Connecting takes
 * some of the time.
 */
const KEPT = 0.97;

export const keptRate = ({ opsPerSecond, rate }: Pick<Row, 'opsPerSecond' | 'rate'>): boolean =>
  rate === null || (opsPerSecond ?? 0) >= KEPT * rate;
