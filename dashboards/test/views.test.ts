/**
 * One migration, seen three ways: by Prometheus' text, by OTLP, and by Datadog's check. They agree in every number.
 *
 * Needs real sockets: a scrape, OTLP and Datadog's check, each over HTTP.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { Admin } from '../../shadow-proxy/src/admin/admin-server.js';
import { startOtel } from '../../shadow-proxy/src/otel/otel.js';
import type { Scrape } from '../../shadow-proxy/src/telemetry/metrics.js';
import { startReceiver } from '../../shadow-proxy/test/support/notices.js';
import { withRig, type Rig } from '../../shadow-proxy/test/support/rig.js';
import { until } from '../../shadow-proxy/test/support/shard.js';
import { named, tagOf } from '../src/datadog/names.js';
import { ROOT } from './files.js';

const run = promisify(execFile);

/** By name and labels, in order. */
type View = ReadonlyMap<string, number>;
type Labels = Readonly<Record<string, string>>;

const seriesOf = (name: string, labels: Labels): string =>
  `${name} ${Object.keys(labels)
    .toSorted()
    .map((label) => `${label}:${labels[label]}`)
    .join(',')}`;

/** They go on while one looks after the other. */
const MOVING = /uptime|_minute_|lag_|elapsed|start_timestamp/;

/** From off to live and back, with a difference that is found. */
async function migrate({ client: connect, shard: { shard, settled }, target }: Rig): Promise<void> {
  const client = connect();
  const stage = async (to: 'dualwrite' | 'shadow' | 'live'): Promise<void> => {
    await settled();
    await shard.changeStage({ workload: 'default', stage: to, force: true });
    for (let i = 0; i < 50; i++) await client.set(`key:${i}`, to);
  };
  await stage('dualwrite');
  await stage('shadow');
  await settled();
  const direct = new Redis({ port: target.port });
  await direct.set('key:1', 'other');
  direct.disconnect();
  for (let i = 0; i < 50; i++) await client.get(`key:${i}`);
  await client.smembers('none');
  await stage('live');
  await stage('shadow');
  await settled();
}

/** What a Prometheus reads. */
async function prometheusView(url: string): Promise<View> {
  const text = await (await fetch(url)).text();
  return new Map(
    [...text.matchAll(/^(shadow_proxy_\w+)(?:\{(.*)\})? (\S+)$/gm)].map(([, name, labels = '', value]) => [
      seriesOf(name, Object.fromEntries([...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label, is]) => [label, is]))),
      Number(value),
    ]),
  );
}

interface Point {
  readonly attributes: readonly { readonly key: string; readonly value: { readonly stringValue: string } }[];
  readonly asDouble?: number;
  readonly asInt?: number;
}

/** What a receiver of OTLP gets. */
async function otlpView(t: TestContext, scrape: () => Scrape): Promise<View> {
  const receiver = await startReceiver(t);
  const otlp = { url: receiver.url, headers: {}, traceShare: 0, metricsMs: 60_000 };
  const plan = { name: 'views', admin: { host: '127.0.0.1', port: 0, token: null } };
  const otel = startOtel({ otlp, plan: () => plan as never, scrape, logger: pino({ level: 'silent' }) });
  await otel.close();
  const [{ body }] = receiver.received;
  const metrics = body.resourceMetrics[0].scopeMetrics[0].metrics as {
    readonly name: string;
    readonly sum?: { readonly dataPoints: readonly Point[] };
    readonly gauge?: { readonly dataPoints: readonly Point[] };
  }[];
  return new Map(
    metrics
      .filter(({ name }) => name.startsWith('shadow_proxy_'))
      .flatMap(({ name, sum, gauge }) =>
        (sum ?? gauge)!.dataPoints.map(({ attributes, asDouble, asInt }): [string, number] => [
          seriesOf(name, Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue]))),
          asDouble ?? asInt!,
        ]),
      ),
  );
}

/** What Datadog's own check sends by the kit's configuration; null, with a line, where it is not installed. */
async function datadogView(t: TestContext, url: string): Promise<View | null> {
  const python = process.env.DATADOG_PYTHON ?? 'python3';
  const isThere = await run(python, ['-c', 'import datadog_checks.base']).then(
    () => true,
    () => false,
  );
  if (!isThere) {
    t.diagnostic("NOT TESTED with Datadog's check: DATADOG_PYTHON has no datadog-checks-base");
    return null;
  }
  const script = join(ROOT, 'dashboards/test/datadog-check.py');
  const { stdout } = await run(python, [script, join(ROOT, 'dashboards/datadog/openmetrics.yaml'), url]);
  const samples = JSON.parse(stdout) as { name: string; value: number; tags: string[] }[];
  return new Map(
    samples.map(({ name, value, tags }) => {
      const labels = tags.filter((tag) => !/^(endpoint|instance):/.test(tag)).map((tag) => tag.split(/:(.*)/, 2));
      return [seriesOf(name, Object.fromEntries(labels) as Labels), value];
    }),
  );
}

test('/metrics, OTLP and Datadog show the same migration in the same numbers', async (t) => {
  await withRig({ default: { stage: 'off' }, alike: true, name: 'cache-0' }, async (rig) => {
    await migrate(rig);
    const { shard } = rig.shard;
    // The servers have answered what only they know.
    await until(() => shard.scrape().watch.bypassing !== null);
    const admin = await Admin.start({ host: '127.0.0.1', port: 0, token: () => null, shards: () => [shard] });
    t.after(() => admin.stop());
    const url = `http://127.0.0.1:${admin.port}/metrics`;
    const prometheus = await prometheusView(url);
    const otlp = await otlpView(t, () => ({ shards: [shard.scrape()], waiting: [], receivers: [] }));
    assert.deepEqual([...otlp.keys()].toSorted(), [...prometheus.keys()].toSorted());
    const still = [...prometheus].filter(([series]) => !MOVING.test(series));
    assert.ok(still.length > 150, `${still.length} series`);
    for (const [series, value] of still) assert.equal(otlp.get(series), value, series);
    const of = (name: string, labels: Labels = {}): number =>
      prometheus.get(seriesOf(name, { shard: 'cache-0', ...labels }))!;
    assert.equal(of('shadow_proxy_mismatches_total', { kind: 'value' }), 1);
    assert.equal(of('shadow_proxy_flips_total'), 4);

    const datadog = await datadogView(t, url);
    if (datadog === null) return;
    const different = still.flatMap(([series, value]) => {
      const [metric, labels] = series.split(/ (.*)/, 2);
      const { namespace, name, kind } = named(metric);
      if (kind === 'time_elapsed') return [];
      const tags = labels.split(',').map((each) => each.split(/:(.*)/, 2));
      const sent = datadog.get(
        seriesOf(
          `${namespace}.${name}${kind === 'counter' ? '.count' : ''}`,
          Object.fromEntries(tags.map(([label, is]) => [tagOf(label), is])),
        ),
      );
      return sent === value ? [] : [`${series}: ${value}, and Datadog has ${sent}`];
    });
    assert.deepEqual(different, []);
  });
});
