/** What of a panel is drawn, from its JSON and what Prometheus answered. Pure. */
import type { DynamicConfigValue, Panel, Threshold, ValueMap } from '@grafana/grafana-foundation-sdk/dashboard';
import { nameOf, type Pace, type Query } from '../rig/ask.js';
import type { Series } from '../rig/prometheus.js';
import { withUnit } from './units.js';

export interface Answered {
  readonly query: Query;
  readonly series: readonly Series[];
}

export interface Look {
  readonly text: string;
  /** As Grafana names it. */
  readonly color: string;
}

export interface TileView {
  readonly kind: 'stat';
  readonly solid: boolean;
  readonly values: readonly (Look & { readonly name: string })[];
}

export interface TableView {
  readonly kind: 'table';
  readonly head: readonly string[];
  readonly rows: readonly (readonly Look[])[];
}

export interface StatesView {
  readonly kind: 'state-timeline';
  readonly bands: readonly {
    readonly name: string;
    readonly spans: readonly (Look & { readonly from: number; readonly to: number })[];
  }[];
}

export interface LineView {
  readonly name: string;
  readonly color: string;
  readonly values: readonly (number | null)[];
}

export interface LinesView {
  readonly kind: 'timeseries';
  readonly x: readonly number[];
  readonly lines: readonly LineView[];
  readonly stacked: boolean;
  readonly unit: string;
  readonly min?: number;
  readonly max?: number;
  readonly thresholds: readonly Threshold[];
}

export type View = TileView | TableView | StatesView | LinesView;

/** Nothing was answered: Grafana then shows the panel's `noValue`. */
export function isEmpty(view: View): boolean {
  switch (view.kind) {
    case 'stat':
      return view.values.length === 0;
    case 'table':
      return view.rows.length === 0;
    case 'state-timeline':
      return view.bands.length === 0;
    case 'timeseries':
      return view.lines.length === 0;
  }
}

interface Settings {
  readonly unit: string;
  readonly decimals?: number;
  readonly steps: readonly Threshold[];
  readonly mappings: readonly ValueMap[];
}

export function viewOf(panel: Panel, answers: readonly Answered[], span: Span): View {
  switch (panel.type) {
    case 'stat':
      return tileOf(panel, answers);
    case 'table':
      return tableOf(panel, answers);
    case 'state-timeline':
      return statesOf(panel, answers, span);
    case 'timeseries':
      return linesOf(panel, answers, span);
    default:
      throw new Error(`the preview does not draw panels of type ${panel.type}: ${panel.title}`);
  }
}

/** Seconds since 1970, and how densely was asked. */
export interface Span extends Pace {
  readonly from: number;
  readonly to: number;
}

const settingsOf = ({ fieldConfig }: Panel): Settings => {
  const { unit = 'short', decimals, thresholds, mappings = [] } = fieldConfig?.defaults ?? {};
  return { unit, decimals, steps: thresholds?.steps ?? [], mappings: mappings as ValueMap[] };
};

const flat = (answers: readonly Answered[]): { readonly name: string; readonly series: Series }[] =>
  answers.flatMap(({ query, series }) => series.map((each) => ({ name: nameOf(query.legend, each), series: each })));

const last = ({ points }: Series): number => points.at(-1)?.[1] ?? NaN;

/** A value in words or with its unit, and the colour of the word or of the highest threshold that it has reached. */
export function lookOf(value: number, { unit, decimals, steps, mappings }: Settings): Look {
  const word = mappings.map(({ options }) => options[`${value}`]).find((each) => each !== undefined);
  const color =
    word?.color ?? steps.filter((step) => step.value === null || value >= step.value).at(-1)?.color ?? 'text';
  return { text: word?.text ?? withUnit(value, unit, decimals), color };
}

function tileOf(panel: Panel, answers: readonly Answered[]): TileView {
  const settings = settingsOf(panel);
  const options = panel.options as { colorMode?: string };
  return {
    kind: 'stat',
    solid: options.colorMode === 'background',
    values: flat(answers).map(({ name, series }) => ({ name, ...lookOf(last(series), settings) })),
  };
}

/** Rows that agree in their labels are one, as the transformation `merge` has it. */
function tableOf(panel: Panel, answers: readonly Answered[]): TableView {
  const columns = answers.map(({ query }) => query.legend);
  const labels = labelsOf(panel);
  const rows = new Map<string, { readonly labels: Series['labels']; readonly values: Map<string, number> }>();
  for (const { query, series } of answers) {
    for (const each of series) {
      const key = labels.map((label) => each.labels[label] ?? '').join('\0');
      if (!rows.has(key)) rows.set(key, { labels: each.labels, values: new Map() });
      rows.get(key)!.values.set(query.legend, last(each));
    }
  }
  const sorted = [...rows].sort(([a], [b]) => a.localeCompare(b)).map(([, row]) => row);
  return {
    kind: 'table',
    head: [...labels, ...columns],
    rows: sorted.map((row) => [
      ...labels.map((label) => ({ text: row.labels[label] ?? '', color: 'text' })),
      ...columns.map((column) => cell(row.values.get(column), overridden(panel, column))),
    ]),
  };
}

