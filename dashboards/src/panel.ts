/**
 * Panels as these dashboards have them, over the SDK's builders: what is asked, in which unit, from when on it is bad,
 * and one sentence on what to do then.
 */
import type { Builder } from '@grafana/grafana-foundation-sdk/cog';
import {
  BigValueColorMode,
  BigValueGraphMode,
  BigValueTextMode,
  GraphThresholdsStyleConfigBuilder,
  GraphThresholdsStyleMode,
  LegendDisplayMode,
  LegendPlacement,
  ReduceDataOptionsBuilder,
  SortOrder,
  StackingConfigBuilder,
  StackingMode,
  TableCellDisplayMode,
  TooltipDisplayMode,
  VisibilityMode,
  VizLegendOptionsBuilder,
  VizTooltipOptionsBuilder,
} from '@grafana/grafana-foundation-sdk/common';
import {
  FieldColorBuilder,
  FieldColorModeId,
  MappingType,
  ThresholdsConfigBuilder,
  ThresholdsMode,
  type DynamicConfigValue,
  type Panel,
  type Threshold,
  type ValueMap,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus';
import * as stat from '@grafana/grafana-foundation-sdk/stat';
import * as statetimeline from '@grafana/grafana-foundation-sdk/statetimeline';
import * as table from '@grafana/grafana-foundation-sdk/table';
import * as timeseries from '@grafana/grafana-foundation-sdk/timeseries';
import { STAGES } from '../../shadow-proxy/src/route/stage.js';

export const DATASOURCE = { type: 'prometheus', uid: '${datasource}' };

export interface Asked {
  readonly title: string;
  /** One sentence: what it shows, and what to do about it. */
  readonly description: string;
  /** Of 24 columns. */
  readonly width: number;
  /** In Grafana's rows of 38 pixels. */
  readonly height?: number;
  /** As Grafana names them, such as `s`, `ops`, `bytes`, `percentunit`. */
  readonly unit?: string;
  readonly decimals?: number;
  /** Expressions by what their series are called. */
  readonly queries: Readonly<Record<string, string>>;
  readonly thresholds?: readonly Threshold[];
  readonly mappings?: readonly ValueMap[];
}

const GREEN = 'green';
const ORANGE = 'orange';
const RED = 'red';

/** Good below `warn`, bad from `bad` on; without `warn`, nothing lies between. */
export const badFrom = (bad: number, warn?: number): readonly Threshold[] => [
  { color: GREEN, value: null },
  ...(warn === undefined ? [] : [{ color: ORANGE, value: warn }]),
  { color: RED, value: bad },
];

/** Bad below. */
export const goodFrom = (good: number): readonly Threshold[] => [
  { color: RED, value: null },
  { color: GREEN, value: good },
];

/** A figure with nothing good or bad about it. */
export const PLAIN: readonly Threshold[] = [{ color: 'blue', value: null }];

/** Something worth a look, and no fault. */
export const worthALook = (from: number): readonly Threshold[] => [
  { color: GREEN, value: null },
  { color: ORANGE, value: from },
];

/** Words and colours for numbers. */
export const words = (of: Readonly<Record<number, readonly [text: string, color: string]>>): readonly ValueMap[] => [
  {
    type: MappingType.ValueToText,
    options: Object.fromEntries(
      Object.entries(of).map(([value, [text, color]], index) => [value, { text, color, index }]),
    ),
  },
];

const STAGE_COLORS: Record<(typeof STAGES)[number], string> = {
  off: 'text',
  dualwrite: 'yellow',
  shadow: 'blue',
  live: 'purple',
  rampdown: 'orange',
  complete: GREEN,
};

/** What `stageNumber` of query.ts gives. */
export const STAGE_WORDS = words(Object.fromEntries(STAGES.map((stage, at) => [at, [stage, STAGE_COLORS[stage]]])));

const REF_IDS = 'ABCDEFGHIJ';

function targets(queries: Readonly<Record<string, string>>, now: boolean): DataqueryBuilder[] {
  return Object.entries(queries).map(([legend, expression], at) => {
    const query = new DataqueryBuilder()
      .datasource(DATASOURCE)
      .expr(expression)
      .legendFormat(legend)
      .refId(REF_IDS[at]);
    return now ? query.instant() : query.range();
  });
}

type Any = stat.PanelBuilder | statetimeline.PanelBuilder | table.PanelBuilder | timeseries.PanelBuilder;

/** Every panel has something to show from the first scrape on. */
const NOTHING = 'No data: is it scraped?';

/** What panels of every kind have. */
function withDefaults<T extends Any>(
  panel: T,
  {
    title,
    description,
    width,
    height = 8,
    unit = 'short',
    decimals,
    thresholds = PLAIN,
    mappings = [],
  }: Omit<Asked, 'queries'>,
): T {
  panel
    .title(title)
    .description(description)
    .datasource(DATASOURCE)
    .span(width)
    .height(height)
    .unit(unit)
    .mappings([...mappings]);
  panel.thresholds(new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps([...thresholds]));
  // In a table it would stand in every cell that is empty.
  if (!(panel instanceof table.PanelBuilder)) panel.noValue(NOTHING);
  if (decimals !== undefined) panel.decimals(decimals);
  return panel;
}

/** How it is now, as a tile in the colour of its threshold. */
export function tile({ queries, ...asked }: Asked): Builder<Panel> {
  return withDefaults(new stat.PanelBuilder(), { height: 4, ...asked })
    .targets(targets(queries, true))
    .colorScheme(new FieldColorBuilder().mode(FieldColorModeId.Thresholds))
    .colorMode(asked.thresholds === undefined ? BigValueColorMode.Value : BigValueColorMode.Background)
    .graphMode(BigValueGraphMode.None)
    .textMode(BigValueTextMode.Auto)
    .reduceOptions(new ReduceDataOptionsBuilder().calcs(['lastNotNull']).values(false).fields(''));
}

export interface Lines extends Asked {
  /** Colours of series by what their names begin with; shades of it where there are several. */
  readonly colors?: Readonly<Record<string, string>>;
  readonly stacked?: boolean;
  /** May be below 0; otherwise the axis begins there. */
  readonly signed?: boolean;
  readonly max?: number;
}

/** How it has been: lines, with a dashed line where it begins to be bad. */
export function lines({ queries, colors = {}, stacked = false, signed = false, max, ...asked }: Lines): Builder<Panel> {
  const panel = withDefaults(new timeseries.PanelBuilder(), asked)
    .targets(targets(queries, false))
    .lineWidth(1)
    .fillOpacity(stacked ? 30 : 8)
    .showPoints(VisibilityMode.Never)
    .spanNulls(false)
    .colorScheme(new FieldColorBuilder().mode(FieldColorModeId.PaletteClassic))
    .legend(
      new VizLegendOptionsBuilder()
        .displayMode(LegendDisplayMode.List)
        .placement(LegendPlacement.Bottom)
        .showLegend(true)
        .calcs([]),
    )
    .tooltip(new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi).sort(SortOrder.Descending))
    .thresholdsStyle(
      new GraphThresholdsStyleConfigBuilder().mode(
        asked.thresholds === undefined ? GraphThresholdsStyleMode.Off : GraphThresholdsStyleMode.Dashed,
      ),
    );
  if (!signed) panel.min(0);
  if (max !== undefined) panel.max(max);
  if (stacked) panel.stacking(new StackingConfigBuilder().mode(StackingMode.Normal).group('A'));
  for (const [name, color] of Object.entries(colors))
    panel.overrideByRegexp(`/^${name}/`, [
      { id: 'color', value: { mode: FieldColorModeId.Shades, fixedColor: color } },
    ]);
  return panel;
}

