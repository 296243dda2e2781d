/** The contents of a report's plots. Pure. */
import type { PlotSeries, PlotSpec } from '../../shadow-proxy/src/html/plot.js';
import { curve } from '../figures/histogram.js';
import { samePoint, type Point, type Results } from '../figures/results.js';
import type { Summary } from '../figures/summary.js';

/** Source 1, target 2, as in all pages of the kit; then the other sides. */
function colour({ sides }: Results, id: string): number {
  const known = { source: 1, target: 2, proxy: 3 }[id];
  return known ?? 2 + (sides.filter(({ role }) => role === 'target').findIndex((side) => side.id === id) % 5);
}

/** A plot over time, with gaps where the load was interrupted, and between slices. */
export function soakPlot({ samples, sides: [side] }: Results): PlotSpec {
  const seconds = new Map(
    samples.flatMap(({ series }) => series.map(({ at, operations }) => [at, operations] as const)),
  );
  const [from, to] = [Math.min(...seconds.keys()), Math.max(...seconds.keys())];
  const x = Array.from({ length: to - from + 1 }, (_, i) => from + i);
  return {
    kind: 'time',
    x,
    series: [{ label: side.id, values: x.map((at) => seconds.get(at) ?? null) }],
    unit: 'commands/s',
  };
}

/** The seconds of a side's rounds, joined without the time in between, so that the sides are drawn over each other. */
export function throughputPlot(results: Results, point: Point): PlotSpec | null {
  const samples = results.samples.filter((sample) => samePoint(sample.point, point));
  const rounds = [...new Set(samples.map(({ round }) => round))].sort((a, b) => a - b);
  const lengths = rounds.map((round) =>
    Math.max(...samples.filter((sample) => sample.round === round).map(({ series }) => series.length)),
  );
  if (Math.max(0, ...lengths) === 0) return null;
  const series = results.sides.map(({ id }): PlotSeries => {
    const seconds = (round: number): number[] =>
      samples
        .find((sample) => sample.side === id && sample.round === round)
        ?.series.map(({ operations }) => operations) ?? [];
    // Leave a gap between rounds.
    return {
      label: id,
      color: colour(results, id),
      values: rounds.flatMap((round, i) => [...padded(seconds(round), lengths[i]), null]),
    };
  });
  return { kind: 'number', x: series[0].values.map((_, i) => i), series, unit: 'commands/s' };
}

const padded = (values: readonly (number | null)[], length: number): (number | null)[] =>
  Array.from({ length }, (_, i) => values[i] ?? null);

export function latencyPlot(results: Results, { rows }: Summary, point: Point): PlotSpec | null {
  const lines = rows
    .filter((row) => samePoint(row.point, point))
    .flatMap(({ side, histogram }) => (histogram === null ? [] : [{ id: side.id, points: curve(histogram) }]));
  if (lines.length === 0) return null;
  const longest = lines.reduce((a, b) => (b.points.length > a.points.length ? b : a)).points;
  const series = lines.map(({ id, points }): PlotSeries => ({
    label: id,
    color: colour(results, id),
    values: padded(
      points.map(({ ms }) => ms),
      longest.length,
    ),
  }));
  return { kind: 'percentiles', x: longest.map(({ percent }) => percent / 100), series, unit: 'ms', log: true };
}

/** Null if there is nothing to divide. */
export function ratioPlot(results: Results, { comparisons }: Summary, point: Point): PlotSpec | null {
  const own = comparisons.filter(
    (comparison) => samePoint(comparison.point, point) && (comparison.of.throughput?.ratios.length ?? 0) > 1,
  );
  if (own.length === 0) return null;
  const length = Math.max(...own.map(({ of }) => of.throughput!.ratios.length));
  const series = own.map(({ side, of }): PlotSeries => ({
    label: `${side.id} / source`,
    color: colour(results, side.id),
    values: padded(of.throughput!.ratios, length),
  }));
  const one = { label: 'no difference', color: 6, dashed: true, values: Array<number>(length).fill(1) };
  return { kind: 'number', x: Array.from({ length }, (_, i) => i + 1), series: [...series, one], unit: 'times' };
}

/** The plot of a sweep, whose points are numbered in order. */
export function pointsPlot(results: Results, { rows }: Summary): PlotSpec {
  const series = results.sides.map(({ id }): PlotSeries => ({
    label: id,
    color: colour(results, id),
    values: results.points.map(
      (point) => rows.find((row) => row.side.id === id && samePoint(row.point, point))?.throughput.median ?? null,
    ),
  }));
  return { kind: 'number', x: results.points.map((_, i) => i + 1), series, unit: 'commands/s' };
}
