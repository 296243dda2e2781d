/** The dashboards and monitors of Datadog, as they are committed, by Datadog's own types. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { Ajv } from 'ajv';
import { parse as parseYaml } from 'yaml';
import { METRICS } from '../../shadow-proxy/src/telemetry/metrics.js';
import { DASHBOARDS, fileOf } from '../src/all.js';
import { ALERTS, DATADOG, datadogFiles } from '../src/datadog/all.js';
import { inline, translate } from '../src/datadog/translate.js';
import { panelsOf } from '../rig/ask.js';

const files = datadogFiles();
// eslint-disable-next-line @typescript-eslint/no-explicit-any
const jsonOf = (name: string): any => JSON.parse(files.get(name)!);
const dashboardNames = [...files.keys()].filter((name) => name.endsWith('.json') && name !== 'monitors.json');

const ajv = new Ajv({ allErrors: false, strict: false });
ajv.addSchema(JSON.parse(readFileSync(new URL('../schema/datadog.json', DATADOG), 'utf8')) as object, 'datadog');

/** What Datadog's own client would not read; empty where nothing is wrong. */
function problemsOf(value: unknown, type: 'Dashboard' | 'Monitor'): string[] {
  const validate = ajv.getSchema(`datadog#/definitions/${type}`)!;
  return validate(value) ? [] : validate.errors!.map(({ instancePath, message }) => `${instancePath} ${message}`);
}

describe('for Datadog', () => {
  test('the files are committed as they are built (npm run dashboards)', () => {
    assert.deepEqual(readdirSync(DATADOG).toSorted(), [...files.keys(), 'README.md'].toSorted());
    for (const [name, text] of files)
      assert.equal(
        readFileSync(new URL(name, DATADOG), 'utf8'),
        text,
        `dashboards/datadog/${name}: npm run dashboards`,
      );
  });

  for (const name of dashboardNames)
    test(`${name} is a dashboard by the types of Datadog's client`, () => {
      assert.deepEqual(problemsOf(jsonOf(name), 'Dashboard'), []);
    });

  test("the monitors are monitors by the types of Datadog's client, one or more for each alert", () => {
    const monitors = jsonOf('monitors.json') as { name: string }[];
    for (const monitor of monitors) assert.deepEqual(problemsOf(monitor, 'Monitor'), [], monitor.name);
    const alerts = new Set(ALERTS.map(({ alert }) => alert));
    assert.deepEqual(new Set(monitors.map(({ name }) => /^\w+/.exec(name)![0])), alerts);
    assert.equal(new Set(monitors.map(({ name }) => name)).size, monitors.length);
  });

  test('a widget, a field, a value or a type that Datadog does not know is refused, and a field that is missing', () => {
    const broken = (change: (dashboard: ReturnType<typeof jsonOf>) => void): number => {
      const dashboard = jsonOf('overview.json');
      change(dashboard);
      return problemsOf(dashboard, 'Dashboard').length;
    };
    const widget = 'widgets[0].definition.widgets[1].definition';
    assert.equal(
      broken(() => undefined),
      0,
    );
    assert.ok(
      broken(({ widgets }) => (widgets[0].definition.widgets[1].definition.type = 'no-such-widget')),
      widget,
    );
    assert.ok(
      broken(({ widgets }) => (widgets[0].definition.widgets[1].definition.no_such_field = 1)),
      widget,
    );
    assert.ok(
      broken((dashboard) => (dashboard.layout_type = 'diagonal')),
      'layout_type',
    );
    assert.ok(
      broken((dashboard) => (dashboard.title = 5)),
      'title',
    );
    assert.ok(
      broken((dashboard) => delete dashboard.widgets),
      'widgets',
    );
    assert.ok(problemsOf({ ...jsonOf('monitors.json')[0], type: 'no such type' }, 'Monitor').length > 0, 'monitor');
  });

  test('every panel has a widget of its title', () => {
    for (const dashboard of DASHBOARDS) {
      const titles = [...files.get(fileOf(dashboard.uid!))!.matchAll(/"title": "(.*)",?$/gm)].map(([, title]) => title);
      for (const { title = '' } of panelsOf(dashboard))
        assert.ok(
          titles.some((each) => each === title || each.startsWith(`${title}: `)),
          title,
        );
    }
  });

  test('dashboards and monitors ask only for what the check sends', () => {
    const { instances } = parseYaml(files.get('openmetrics.yaml')!) as {
      instances: { namespace: string; metrics: Record<string, { name: string; type: string }>[] }[];
    };
    const sent = new Set(
      instances.flatMap(({ namespace, metrics }) =>
        metrics.flatMap((each) =>
          Object.values(each).map(({ name, type }) => `${namespace}.${name}${type === 'counter' ? '.count' : ''}`),
        ),
      ),
    );
    const text = [...dashboardNames, 'monitors.json'].map((name) => files.get(name)).join('');
    const asked = new Set([...text.matchAll(/\b(?:sum|max|min|avg):([\w.]+)\{/g)].map(([, name]) => name));
    assert.deepEqual(
      [...asked].filter((name) => !sent.has(name)),
      [],
    );
    for (const { name } of METRICS)
      assert.ok(files.get('openmetrics.yaml')!.includes(name.replace(/_total$/, '')), name);
  });
});

describe('an expression of PromQL is one of Datadog', () => {
  const cases: readonly (readonly [promql: string, datadog: string])[] = [
    [
      'max by (shard) (shadow_proxy_mirror_lag_seconds{shard=~"$shard"})',
      'max:shadow_proxy.mirror_lag_seconds{$shard} by {shard}',
    ],
    [
      'sum by (verdict) (rate(shadow_proxy_workload_compared_total{shard=~"$shard",verdict!="match"}[$__rate_interval]))',
      'sum:shadow_proxy.workload_compared.count{$shard AND NOT verdict:match} by {verdict}.as_rate()',
    ],
    [
      'sum(increase(shadow_proxy_bypassing_writes_total{shard=~"$shard"}[1h]))',
      'sum:shadow_proxy.bypassing_writes.count{$shard}.as_count().rollup(sum, 3600)',
    ],
    [
      'sum(1 - shadow_proxy_up{shard=~"$shard"})',
      'count_not_null(avg:shadow_proxy.up{$shard} by {shard,server}) - sum:shadow_proxy.up{$shard}',
    ],
    ['max by (shard) (shadow_proxy_suspects) == bool 0', '1 - clamp_max(max:shadow_proxy.suspects{*} by {shard}, 1)'],
    [
      'time() - max by (shard) (shadow_proxy_workload_stage_start_timestamp_seconds)',
      'max:shadow_proxy.workload_stage_start_elapsed_seconds{*} by {shard}',
    ],
    [
      'shadow_proxy_frozen or on (shard) 3 + 0 * max by (shard) (shadow_proxy_clients)',
      'default_zero(avg:shadow_proxy.frozen{*} by {shard} - 3) + 3 + (0 * max:shadow_proxy.clients{*} by {shard})',
    ],
    [
      'sum by (cmd) (rate(redis_commands_total{cmd=~"incr|decr"}[5m]))',
      'sum:redis_exporter.commands.count{cmd IN (incr,decr)} by {cmd}.as_rate()',
    ],
    ['node_load1{device!~"lo|veth.*"}', 'avg:node_exporter.load1{NOT device:lo AND NOT device:veth*} by {shard}'],
  ];
  for (const [promql, datadog] of cases)
    test(promql, () => assert.equal(inline(translate(promql, ['shard'])), datadog));
});
