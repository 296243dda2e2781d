/// <reference lib="dom" />
/**
 * Runs in the browser: draws `<plot-view spec="…">` with uPlot, which must be present as a global. Documents contain
 * the compiled file unchanged, so it imports types only.
 */
import type UPlot from 'uplot';
import type { PlotMark, PlotSpec } from './plot.js';

const HEIGHT = 200;
const GAP = 1e-9;
/** Minimum width of a time plot, in seconds, from its first point on. */
const LEAST_SECONDS = 300;
/** Maximum number of rows of labels above a plot, and the height of one. */
const LABEL_ROWS = 3;
const ROW_HEIGHT = 15;

class PlotView extends HTMLElement {
  static readonly observedAttributes = ['spec'];
  #plot: UPlot | null = null;
  #drawn: PlotSpec | null = null;
  readonly #resized = new ResizeObserver(() => this.#fit());
  readonly #dark = matchMedia('(prefers-color-scheme: dark)');
  readonly #recolour = (): void => this.#draw(true);

  connectedCallback(): void {
    this.#resized.observe(this);
    this.#dark.addEventListener('change', this.#recolour);
    this.#draw(true);
  }

  disconnectedCallback(): void {
    this.#resized.disconnect();
    this.#dark.removeEventListener('change', this.#recolour);
    this.#plot?.destroy();
    this.#plot = null;
  }

  attributeChangedCallback(): void {
    if (this.isConnected) this.#draw(false);
  }

  #fit(): void {
    if (this.#plot !== null && this.clientWidth > 0)
      this.#plot.setSize({ width: this.clientWidth, height: this.#plot.height });
  }

  #draw(replace: boolean): void {
    const spec = JSON.parse(this.getAttribute('spec') ?? 'null') as PlotSpec | null;
    if (spec === null) return;
    const data = dataOf(spec);
    this.classList.toggle('empty', spec.x.length === 0);
    const same = !replace && this.#drawn !== null && shapeOf(this.#drawn) === shapeOf(spec);
    this.#drawn = spec;
    if (same && this.#plot !== null) return this.#plot.setData(data, !isZoomed(this.#plot));
    this.#plot?.destroy();
    const Plot = (globalThis as unknown as { uPlot: typeof UPlot }).uPlot;
    const style = getComputedStyle(this);
    const options = optionsOf(spec, Math.max(200, this.clientWidth), style);
    const marks = (plot: UPlot): void => drawMarks(plot, this.#drawn?.marks ?? [], style);
    this.#plot = new Plot({ ...options, hooks: { draw: [marks] } }, data, this);
  }
}

/** The part of a plot that cannot be changed once it is drawn. */
const shapeOf = (spec: PlotSpec): string =>
  JSON.stringify([
    spec.kind,
    spec.unit,
    spec.log,
    spec.series.map(({ label, color, dashed }) => [label, color, dashed]),
    rowsFor(spec),
  ]);

/** Labels are above the plot, so that no curve runs through them. */
const rowsFor = ({ marks = [] }: PlotSpec): number => Math.min(LABEL_ROWS, marks.length);

/** Whether the reader has zoomed in: then the range is kept. */
function isZoomed({ data: [x], scales }: UPlot): boolean {
  const { min, max } = scales.x;
  return x.length > 1 && typeof min === 'number' && typeof max === 'number' && (min > x[0] || max < x[x.length - 1]);
}

function dataOf({ kind, x, series, log }: PlotSpec): UPlot.AlignedData {
  const at = kind === 'percentiles' ? x.map(toNines) : [...x];
  return [
    at,
    ...series.map(({ values }) => values.map((value) => (log && value !== null && value <= 0 ? null : value))),
  ];
}

/** p90 → 10, p99 → 100: equal steps on a logarithmic scale. */
const toNines = (share: number): number => 1 / Math.max(GAP, 1 - share);
const toPercent = (nines: number): string => `${parseFloat((100 * (1 - 1 / nines)).toPrecision(8))}`;

function optionsOf(spec: PlotSpec, width: number, style: CSSStyleDeclaration): UPlot.Options {
  const color = (name: string): string => style.getPropertyValue(name).trim();
  const lines = { stroke: color('--line'), width: 1 };
  const percentiles = spec.kind === 'percentiles';
  const axis = (log: boolean | undefined): UPlot.Axis => {
    const drawn = {
      ...lines,
      ...(log && { filter: (_: unknown, splits: number[]) => splits.map((split) => (isDecade(split) ? split : null)) }),
    };
    return { stroke: color('--quiet'), grid: drawn, ticks: drawn, font: '12px system-ui, sans-serif' };
  };
  const value = (_: unknown, each: number | null): string => (each === null ? '–' : `${short(each)} ${spec.unit}`);
  const above = rowsFor(spec) * ROW_HEIGHT;
  return {
    width,
    height: HEIGHT + above,
    ...(above > 0 && { padding: [above + 2, null, null, null] }),
    tzDate: (seconds) => new Date(utc(seconds)),
    cursor: { drag: { x: true, y: false }, ...(spec.sync !== undefined && { sync: { key: spec.sync } }) },
    scales: {
      x: {
        time: spec.kind === 'time',
        ...(percentiles && { distr: 3 as const }),
        ...(spec.kind === 'time' && { range: timeRange }),
      },
      y: spec.log ? { distr: 3 } : { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] },
    },
    axes: [
      { ...axis(percentiles), ...axisOf(spec) },
      {
        ...axis(spec.log),
        size: 60,
        values: (_: unknown, splits: number[]) => splits.map((split) => (split === null ? '' : short(split))),
      },
    ],
    series: [
      {
        label: LABELS[spec.kind],
        value: (_: unknown, each: number | null) => (each === null ? '–' : LABEL_OF[spec.kind](each)),
      },
      ...spec.series.map(({ label, color: which, dashed }, at) => ({
        label,
        value,
        width: 1.5,
        stroke: color(`--s${which ?? at + 1}`),
        points: { show: spec.x.length < 3 },
        ...(dashed && { dash: [5, 4] }),
      })),
    ],
  };
}

