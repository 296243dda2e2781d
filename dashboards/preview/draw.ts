/// <reference lib="dom" />
/**
 * In the browser: draws every `[data-plot]` with uPlot, which has to be there as a global, with thresholds and what
 * happened.
 */
import type UPlot from 'uplot';
import type { PlotData } from './page.js';
import { withUnit } from './units.js';

const COLORS: Readonly<Record<string, string>> = {
  green: '#73bf69',
  orange: '#ff9830',
  red: '#f2495c',
  blue: '#5794f2',
  purple: '#b877d9',
};
const QUIET = '#8e8e99';
/** Units whose round numbers are powers of two. */
const BINARY = new Set(['bytes', 'Bps']);
const POWERS = Array.from({ length: 50 }, (_, power) => 2 ** power);
const GRID = { stroke: '#2a2d33', width: 1 };
const FONT = '11px system-ui, "DejaVu Sans", sans-serif';

/** Each line on the sum of those before it. */
function stacked({ lines }: PlotData): (number | null)[][] {
  const below: number[] = [];
  return lines.map(({ values }) =>
    values.map((value, at) => (value === null ? null : (below[at] = (below[at] ?? 0) + value))),
  );
}

function optionsOf(data: PlotData, { clientWidth, clientHeight }: HTMLElement): UPlot.Options {
  const { unit, min, max } = data;
  const axis = { stroke: QUIET, grid: GRID, ticks: GRID, font: FONT };
  return {
    width: clientWidth,
    height: clientHeight,
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: true }, y: { range: (_, low, high) => rangeOf(min, max, low, high) } },
    axes: [
      {
        ...axis,
        size: 28,
        space: 80,
        values: (_, splits) => splits.map((each) => new Date(each * 1000).toISOString().slice(11, 19)),
      },
      {
        ...axis,
        size: 88,
        ...(BINARY.has(unit) && { incrs: POWERS }),
        values: (_, splits) => splits.map((each) => (each === null ? '' : withUnit(each, unit))),
      },
    ],
    series: [
      {},
      ...data.lines.map(({ name, color }) => ({
        label: name,
        stroke: color,
        width: 1.3,
        fill: `${color}${data.stacked ? '55' : '12'}`,
        points: { show: false },
      })),
    ],
    // In a stack each is filled down to the one below it.
    ...(data.stacked && {
      bands: data.lines.slice(1).map((_, at) => ({ series: [at + 1, at + 2] as [number, number] })),
    }),
    hooks: { draw: [(plot) => drawMarks(plot, data)] },
  };
}

/** As in Grafana: the panel's own limits, else what is there, and never no height. */
function rangeOf(
  min: number | undefined,
  max: number | undefined,
  low: number | null,
  high: number | null,
): [number, number] {
  const top = max ?? Math.max(high ?? 0, (min ?? 0) + 0) * 1.05;
  const bottom = Math.min(min ?? low ?? 0, low ?? 0);
  return top > bottom ? [bottom, top] : [bottom, bottom + 1];
}

function drawMarks(plot: UPlot, { thresholds, marks }: PlotData): void {
  const { ctx, bbox } = plot;
  const line = (color: string, dash: number[], from: [number, number], to: [number, number]): void => {
    ctx.save();
    ctx.strokeStyle = color;
    ctx.setLineDash(dash);
    ctx.beginPath();
    ctx.moveTo(...from);
    ctx.lineTo(...to);
    ctx.stroke();
    ctx.restore();
  };
  for (const { value, color } of thresholds) {
    const y = plot.valToPos(value!, 'y', true);
    if (y >= bbox.top && y <= bbox.top + bbox.height)
      line(COLORS[color], [8, 5], [bbox.left, y], [bbox.left + bbox.width, y]);
  }
  for (const { at, color } of marks) {
    const x = plot.valToPos(at, 'x', true);
    if (x >= bbox.left && x <= bbox.left + bbox.width)
      line(COLORS[color], [3, 3], [x, bbox.top], [x, bbox.top + bbox.height]);
  }
}

for (const place of document.querySelectorAll<HTMLElement>('[data-plot]')) {
  const data = JSON.parse(place.dataset.plot!) as PlotData;
  const values = data.stacked ? stacked(data) : data.lines.map((each) => [...each.values]);
  const Plot = (globalThis as unknown as { uPlot: typeof UPlot }).uPlot;
  // The highest of a stack first, so that each is seen below it.
  const order = data.stacked ? { ...data, lines: data.lines.toReversed() } : data;
  new Plot(
    optionsOf(order, place),
    [[...data.x], ...(data.stacked ? values.toReversed() : values)] as UPlot.AlignedData,
    place,
  );
}
document.documentElement.dataset.drawn = 'yes';