/** The same on every panel that shows both. */
export const SIDES = { source: 'blue', target: 'orange' };
export const VERDICTS = { match: GREEN, allowed: 'blue', inconclusive: 'yellow', mismatch: RED };

/** Which state something was in, as a band each. */
export function states({ queries, ...asked }: Asked): Builder<Panel> {
  return withDefaults(new statetimeline.PanelBuilder(), asked)
    .targets(targets(queries, false))
    .colorScheme(new FieldColorBuilder().mode(FieldColorModeId.Thresholds))
    .fillOpacity(80)
    .mergeValues(true)
    .showValue(VisibilityMode.Auto)
    .rowHeight(0.85)
    .legend(
      new VizLegendOptionsBuilder()
        .displayMode(LegendDisplayMode.List)
        .placement(LegendPlacement.Bottom)
        .showLegend(false)
        .calcs([]),
    );
}

export interface Column {
  readonly name: string;
  /** One value for each row. */
  readonly query: string;
  readonly unit?: string;
  readonly decimals?: number;
  readonly thresholds?: readonly Threshold[];
  readonly mappings?: readonly ValueMap[];
}

export interface Table extends Omit<Asked, 'queries' | 'unit' | 'thresholds' | 'mappings'> {
  /** The labels that make a row, in the order of their columns. */
  readonly rows: readonly string[];
  readonly columns: readonly Column[];
  /** Where a click on that label leads; the row's labels are `${__data.fields.NAME}`. */
  readonly link?: { readonly label: string; readonly title: string; readonly url: string };
}

/** How everything is now: a row each. */
export function rows({ rows: labels, columns, link, ...asked }: Table): Builder<Panel> {
  const value = (at: number): string => (columns.length === 1 ? 'Value' : `Value #${REF_IDS[at]}`);
  const panel = withDefaults(new table.PanelBuilder(), asked).targets(
    targets(Object.fromEntries(columns.map(({ name, query }) => [name, query])), true).map((query) =>
      query.format(PromQueryFormat.Table),
    ),
  );
  panel.withTransformation({ id: 'merge', options: {} }).withTransformation({
    id: 'organize',
    options: {
      excludeByName: { Time: true },
      indexByName: Object.fromEntries([...labels, ...columns.map((_, at) => value(at))].map((name, at) => [name, at])),
      renameByName: Object.fromEntries(columns.map(({ name }, at) => [value(at), name])),
    },
  });
  for (const { name, ...column } of columns) panel.overrideByName(name, overrides(column));
  if (link !== undefined)
    panel.overrideByName(link.label, [{ id: 'links', value: [{ title: link.title, url: link.url }] }]);
  return panel;
}

function overrides({ unit, decimals, thresholds, mappings }: Omit<Column, 'name' | 'query'>): DynamicConfigValue[] {
  const coloured = thresholds !== undefined || mappings !== undefined;
  return [
    { id: 'unit', value: unit ?? 'short' },
    ...(decimals === undefined ? [] : [{ id: 'decimals', value: decimals }]),
    ...(thresholds === undefined
      ? []
      : [{ id: 'thresholds', value: { mode: ThresholdsMode.Absolute, steps: thresholds } }]),
    ...(mappings === undefined ? [] : [{ id: 'mappings', value: mappings }]),
    ...(coloured ? [{ id: 'custom.cellOptions', value: { type: TableCellDisplayMode.ColorText } }] : []),
  ];
}
