/** A dashboard of Grafana as one of Datadog: the same groups, titles, expressions, units and thresholds. */
import type { Dashboard, Panel, Threshold, ValueMap } from '@grafana/grafana-foundation-sdk/dashboard';
import { translate, type Translated } from './translate.js';

export type Json = { readonly [name: string]: unknown };

interface Target {
  readonly expr: string;
  readonly legendFormat?: string;
}

const PALETTES: Readonly<Record<string, string>> = {
  green: 'white_on_green',
  orange: 'white_on_yellow',
  red: 'white_on_red',
};
const MARKERS: Readonly<Record<string, string>> = { orange: 'warning dashed', red: 'error dashed' };

/** Units of Grafana; others have none. */
const UNITS: Readonly<Record<string, Json>> = {
  s: { unit_name: 'second' },
  bytes: { unit_name: 'byte' },
  Bps: { unit_name: 'byte', per_unit_name: 'second' },
  ops: { unit_name: 'operation', per_unit_name: 'second' },
  percent: { unit_name: 'percent' },
  percentunit: { unit_name: 'fraction' },
};

/** @throws {Untranslatable} */
export function datadogDashboard(dashboard: Dashboard): Json {
  const groups: { title: string; panels: Panel[] }[] = [];
  for (const panel of (dashboard.panels ?? []) as Panel[])
    if (panel.type === 'row') groups.push({ title: panel.title!, panels: [] });
    else groups.at(-1)!.panels.push(panel);
  const widgets = groups.map(({ title, panels }) => ({
    definition: {
      type: 'group',
      layout_type: 'ordered',
      title,
      widgets: [noteOf(panels), ...panels.flatMap(widgetsOf)],
    },
  }));
  return {
    title: `${dashboard.title} (redis-to-keydb)`,
    description: dashboard.description,
    layout_type: 'ordered',
    reflow_type: 'auto',
    template_variables: (dashboard.templating?.list ?? [])
      .filter(({ type }) => type === 'query')
      .map(({ name }) => ({ name, prefix: name, defaults: ['*'] })),
    widgets,
  };
}

/** What Grafana shows as a panel's description, and words for numbers: widgets have neither. */
function noteOf(panels: readonly Panel[]): Json {
  const lines = panels.map((panel) => {
    const words = wordsOf((panel.fieldConfig?.defaults.mappings ?? []) as ValueMap[]);
    return `**${panel.title}**: ${panel.description}${words === '' ? '' : ` (${words})`}`;
  });
  return {
    definition: {
      type: 'note',
      content: lines.join('\n\n'),
      background_color: 'gray',
      font_size: '14',
      show_tick: false,
    },
  };
}

const wordsOf = (mappings: readonly ValueMap[]): string =>
  mappings
    .flatMap(({ options }) => Object.entries(options as Readonly<Record<string, { text: string }>>))
    .map(([value, { text }]) => `${value}: ${text}`)
    .join(', ');

const targetsOf = (panel: Panel): readonly Target[] => panel.targets as unknown as readonly Target[];

function widgetsOf(panel: Panel): readonly Json[] {
  if (panel.type === 'stat') return targetsOf(panel).map((target) => tileOf(panel, target));
  if (panel.type === 'table') return [tableOf(panel)];
  return [linesOf(panel)];
}

/** `{{shard}} {{workload}}` shows series by these labels. */
const labelsIn = (legend = ''): string[] => [...legend.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label);

// ── how it is now ───────────────────────────────────────────────────────────────────────────────────────────────

