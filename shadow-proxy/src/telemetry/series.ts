/** A time series of a shard's figures over the last hours: a point every few seconds, in memory of a fixed size. */
import type { LatencySnapshot, ShardSnapshot } from './snapshot.js';
import { sum } from './snapshot.js';

/**
 * Latencies in µs are those of the replies since the point before; rates are per second; all other values are present
 * ones.
 */
export const COLUMNS = [
  'sourceP50',
  'sourceP99',
  'sourceP999',
  'sourceReplies',
  'targetP50',
  'targetP99',
  'targetP999',
  'targetReplies',
  'operations',
  'compared',
  'mismatches',
  'lagMs',
  'queuedBytes',
  'suspects',
  'clients',
] as const;
export type Column = (typeof COLUMNS)[number];

/** `at` is in ms since 1970, oldest first; a value is null if nothing was measured. */
export interface SeriesSnapshot {
  readonly at: readonly number[];
  readonly columns: Readonly<Record<Column, readonly (number | null)[]>>;
}

export type Latest = Readonly<Record<'source' | 'target', LatencySnapshot>>;

/** Milliseconds between two points. */
export const SERIES_STEP_MS = 5_000;
/** Points of four hours. */
const MAX_POINTS = 2_880;

export class Series {
  readonly #at: Float64Array;
  readonly #columns: Readonly<Record<Column, Float64Array>>;
  #count = 0;
  #before: ShardSnapshot | null = null;

  constructor(private readonly points = MAX_POINTS) {
    this.#at = new Float64Array(points);
    this.#columns = Object.fromEntries(COLUMNS.map((name) => [name, new Float64Array(points)])) as Record<
      Column,
      Float64Array
    >;
  }

  /** @param latencies those of the replies since the point before */
  add(at: number, snapshot: ShardSnapshot, latencies: Latest): void {
    const index = this.#count++ % this.points;
    this.#at[index] = at;
    const point = pointOf(snapshot, this.#before, latencies);
    for (const name of COLUMNS) this.#columns[name][index] = point[name] ?? NaN;
    this.#before = snapshot;
  }

  /** The points after that time. */
  since(moment: number): SeriesSnapshot {
    const first = Math.max(0, this.#count - this.points);
    const indexes: number[] = [];
    for (let point = this.#count - 1; point >= first && this.#at[point % this.points] > moment; point--)
      indexes.push(point % this.points);
    indexes.reverse();
    const values = (name: Column): (number | null)[] => indexes.map((index) => toDigits(this.#columns[name][index]));
    return {
      at: indexes.map((index) => this.#at[index]),
      columns: Object.fromEntries(COLUMNS.map((name) => [name, values(name)])) as Record<Column, (number | null)[]>,
    };
  }
}

function pointOf(
  now: ShardSnapshot,
  before: ShardSnapshot | null,
  { source, target }: Latest,
): Readonly<Record<Column, number | null>> {
  const seconds = (now.uptimeMs - (before?.uptimeMs ?? now.uptimeMs)) / 1000;
  const rate = (count: (snapshot: ShardSnapshot) => number): number | null =>
    before === null || seconds <= 0 ? null : Math.max(0, count(now) - count(before)) / seconds;
  const of = (latency: LatencySnapshot, at: 'p50' | 'p99' | 'p999'): number | null =>
    latency.count === 0 ? null : latency[at];
  return {
    sourceP50: of(source, 'p50'),
    sourceP99: of(source, 'p99'),
    sourceP999: of(source, 'p999'),
    sourceReplies: source.count,
    targetP50: of(target, 'p50'),
    targetP99: of(target, 'p99'),
    targetP999: of(target, 'p999'),
    targetReplies: target.count,
    operations: rate(({ operations }) => operations),
    compared: rate(({ compared }) => compared),
    mismatches: rate(({ mismatches }) => sum(mismatches)),
    lagMs: now.mirror.lagMs,
    queuedBytes: now.mirror.queuedBytes,
    suspects: now.suspects.total,
    clients: now.clients,
  };
}

/** Three digits are enough for a plot, and short to transfer; counts are not rounded. */
const toDigits = (value: number): number | null =>
  Number.isNaN(value) ? null : Number.isInteger(value) ? value : Number(value.toPrecision(3));
