/** The dashboards of Grafana, as they are committed: their queries, metrics, variables and links. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { collectDefaultMetrics, Registry } from 'prom-client';
import { stringify } from 'yaml';
import { METRICS } from '../../shadow-proxy/src/telemetry/metrics.js';
import { withUnit } from '../preview/units.js';
import { filledIn, panelsOf, queriesOf } from '../rig/ask.js';
import { knownNames } from '../rig/exporters.js';
import { DASHBOARDS, dashboardFiles, GRAFANA } from '../src/all.js';
import { metricsIn } from './promql.js';
import { needs } from '../../shadow-proxy/test/support/needs.js';

const run = promisify(execFile);

const all = DASHBOARDS.flatMap((dashboard) => [
  ...panelsOf(dashboard).flatMap((panel) =>
    queriesOf(panel).map(({ expr }) => ({ where: `${dashboard.title}: ${panel.title}`, expr })),
  ),
  ...(dashboard.annotations?.list ?? []).flatMap(({ name, expr }) =>
    expr === undefined ? [] : [{ where: `${dashboard.title}: annotation ${name}`, expr }],
  ),
]);

describe('the dashboards', () => {
  test('are committed as they are built (npm run dashboards)', async () => {
    const files = dashboardFiles();
    assert.deepEqual((await readdir(GRAFANA)).toSorted(), [...files.keys()].toSorted());
    for (const [name, text] of files)
      assert.equal(
        await readFile(new URL(name, GRAFANA), 'utf8'),
        text,
        `dashboards/grafana/${name} is not what the sources build: npm run dashboards`,
      );
  });

  test('ask what Prometheus can parse', async (t) => {
    if (!(await needs(t, 'promtool'))) return;
    const directory = await mkdtemp(join(tmpdir(), 'dashboards-'));
    t.after(() => rm(directory, { recursive: true }));
    const rules = all.map(({ expr }, at) => ({
      record: `dashboards:expression_${at}`,
      expr: filledIn(expr, { shard: '.*', workload: '.*', instance: '.*' }, { step: 15, scrape: 15 }),
    }));
    const file = join(directory, 'rules.yml');
    await writeFile(file, stringify({ groups: [{ name: 'dashboards', rules }] }));
    await assert.doesNotReject(run('promtool', ['check', 'rules', file]));
  });

  test('name only metrics and labels that the proxy has, and metrics that the exporters have', () => {
    const registry = new Registry();
    collectDefaultMetrics({ register: registry });
    const { redis, keydb, node } = knownNames();
    const others = new Set([
      ...redis,
      ...keydb,
      ...node,
      ...registry.getMetricsAsArray().map(({ name }) => name),
      'up',
    ]);
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
      const used = new Set(
        panelsOf(dashboard).flatMap((panel) =>
          queriesOf(panel).flatMap(({ expr }) => [...expr.matchAll(/\$(?!__)(\w+)/g)].map(([, name]) => name)),
        ),
      );
      assert.deepEqual(
        [...used].filter((name) => !declared.has(name)),
        [],
        dashboard.title,
      );
      assert.deepEqual(
        [...declared].filter((name) => name !== 'datasource' && !used.has(name)),
        [],
        `${dashboard.title} offers a choice that changes nothing`,
      );
    }
  });

  test('link to each other, with variables that the reader has', () => {
    const uids = new Set(DASHBOARDS.map(({ uid }) => uid));
    for (const { title, uid, links = [], templating } of DASHBOARDS) {
      assert.equal(links.length, DASHBOARDS.length - 1, title);
      const declared = templating!.list!.map(({ name }) => name);
      for (const { url = '' } of links) {
        const [, to, carried] = /^\/d\/([\w-]+)\?(.*)$/.exec(url)!;
        assert.ok(uids.has(to) && to !== uid, url);
        for (const [, name] of carried.matchAll(/\$\{(\w+):queryparam\}/g))
          assert.ok(declared.includes(name) && name !== 'instance', url);
      }
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

describe('metricsIn', () => {
  test('finds metrics with the labels of their matchers, and nothing else', () => {
    assert.deepEqual(
      metricsIn(
        'sum by (shard, side) (rate(a_total{shard=~"$shard",x!="by z"}[5m])) or on (shard) 0 * max(b) > bool 1',
      ),
      [
        { metric: 'a_total', labels: ['shard', 'x'] },
        { metric: 'b', labels: [] },
      ],
    );
  });
});