/** Prometheus says of each target whether it answers; Datadog's check has a check of that. */
const DOWN = /^sum\(1 - up\{job="([\w-]+)"/;
const HEALTH: Readonly<Record<string, string>> = {
  'shadow-proxy': 'shadow_proxy.openmetrics.health',
  node: 'node_exporter.openmetrics.health',
};

function tileOf(panel: Panel, { expr, legendFormat }: Target): Json {
  const [, job] = DOWN.exec(expr) ?? [];
  const several = targetsOf(panel).length > 1;
  const title = several ? `${panel.title}: ${legendFormat}` : panel.title;
  if (job !== undefined)
    return {
      definition: {
        type: 'check_status',
        title,
        check: HEALTH[job],
        grouping: 'cluster',
        group_by: ['endpoint'],
        tags: [],
      },
    };
  const translated = translate(expr, labelsIn(legendFormat));
  const grouped = translated.by.length > 0;
  const { decimals } = panel.fieldConfig!.defaults;
  const request = {
    response_format: 'scalar',
    ...asked(translated, aggregatorOf(expr)),
    formulas: [formulaOf(panel, translated.formula, null)],
    conditional_formats: formatsOf(thresholdsOf(panel)),
  };
  return {
    definition: {
      type: grouped ? 'toplist' : 'query_value',
      title,
      requests: [request],
      ...(!grouped && { autoscale: true, precision: decimals ?? 2 }),
    },
  };
}

/** What a counter grew by is a sum over the time that is shown. */
const aggregatorOf = (expr: string): string => (/\bincrease\(/.test(expr) ? 'sum' : 'last');

const asked = ({ queries }: Translated, aggregator?: string): Json => ({
  queries: queries.map((query, at) => ({
    data_source: 'metrics',
    name: `q${at}`,
    query,
    ...(aggregator !== undefined && { aggregator }),
  })),
});

function formulaOf(panel: Panel, formula: string, alias: string | null): Json {
  const unit = UNITS[panel.fieldConfig?.defaults.unit ?? ''];
  return {
    formula,
    ...(alias !== null && alias !== '' && { alias }),
    ...(unit !== undefined && { number_format: { unit: { type: 'canonical_unit', ...unit } } }),
  };
}

const thresholdsOf = (panel: Panel): readonly Threshold[] => panel.fieldConfig?.defaults.thresholds?.steps ?? [];

/** The first that holds counts. */
function formatsOf(steps: readonly Threshold[]): Json[] {
  const coloured = steps.filter(({ color }) => PALETTES[color] !== undefined);
  return coloured.toReversed().map(({ color, value }) => {
    const first = coloured[1]?.value ?? 0;
    return value === null
      ? { comparator: '<', value: first, palette: PALETTES[color] }
      : { comparator: '>=', value, palette: PALETTES[color] };
  });
}

interface Override {
  readonly matcher: { readonly id: string; readonly options?: unknown };
  readonly properties: readonly { readonly id: string; readonly value?: unknown }[];
}

/** A row for each series of the labels that the panel puts first. */
function tableOf(panel: Panel): Json {
  const organize = panel.transformations!.find(({ id }) => id === 'organize')!.options as {
    readonly indexByName: Readonly<Record<string, number>>;
  };
  const rows = Object.keys(organize.indexByName).filter((name) => !name.startsWith('Value'));
  const columns = targetsOf(panel).map(({ expr, legendFormat = '' }) => ({
    name: legendFormat,
    ...translate(expr, rows),
  }));
  const queries: string[] = [];
  const formulas = columns.map(({ name, formula, ...column }) => {
    const first = queries.length;
    queries.push(...column.queries);
    const overrides = (panel.fieldConfig!.overrides as readonly Override[]).find(
      ({ matcher }) => matcher.options === name,
    );
    const steps = overrides?.properties.find(({ id }) => id === 'thresholds')?.value as
      { steps: Threshold[] } | undefined;
    return {
      formula: formula.replaceAll(/\bq(\d+)\b/g, (_, at: string) => `q${first + Number(at)}`),
      alias: name,
      ...(steps !== undefined && { conditional_formats: formatsOf(steps.steps) }),
    };
  });
  const request = { response_format: 'scalar', ...asked({ queries, formula: '', by: [] }, 'last'), formulas };
  return { definition: { type: 'query_table', title: panel.title, requests: [request] } };
}

// ── how it has been ─────────────────────────────────────────────────────────────────────────────────────────────

function linesOf(panel: Panel): Json {
  const { defaults } = panel.fieldConfig!;
  const custom = (defaults.custom ?? {}) as { readonly stacking?: { readonly mode: string } };
  const stacked = custom.stacking?.mode === 'normal';
  const requests = targetsOf(panel).map(({ expr, legendFormat }) => {
    const translated = translate(expr, labelsIn(legendFormat));
    const alias = legendFormat?.replaceAll(/\s*\{\{\w+\}\}\s*/g, '') ?? '';
    return {
      response_format: 'timeseries',
      ...asked(translated),
      formulas: [formulaOf(panel, translated.formula, alias)],
      display_type: stacked ? 'area' : 'line',
    };
  });
  const markers = thresholdsOf(panel)
    .filter(({ color, value }) => value !== null && MARKERS[color] !== undefined)
    .map(({ color, value }) => ({ value: `y = ${value}`, display_type: MARKERS[color] }));
  return {
    definition: {
      type: 'timeseries',
      title: panel.title,
      show_legend: true,
      requests,
      ...(markers.length > 0 && { markers }),
      ...(defaults.min !== undefined && { yaxis: { min: String(defaults.min), include_zero: true } }),
    },
  };
}