const cell = (value: number | undefined, settings: Settings): Look =>
  value === undefined ? { text: '', color: 'text' } : lookOf(value, settings);

/** The columns before the values, in the order that the transformation `organize` gives. */
function labelsOf({ transformations = [] }: Panel): readonly string[] {
  const { indexByName = {} } = (transformations.find(({ id }) => id === 'organize')?.options ?? {}) as {
    indexByName?: Record<string, number>;
  };
  return Object.entries(indexByName)
    .filter(([name]) => !name.startsWith('Value'))
    .sort(([, a], [, b]) => a - b)
    .map(([name]) => name);
}

function overridden({ fieldConfig }: Panel, column: string): Settings {
  const properties: readonly DynamicConfigValue[] =
    fieldConfig?.overrides.find(({ matcher }) => matcher.id === 'byName' && matcher.options === column)?.properties ??
    [];
  const value = (id: string): unknown => properties.find((property) => property.id === id)?.value;
  return {
    unit: (value('unit') as string | undefined) ?? 'short',
    decimals: value('decimals') as number | undefined,
    steps: (value('thresholds') as { steps: Threshold[] } | undefined)?.steps ?? [],
    mappings: (value('mappings') as ValueMap[] | undefined) ?? [],
  };
}

/** Points that say the same are one band, until the next that does not, or a gap. */
function statesOf(panel: Panel, answers: readonly Answered[], { step }: Span): StatesView {
  const settings = settingsOf(panel);
  const bands = flat(answers).map(({ name, series }) => {
    const spans: (Look & { from: number; to: number; value: number })[] = [];
    for (const [at, value] of series.points) {
      const before = spans.at(-1);
      if (before !== undefined && before.value === value && at - before.to <= step * 1.5) before.to = at;
      else {
        if (before !== undefined && at - before.to <= step * 1.5) before.to = at;
        spans.push({ ...lookOf(value, settings), value, from: at, to: at });
      }
    }
    return { name, spans: spans.map(({ value: _, ...span }) => span) };
  });
  return { kind: 'state-timeline', bands: bands.sort((a, b) => a.name.localeCompare(b.name)) };
}

const PALETTE = [
  '#73bf69',
  '#f2cc0c',
  '#5794f2',
  '#ff780a',
  '#f2495c',
  '#b877d9',
  '#8ab8ff',
  '#c0d8ff',
  '#ffb357',
  '#96d98d',
];
const SHADES: Readonly<Record<string, readonly string[]>> = {
  green: ['#73bf69'],
  yellow: ['#fade2a'],
  red: ['#f2495c'],
  blue: ['#5794f2', '#1f60c4', '#8ab8ff', '#3274d9', '#c0d8ff'],
  orange: ['#ff9830', '#fa6400', '#ffb357', '#ff780a', '#ffcb7d'],
};

function linesOf(panel: Panel, answers: readonly Answered[], { from, to, step }: Span): LinesView {
  const { unit, steps } = settingsOf(panel);
  const { custom, min, max } = (panel.fieldConfig?.defaults ?? {}) as {
    custom?: { stacking?: { mode?: string }; thresholdsStyle?: { mode?: string } };
    min?: number;
    max?: number;
  };
  const x = Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, at) => from + at * step);
  const used: Record<string, number> = {};
  const lines = flat(answers).map(({ name, series }, at): LineView => {
    const values = new Map(
      series.points.map(([when, value]) => [Math.round((when - from) / step), Number.isFinite(value) ? value : null]),
    );
    const shade = shadeOf(panel, name);
    const color =
      shade === null
        ? PALETTE[at % PALETTE.length]
        : SHADES[shade][(used[shade] = (used[shade] ?? -1) + 1) % SHADES[shade].length];
    return { name, color, values: x.map((_, place) => values.get(place) ?? null) };
  });
  const marked = custom?.thresholdsStyle?.mode === 'dashed';
  return {
    kind: 'timeseries',
    x,
    lines,
    stacked: custom?.stacking?.mode === 'normal',
    unit,
    min,
    max,
    thresholds: marked ? steps.filter(({ value }) => value !== null) : [],
  };
}

/** The colour whose shades an override gives to series of that name. */
function shadeOf({ fieldConfig }: Panel, name: string): string | null {
  for (const { matcher, properties } of fieldConfig?.overrides ?? []) {
    if (matcher.id !== 'byRegexp' || !new RegExp(String(matcher.options).replace(/^\/|\/$/g, '')).test(name)) continue;
    const color = properties.find(({ id }) => id === 'color')?.value as { fixedColor?: string } | undefined;
    if (color?.fixedColor !== undefined) return color.fixedColor;
  }
  return null;
}
