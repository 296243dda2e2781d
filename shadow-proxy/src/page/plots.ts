/** The contents of a shard's plots. Pure. */
import type { PlotMark, PlotSeries, PlotSpec } from '../html/plot.js';
import { formatPoint, type StagePoint } from '../route/stage.js';
import type { HistoryEvent } from '../storage/history.js';
import type { LatencyWindow } from '../storage/evidence.js';
import type { Column, SeriesSnapshot } from '../telemetry/series.js';

/** Both servers in one plot: p99 solid, p50 dashed, in ms. */
export const latencyPlot = ({ at, columns }: SeriesSnapshot, sync: string): PlotSpec => ({
  kind: 'time',
  x: at.map(toSeconds),
  series: LINES.map(({ label, column, ...style }) => ({ label, values: columns[column].map(toMs), ...style })),
  unit: 'ms',
  log: true,
  sync,
});

/** The same by minute, from the evidence of the gates. */
export const minutePlot = (windows: readonly LatencyWindow[]): PlotSpec => ({
  kind: 'time',
  x: windows.map(({ at }) => toSeconds(Date.parse(at))),
  series: LINES.map(({ label, side, quantile, ...style }) => ({
    label,
    values: windows.map((window) => toMs(window[side][quantile])),
    color: style.color,
    dashed: style.dashed,
  })),
  unit: 'ms',
  log: true,
});

/** A typical minute: medians over the minutes at p50, p99 and p99.9. */
export const percentilePlot = (windows: readonly LatencyWindow[]): PlotSpec => ({
  kind: 'percentiles',
  x: [0.5, 0.99, 0.999],
  series: (['source', 'target'] as const).map((side) => ({
    label: side,
    values: (['p50', 'p99', 'p999'] as const).map((quantile) =>
      windows.length === 0 ? null : median(windows.map((window) => window[side][quantile])) / 1000,
    ),
  })),
  unit: 'ms',
  log: true,
});

export const trafficPlot = (series: SeriesSnapshot, sync: string): PlotSpec => ({
  ...counts(series, sync, [
    ['commands', 'operations', { color: 3 }],
    ['pairs compared', 'compared', { color: 4 }],
  ]),
  unit: '1/s',
});

export const lagPlot = (series: SeriesSnapshot, sync: string): PlotSpec => ({
  ...counts(series, sync, [['lag', 'lagMs', { color: 3 }]]),
  unit: 'ms',
});

export const suspectPlot = (series: SeriesSnapshot, sync: string): PlotSpec => ({
  ...counts(series, sync, [
    ['suspect keys', 'suspects', { color: 3 }],
    ['mismatches/s', 'mismatches', { color: 5 }],
  ]),
  unit: '',
});

/** The stage changes between the first point and the last, oldest first. */
export function stageMarks(history: readonly HistoryEvent[], { at }: SeriesSnapshot): readonly PlotMark[] {
  if (at.length === 0) return [];
  return history.flatMap((event) => {
    const time = Date.parse(String(event.time));
    if (event.event !== 'stage' || !(time >= at[0] && time <= at[at.length - 1])) return [];
    return [{ at: toSeconds(time), label: `${String(event.workload)} → ${formatPoint(event.to as StagePoint)}` }];
  });
}

interface Line {
  readonly label: string;
  readonly column: Column;
  readonly side: 'source' | 'target';
  readonly quantile: 'p50' | 'p99';
  readonly color: number;
  readonly dashed: boolean;
}

const LINES: readonly Line[] = [
  { label: 'source p99', column: 'sourceP99', side: 'source', quantile: 'p99', color: 1, dashed: false },
  { label: 'target p99', column: 'targetP99', side: 'target', quantile: 'p99', color: 2, dashed: false },
  { label: 'source p50', column: 'sourceP50', side: 'source', quantile: 'p50', color: 1, dashed: true },
  { label: 'target p50', column: 'targetP50', side: 'target', quantile: 'p50', color: 2, dashed: true },
];

const counts = (
  { at, columns }: SeriesSnapshot,
  sync: string,
  lines: readonly (readonly [label: string, column: Column, look: Pick<PlotSeries, 'color'>])[],
): Omit<PlotSpec, 'unit'> => ({
  kind: 'time',
  x: at.map(toSeconds),
  series: lines.map(([label, column, look]) => ({ label, values: columns[column], ...look })),
  sync,
});

const toSeconds = (ms: number): number => ms / 1000;
const toMs = (us: number | null): number | null => (us === null ? null : us / 1000);

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}
