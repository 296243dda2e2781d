/** What `dashboards/datadog/` holds, from the dashboards and the alerts that Prometheus and Grafana get. */
import { readdirSync, readFileSync } from 'node:fs';
import { parse as parseYaml } from 'yaml';
import { DASHBOARDS, fileOf } from '../all.js';
import { checkConfiguration } from './check.js';
import { datadogDashboard } from './dashboard.js';
import { metricsOf, parse } from './expression.js';
import { expanded, monitorsOf, type Alert, type Recorded } from './monitors.js';

export const DATADOG = new URL('../../../../dashboards/datadog/', import.meta.url);
const RULES = new URL('../../../../dashboards/prometheus/rules/', import.meta.url);

type Rule = Partial<Alert> & { readonly record?: string; readonly expr: string };

const rules = readdirSync(RULES)
  .filter((name) => name.endsWith('.rules.yml'))
  .flatMap((name) => {
    const { groups } = parseYaml(readFileSync(new URL(name, RULES), 'utf8')) as { groups: { rules: Rule[] }[] };
    return groups.flatMap((group) => group.rules);
  });
const recorded: Recorded = new Map(rules.flatMap(({ record, expr }) => (record === undefined ? [] : [[record, expr]])));
export const ALERTS = rules.filter((rule): rule is Alert => rule.alert !== undefined);

/** Text by file name. */
export function datadogFiles(): ReadonlyMap<string, string> {
  const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;
  return new Map([
    ...DASHBOARDS.map((each): [string, string] => [fileOf(each.uid!), json(datadogDashboard(each))]),
    ['monitors.json', json(ALERTS.flatMap((alert) => monitorsOf(alert, recorded)))],
    ['openmetrics.yaml', checkConfiguration(usedMetrics())],
  ]);
}

function usedMetrics(): string[] {
  const asked = DASHBOARDS.flatMap(({ panels = [] }) =>
    panels.flatMap((panel) => ('targets' in panel ? (panel.targets as unknown as { expr: string }[]) : [])),
  ).map(({ expr }) => expr);
  return [...asked, ...ALERTS.map(({ expr }) => expanded(expr, recorded))].flatMap((expr) => metricsOf(parse(expr)));
}