/** The axis begins at the first point, which shows when measuring began. */
function timeRange(plot: UPlot, min: number | null, max: number | null): UPlot.Range.MinMax {
  if (min === null || max === null) return [null, null] as unknown as UPlot.Range.MinMax;
  const x = plot.data[0];
  const [first, last] = [x[0], x[x.length - 1]];
  // A reader who zooms in chooses the range. For a single point uPlot would show a day.
  return min <= first && max >= last ? [first, Math.max(last, first + LEAST_SECONDS)] : [min, max];
}

/** Draws dotted lines through the plot, each from its label down. A label for which no row has room is left out. */
function drawMarks(plot: UPlot, marks: readonly PlotMark[], style: CSSStyleDeclaration): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  const right = bbox.left + bbox.width;
  const height = ROW_HEIGHT * ratio;
  const ends = Array<number>(Math.min(LABEL_ROWS, marks.length)).fill(-Infinity);
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = style.getPropertyValue('--ink').trim();
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  ctx.textBaseline = 'top';
  ctx.textAlign = 'left';
  ctx.setLineDash([2 * ratio, 3 * ratio]);
  const labels: [text: string, left: number, top: number][] = [];
  for (const { at, label } of marks) {
    const x = Math.round(plot.valToPos(at, 'x', true));
    if (x < bbox.left || x > right) continue;
    const width = ctx.measureText(label).width + 8 * ratio;
    // The label is on the left of the line if there is no room on the right.
    const left = x + width > right ? x - width : x;
    const row = left < 0 ? -1 : ends.findIndex((end) => end <= left);
    const top = row === -1 ? bbox.top : bbox.top - (ends.length - row) * height;
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    if (row === -1) continue;
    ends[row] = left + width;
    labels.push([label, left, top]);
  }
  for (const [text, left, top] of labels) {
    // Lines of other marks must not run through the label.
    const width = ctx.measureText(text).width;
    ctx.clearRect(left + 2 * ratio, top, width + 4 * ratio, height - ratio);
    ctx.fillText(text, left + 4 * ratio, top + 2 * ratio);
  }
  ctx.restore();
}

const isDecade = (value: number): boolean => Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < GAP;

const LABELS = { time: 'time (UTC)', percentiles: 'percentile', number: 'at' };
const LABEL_OF = {
  time: (seconds: number): string => iso(seconds).slice(11, 19),
  percentiles: (nines: number): string => `p${toPercent(nines)}`,
  number: short,
};

function axisOf({ kind }: PlotSpec): UPlot.Axis {
  if (kind === 'number') return { values: (_, splits) => splits.map((split) => short(split)) };
  if (kind === 'percentiles')
    return {
      space: 30,
      values: (_, splits) => splits.map((split) => (split === null ? '' : LABEL_OF.percentiles(split))),
    };
  const text = (split: number, step: number): string =>
    step >= DAY_S ? iso(split).slice(5, 10) : iso(split).slice(11, step >= 60 ? 16 : 19);
  return { space: 70, values: (_, splits, __, ___, step) => splits.map((split) => text(split, step)) };
}

const DAY_S = 86_400;
const iso = (seconds: number): string => new Date(seconds * 1000).toISOString();
/**
 * A time at which a local clock shows what a UTC clock shows at `seconds`: uPlot looks for round numbers in local time.
 */
const utc = (seconds: number): number => seconds * 1000 + new Date(seconds * 1000).getTimezoneOffset() * 60_000;

/** Three digits; thousands and millions have a letter. */
function short(value: number): string {
  if (value === 0) return '0';
  const [size, letter] = value >= 1e9 ? [1e9, 'G'] : value >= 1e6 ? [1e6, 'M'] : value >= 1e4 ? [1e3, 'k'] : [1, ''];
  return `${parseFloat((value / size).toPrecision(3))}${letter}`;
}

customElements.define('plot-view', PlotView);
