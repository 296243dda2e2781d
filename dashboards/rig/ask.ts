/** What Grafana would do with a dashboard: fill in the variables, and ask. Pure but for the asking. */
import type { Dashboard, Panel, RowPanel } from '@grafana/grafana-foundation-sdk/dashboard';
import type { Prometheus, Series } from './prometheus.js';

export interface Query {
  readonly expr: string;
  readonly legend: string;
  readonly refId: string;
  /** As of now, not over time. */
  readonly instant: boolean;
}

export type Variables = Readonly<Record<string, string>>;

/** Of a dashboard's panels those that ask something. */
export const panelsOf = ({ panels = [] }: Dashboard): readonly Panel[] =>
  panels.filter((panel): panel is Panel => panel.type !== 'row');

export const isRow = (panel: Panel | RowPanel): panel is RowPanel => panel.type === 'row';

interface Target {
  readonly expr: string;
  readonly legendFormat: string;
  readonly refId: string;
  readonly instant?: boolean;
}

export const queriesOf = ({ targets = [] }: Panel): readonly Query[] =>
  (targets as unknown as Target[]).map(({ expr, legendFormat, refId, instant = false }) => ({
    expr,
    legend: legendFormat,
    refId,
    instant,
  }));

/** In seconds: between two points of an answer, and between two scrapes. */
export interface Pace {
  readonly step: number;
  readonly scrape: number;
}

/** What Grafana takes for `$__rate_interval`, in seconds: no less than four scrapes, and the step and one scrape. */
export const rateInterval = ({ step, scrape }: Pace): number => Math.max(step + scrape, 4 * scrape);

/** The expression as Prometheus gets it. */
export const filledIn = (expr: string, variables: Variables, pace: Pace): string =>
  expr
    .replaceAll('$__rate_interval', `${rateInterval(pace)}s`)
    .replace(/\$(\w+)/g, (whole, name: string) => variables[name] ?? whole);

/**
 * Every choice that a reader has, all together; of a variable that takes one value only, the first, or the one in
 * `chosen`.
 */
export async function variablesOf(
  dashboard: Dashboard,
  prometheus: Prometheus,
  chosen: Variables = {},
): Promise<Variables> {
  const found: Record<string, string> = {};
  for (const { name, type, definition, multi } of dashboard.templating?.list ?? []) {
    if (type !== 'query') continue;
    const [, selector, label] = /^label_values\((.+), (\w+)\)$/.exec(definition ?? '') ?? [];
    const values = await prometheus.labelValues(label, filledIn(selector, found, { step: 1, scrape: 1 }));
    if (values.length === 0) throw new Error(`the variable ${name} of ${dashboard.title} has no values: ${definition}`);
    found[name] = multi ? values.map(escaped).join('|') : (chosen[name] ?? values[0]);
  }
  return found;
}

/** As Grafana puts several choices into a matcher of Prometheus. */
const escaped = (value: string): string => value.replace(/[.*+?^${}()|[\]\\]/g, '\\\\$&');

/** A series' name: its legend with the labels filled in. */
export const nameOf = (legend: string, { labels }: Series): string =>
  legend
    .replace(/\{\{\s*(\w+)\s*\}\}/g, (_, label: string) => labels[label] ?? '')
    .replace(/\s+/g, ' ')
    .trim();
