import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { collectDefaultMetrics, Registry } from 'prom-client';
import { stringify } from 'yaml';
import { onPath } from '../../loadtest/rig/programs.js';
import { METRICS } from '../../shadow-proxy/src/record/metrics.js';
import { withUnit } from '../preview/units.js';
import { filledIn, panelsOf, queriesOf } from '../rig/ask.js';
import { knownNames } from '../rig/exporters.js';
import { DASHBOARDS, dashboardFiles, GRAFANA } from '../src/all.js';
import { metricsIn } from './promql.js';

const run = promisify(execFile);

const all = DASHBOARDS.flatMap((dashboard) => [
  ...panelsOf(dashboard).flatMap((panel) => queriesOf(panel).map(({ expr }) => ({ where: `${dashboard.title}: ${panel.title}`, expr }))),
  ...(dashboard.annotations?.list ?? []).flatMap(({ name, expr }) => (expr === undefined ? [] : [{ where: `${dashboard.title}: annotation ${name}`, expr }])),
]);

describe('the dashboards', () => {
  test('are committed as they are built (npm run dashboards)', async () => {
    const files = dashboardFiles();
    assert.deepEqual((await readdir(GRAFANA)).toSorted(), [...files.keys()].toSorted());
    for (const [name, text] of files) assert.equal(await readFile(new URL(name, GRAFANA), 'utf8'), text, `dashboards/grafana/${name} is not what the sources build: npm run dashboards`);
  });

  test('ask what Prometheus can parse', async (t) => {
    if (onPath('promtool') === null) {
      const reason = 'NOT PARSED: the expressions of the dashboards need promtool (apt-get install prometheus)';
      process.stderr.write(`${reason}\n`);
      return t.skip(reason);
    }
    const directory = await mkdtemp(join(tmpdir(), 'dashboards-'));
    t.after(() => rm(directory, { recursive: true }));
    const rules = all.map(({ expr }, at) => ({ record: `dashboards:expression_${at}`, expr: filledIn(expr, { shard: '.*', workload: '.*', instance: '.*' }, { step: 15, scrape: 15 }) }));
    const file = join(directory, 'rules.yml');
    await writeFile(file, stringify({ groups: [{ name: 'dashboards', rules }] }));
    await assert.doesNotReject(run('promtool', ['check', 'rules', file]));
  });

  test('name only metrics and labels that the proxy has, and metrics that the exporters have', () => {
    const registry = new Registry();
    collectDefaultMetrics({ register: registry });
    const { redis, keydb, node } = knownNames();
    const others = new Set([...redis, ...keydb, ...node, ...registry.getMetricsAsArray().map(({ name }) => name), 'up']);
    const own = new Map(METRICS.map(({ name, labels }) => [name, new Set(labels)]));
    const unknown = all.flatMap(({ where, expr }) =>
      metricsIn(expr).flatMap(({ metric, labels }) => {
        const known = own.get(metric);
        if (known === undefined) return others.has(metric) ? [] : [`${where}: ${metric}`];
        return labels.filter((label) => !known.has(label)).map((label) => `${where}: ${metric} has no label ${label}`);
      }),
    );
    assert.deepEqual(unknown, []);
  });

  test('use the variables that they have', () => {
    for (const dashboard of DASHBOARDS) {
      const declared = new Set(dashboard.templating!.list!.map(({ name }) => name));
      const used = new Set(panelsOf(dashboard).flatMap((panel) => queriesOf(panel).flatMap(({ expr }) => [...expr.matchAll(/\$(?!__)(\w+)/g)].map(([, name]) => name))));
      assert.deepEqual([...used].filter((name) => !declared.has(name)), [], dashboard.title);
      assert.deepEqual([...declared].filter((name) => name !== 'datasource' && !used.has(name)), [], `${dashboard.title} offers a choice that changes nothing`);
    }
  });

  for (const dashboard of DASHBOARDS) {
    test(`${dashboard.title}: every panel says what it shows and what to do, in a unit, in its place`, () => {
      const places = new Map<string, string>();
      for (const { title, description = '', gridPos, fieldConfig, type } of panelsOf(dashboard)) {
        assert.match(description, /^[A-Z].{20,}\.$/, `${title} has no sentence`);
        assert.ok(gridPos!.x + gridPos!.w <= 24, `${title} reaches beyond the grid`);
        if (type !== 'table') assert.doesNotThrow(() => withUnit(1, fieldConfig!.defaults.unit!), title);
        for (let x = gridPos!.x; x < gridPos!.x + gridPos!.w; x++) {
          for (let y = gridPos!.y; y < gridPos!.y + gridPos!.h; y++) {
            assert.equal(places.get(`${x}/${y}`), undefined, `${title} lies on ${places.get(`${x}/${y}`)}`);
            places.set(`${x}/${y}`, title!);
          }
        }
      }
      assert.equal(new Set(dashboard.panels!.map(({ id }) => id)).size, dashboard.panels!.length);
    });
  }
});

/** What the proxy tells and no panel shows, and why not. */
const NOT_SHOWN: Readonly<Record<string, string>> = {
  shadow_proxy_latency_seconds: 'since the start: the last minute says more',
  shadow_proxy_latency_observations_total: 'counts what latency_seconds is of',
  shadow_proxy_compared_total: 'shown by workload',
  shadow_proxy_matched_total: 'shown by workload',
  shadow_proxy_mirror_queued_effects: 'their bytes have the bound, and are shown with it',
  shadow_proxy_unmirrored_errors_total: 'errors that clients get, and not the migration’s',
  shadow_proxy_flips_total: 'the stages themselves are marked',
  shadow_proxy_job_ended: 'a job that failed fires an alert',
  shadow_proxy_job_end_timestamp_seconds: 'absent while a job runs',
  shadow_proxy_job_listed: 'read in the job’s report',
  shadow_proxy_bypassing_clients: 'a gate, shown in Workload cutover',
  shadow_proxy_bypassing_writes_told: 'whether the gate bypass can tell, shown in Workload cutover',
  shadow_proxy_certificate_end_timestamp_seconds: 'absent without TLS; fires an alert',
  shadow_proxy_workload_verified_timestamp_seconds: 'the gate verify, shown in Workload cutover',
};

test('every metric of the proxy is on a dashboard, or not for a reason', () => {
  const shown = new Set(all.flatMap(({ expr }) => metricsIn(expr).map(({ metric }) => metric)));
  assert.deepEqual(METRICS.map(({ name }) => name).filter((name) => !shown.has(name)).toSorted(), Object.keys(NOT_SHOWN).toSorted());
});

describe('metricsIn', () => {
  test('finds metrics with the labels of their matchers, and nothing else', () => {
    assert.deepEqual(metricsIn('sum by (shard, side) (rate(a_total{shard=~"$shard",x!="by z"}[5m])) or on (shard) 0 * max(b) > bool 1'), [
      { metric: 'a_total', labels: ['shard', 'x'] },
      { metric: 'b', labels: [] },
    ]);
  });
});
