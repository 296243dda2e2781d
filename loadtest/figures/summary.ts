/** Computes the figures of a report from the samples. Pure. */
import type { Histogram } from 'hdr-histogram-js';
import { counterOf } from '../workload/command.js';
import { contentionOf } from './contention.js';
import { merge, percentile } from './histogram.js';
import { median } from './median.js';
import { LEAST_ROUNDS, paired, type Paired } from './paired.js';
import {
  samePoint,
  tallyHolds,
  type CounterCheck,
  type Point,
  type Results,
  type Sample,
  type SideFacts,
} from './results.js';

/** With this number of rounds or more, the best and the worst are dropped. */
export const DROP_FROM = 5;

export interface Row {
  readonly side: SideFacts;
  readonly point: Point;
  /** Rounds that are in the figures; and those that were dropped. */
  readonly kept: readonly Sample[];
  readonly dropped: readonly Sample[];
  /** Commands per second: median, lowest and highest of the kept rounds. */
  readonly throughput: { readonly median: number; readonly low: number; readonly high: number };
  /** The latencies of all commands of the kept rounds, in one histogram; null without one. */
  readonly histogram: Histogram | null;
  /** Milliseconds; null without a histogram, because percentiles of rounds cannot be merged. */
  readonly latency: { readonly p50: number; readonly p99: number; readonly p999: number } | null;
  /** CPU: number of cores that each process used, and seconds per million commands; medians. */
  readonly work: readonly { readonly name: string; readonly cores: number; readonly perMillion: number }[];
  /** Share of its threads that the load generator used; 1: all of them; null if unknown. */
  readonly generator: number | null;
}

export const MEASURES = ['throughput', 'p50', 'p99', 'p999'] as const;
export type Measure = (typeof MEASURES)[number];

/** `side` compared with the source. */
export interface Comparison {
  readonly side: SideFacts;
  readonly point: Point;
  readonly of: Readonly<Record<Measure, Paired | null>>;
}

export type Answer = 'faster' | 'slower' | 'no difference shown' | 'too few rounds' | 'inconclusive';

export interface Summary {
  readonly rows: readonly Row[];
  readonly comparisons: readonly Comparison[];
  readonly warnings: readonly string[];
  /** Why the machine was too busy for an answer; empty if it was not. */
  readonly contention: readonly string[];
}

export function summarise(results: Results): Summary {
  const rows = results.points
    .flatMap((point) => results.sides.map((side) => rowOf(results, side, point)))
    .filter((row) => row !== null);
  const base = results.sides.find(({ role }) => role === 'source');
  const others = base === undefined ? [] : results.sides.filter((side) => side !== base);
  const comparisons = results.points.flatMap((point) => others.map((side) => compare(results, side, base!, point)));
  return { rows, comparisons, warnings: warningsOf(results, rows), contention: contentionOf(results) };
}

export const perSecond = ({ operations, durationMs }: Sample): number => (operations / durationMs) * 1000;

function rowOf({ samples, profile, soak }: Results, side: SideFacts, point: Point): Row | null {
  const own = samples.filter((sample) => sample.side === side.id && samePoint(sample.point, point));
  if (own.length === 0) return null;
  // A soak looks for the worst values, so none are dropped.
  const { kept, dropped } = soak === undefined ? dropExtremes(own) : { kept: own, dropped: [] };
  const speeds = kept.map(perSecond);
  const histogram = merge(kept.flatMap((sample) => sample.histogram ?? []));
  const latency = histogram && {
    p50: percentile(histogram, 50),
    p99: percentile(histogram, 99),
    p999: percentile(histogram, 99.9),
  };
  const throughput = { median: median(speeds)!, low: Math.min(...speeds), high: Math.max(...speeds) };
  const shares = kept.flatMap(({ cpu, durationMs, hosts }) =>
    cpu === null ? [] : cpu / (durationMs / 1000) / profile.threads / hosts,
  );
  return { side, point, kept, dropped, throughput, histogram, latency, work: workOf(kept), generator: median(shares) };
}

/** Leaves out the samples with the highest and the lowest throughput. */
export function dropExtremes(samples: readonly Sample[]): { kept: Sample[]; dropped: Sample[] } {
  if (samples.length < DROP_FROM) return { kept: [...samples], dropped: [] };
  const sorted = [...samples].sort((a, b) => perSecond(a) - perSecond(b));
  const dropped = [sorted[0], sorted[sorted.length - 1]];
  return { kept: samples.filter((sample) => !dropped.includes(sample)), dropped };
}

function workOf(kept: readonly Sample[]): Row['work'] {
  return Object.keys(kept[0].work).map((name) => {
    const cores = kept.map(({ work, durationMs }) => (work[name] / durationMs) * 1000);
    const perMillion = kept.map(({ work, operations }) => (work[name] / operations) * 1e6);
    return { name, cores: median(cores)!, perMillion: median(perMillion)! };
  });
}

