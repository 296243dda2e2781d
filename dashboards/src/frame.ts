/** What every dashboard has: its variables, the links to the others, and how it is put together. */
import type { Builder } from '@grafana/grafana-foundation-sdk/cog';
import {
  AnnotationQueryBuilder,
  DashboardBuilder,
  DashboardCursorSync,
  DashboardLinkBuilder,
  DashboardLinkType,
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  RowBuilder,
  VariableRefresh,
  VariableSort,
  type Dashboard,
  type Panel,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { DATASOURCE } from './panel.js';

const TAG = 'redis-to-keydb';

/** All of them: each links to the others. */
const TITLES = {
  overview: 'Migration overview',
  'source-target': 'Source against target',
  'shadow-proxy': 'Shadow proxy',
  cutover: 'Workload cutover',
  'active-active': 'Active-active and counters',
  hosts: 'Hosts',
} as const;

type Name = keyof typeof TITLES;

/** A variable whose choices are the values of a label. */
export interface Choice {
  readonly name: 'shard' | 'workload' | 'instance';
  /** The metric whose label of that name is asked for. */
  readonly of: string;
  /** One at a time. */
  readonly single?: boolean;
}

export const SHARD: Choice = { name: 'shard', of: 'shadow_proxy_uptime_seconds' };
export const WORKLOAD: Choice = { name: 'workload', of: 'shadow_proxy_workload_clean{shard=~"$shard"}' };
export const ONE_WORKLOAD: Choice = { ...WORKLOAD, single: true };
export const PROXY: Choice = { name: 'instance', of: 'shadow_proxy_uptime_seconds{shard=~"$shard"}' };
export const SERVER: Choice = { name: 'instance', of: 'redis_up{job="redis-exporter",shard=~"$shard"}' };
export const HOST: Choice = { name: 'instance', of: 'node_uname_info{job="node"}' };

/** Something that happened: each series at each moment at which the expression is not 0. */
export interface Event {
  readonly name: string;
  readonly query: string;
  /** With labels of the series, such as `{{stage}}`. */
  readonly title: string;
  readonly color: string;
}

export interface Section {
  readonly title: string;
  readonly panels: readonly Builder<Panel>[];
}

export interface Frame {
  readonly name: Name;
  readonly description: string;
  readonly choices: readonly Choice[];
  readonly sections: readonly Section[];
  readonly events?: readonly Event[];
}

export const uidOf = (name: Name): string => `${TAG}-${name}`;

export function dashboard({ name, description, choices, sections, events = [] }: Frame): Dashboard {
  const builder = new DashboardBuilder(TITLES[name])
    .uid(uidOf(name))
    .description(description)
    .tags([TAG])
    .timezone('browser')
    .time({ from: 'now-3h', to: 'now' })
    .refresh('30s')
    .tooltip(DashboardCursorSync.Crosshair)
    .editable()
    .links((Object.keys(TITLES) as Name[]).filter((other) => other !== name).map((other) => link(other, choices)))
    .withVariable(new DatasourceVariableBuilder('datasource').label('Data source').type('prometheus'));
  for (const choice of choices) builder.withVariable(variable(choice));
  for (const event of events) builder.annotation(annotation(event));
  for (const section of sections) {
    builder.withRow(new RowBuilder(section.title));
    for (const panel of section.panels) builder.withPanel(panel);
  }
  return numbered(builder.build());
}

/** Grafana gives panels ids when it reads a file; with our own, links to a panel hold. */
const numbered = (built: Dashboard): Dashboard => ({
  ...built,
  panels: built.panels?.map((panel, at) => ({ ...panel, id: at + 1 })),
});

/**
 * Keeps the time, and what was chosen where it means the same: an instance is a proxy here, a server or a host there.
 */
function link(to: Name, choices: readonly Choice[]): DashboardLinkBuilder {
  const kept = [
    'datasource',
    ...choices
      .filter(({ name }) => name === 'shard' || (name === 'workload' && to !== 'cutover'))
      .map(({ name }) => name),
  ];
  const url = `/d/${uidOf(to)}?${kept.map((name) => `\${${name}:queryparam}`).join('&')}`;
  return new DashboardLinkBuilder(TITLES[to]).type(DashboardLinkType.Link).url(url).icon('dashboard').keepTime(true);
}

function variable({ name, of, single = false }: Choice): QueryVariableBuilder {
  const query = `label_values(${of}, ${name})`;
  const made = new QueryVariableBuilder(name)
    .label(name.replace(/^./, (letter) => letter.toUpperCase()))
    .datasource(DATASOURCE)
    .query({ query, refId: name, qryType: 1 })
    .definition(query)
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .sort(VariableSort.AlphabeticalAsc)
    .multi(!single);
  return single
    ? made
    : made
        .includeAll(true)
        .allValue('.*')
        .current({ text: ['All'], value: ['$__all'] });
}

const annotation = ({ name, query, title, color }: Event): AnnotationQueryBuilder =>
  new AnnotationQueryBuilder()
    .name(name)
    .datasource(DATASOURCE)
    .enable(true)
    .iconColor(color)
    .expr(query)
    .titleFormat(title)
    .textFormat('')
    .step('15s')
    .useValueForTime(false);