/** Percentiles come from each round's own histogram: the ratio of a round is one observation. */
function compare({ samples }: Results, side: SideFacts, base: SideFacts, point: Point): Comparison {
  const values = (of: SideFacts, measure: Measure): Map<number, number> =>
    new Map(
      samples
        .filter((s) => s.side === of.id && samePoint(s.point, point))
        .flatMap((s) => {
          const value = valueOf(s, measure);
          return value === null ? [] : [[s.round, value] as const];
        }),
    );
  const pair = (measure: Measure): Paired | null => paired(values(side, measure), values(base, measure));
  return {
    side,
    point,
    of: { throughput: pair('throughput'), p50: pair('p50'), p99: pair('p99'), p999: pair('p999') },
  };
}

function valueOf(sample: Sample, measure: Measure): number | null {
  if (measure === 'throughput') return perSecond(sample);
  if (sample.histogram !== null)
    return percentile(merge([sample.histogram])!, { p50: 50, p99: 99, p999: 99.9 }[measure]);
  return measure === 'p999' || sample.percentiles === null ? null : sample.percentiles[measure];
}

/** The answer for a throughput (more is better) or a latency (less is better). @param contention as in `Summary` */
export function answerOf(pair: Paired, measure: Measure, contention: readonly string[]): Answer {
  if (contention.length > 0) return 'inconclusive';
  if (pair.interval === null) return 'too few rounds';
  const [low, high] = pair.interval;
  if (low <= 1 && high >= 1) return 'no difference shown';
  return low > 1 === (measure === 'throughput') ? 'faster' : 'slower';
}

/** If the generator uses this share of its threads, the generator itself may be what is measured. */
const BUSY = 0.9;

function warningsOf(
  { counters, sides, samples, rounds, loopback, driver, profile, soak }: Results,
  rows: readonly Row[],
): string[] {
  const busy = rows
    .filter(({ generator }) => generator !== null && generator > BUSY)
    .map(({ side, point }) => `${side.id} at ${point.connections} × ${point.pipeline}`);
  const missing = sides.filter(({ id }) => samples.every((sample) => sample.side !== id));
  const counts = soak === undefined && profile.commands.some(({ command }) => counterOf(command) !== null);
  const unchecked = counts ? sides.filter(({ id }) => counters.every(({ side }) => side !== id)) : [];
  const doubtful = samples.filter((sample) => sample.doubtful).length;
  return [
    ...counters.filter((check) => !countersHold(check)).map(tellCounter),
    ...missing.map(({ id }) => `${id} was not measured`),
    ...unchecked.map(
      ({ id }) => `the counters of ${id} were not added up: give the servers behind it with --source and --target`,
    ),
    ...(doubtful > 0
      ? [
          `in ${doubtful} of ${samples.length} measurements the load generator’s clock was off by more than a tenth: it had too little processor time, and the speeds are not to be trusted`,
        ]
      : []),
    ...(busy.length > 0
      ? [
          `the load generator used more than ${BUSY * 100} % of its threads (${busy.join('; ')}): its own speed may be what was measured. Give the profile more threads, or take several load hosts`,
        ]
      : []),
    ...(loopback
      ? [
          'load and servers shared one machine and took the processor from each other: the figures are no capacity, only their ratios mean anything',
        ]
      : []),
    ...(rounds < LEAST_ROUNDS && sides.length > 1 && soak === undefined
      ? [
          `${rounds} ${rounds === 1 ? 'round' : 'rounds'} cannot carry a statement with 95 % confidence: take at least ${LEAST_ROUNDS}`,
        ]
      : []),
    ...(driver.startsWith('redis-benchmark')
      ? [
          'measured with redis-benchmark: one command instead of the profile’s mix, uniform keys, no histograms and no seconds',
        ]
      : []),
  ];
}

export const countersHold = ({ expected, found }: CounterCheck): boolean => expected === found;

/** 0: measured. 1: counters are wrong. 3: a side was not measured, or its counters were not checked. */
export function exitCodeOf({ counters, sides, samples, profile, soak }: Results): 0 | 1 | 3 {
  if (!counters.every(countersHold) || soak?.tallies.every(tallyHolds) === false) return 1;
  const measured = sides.every(({ id }) => samples.some((sample) => sample.side === id));
  if (!measured || counters.some(({ expected }) => expected === 0)) return 3;
  if (soak !== undefined) return soak.tallies.some(({ acknowledged }) => acknowledged > 0) ? 0 : 3;
  const counts = profile.commands.some(({ command }) => counterOf(command) !== null);
  return counts && sides.some(({ id }) => counters.every(({ side }) => side !== id)) ? 3 : 0;
}

export const tellCounter = (check: CounterCheck): string => {
  const { side, server, expected, found } = check;
  const where = side === server ? side : `${side}, on the ${server}`;
  return countersHold(check)
    ? `${where}: all counters together hold ${number(found)}, as many as were acknowledged`
    : `${where}: the counters together hold ${number(found)}, but ${number(expected)} increments were acknowledged (${found > expected ? 'too many' : 'lost'}: ${number(Math.abs(expected - found))})`;
};

const number = (value: number): string => value.toLocaleString('en-US');
