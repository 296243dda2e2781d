/**
 * Traces and metrics of a real shard, as a receiver of OTLP gets them.
 *
 * Needs real sockets: OTLP as a receiver gets it.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { startOtel, type Otel } from '../../../src/otel/otel.js';
import type { OpenTelemetryPlan, Plan } from '../../../src/plan/plan.js';
import { Metrics, type Scrape } from '../../../src/telemetry/metrics.js';
import { startReceiver, type HttpReceiver } from '../../support/notices.js';
import { smallPlan, toPlan } from '../../support/plans.js';
import { withRig, type Rig } from '../../support/rig.js';
import { until } from '../../support/shard.js';

const logger = pino({ level: 'silent' });

interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue: string };
}

interface Span {
  readonly traceId: string;
  readonly parentSpanId?: string;
  readonly spanId: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly Attribute[];
}

interface Point {
  readonly attributes: readonly Attribute[];
  readonly asDouble?: number;
  readonly asInt?: number;
}

interface OtlpMetric {
  readonly name: string;
  readonly sum?: { readonly dataPoints: readonly Point[]; readonly isMonotonic: boolean };
  readonly gauge?: { readonly dataPoints: readonly Point[] };
  readonly histogram?: unknown;
}

/** Starts it beside a shard that it traces. */
async function withOtel(
  t: TestContext,
  otlp: Partial<OpenTelemetryPlan>,
  change: Partial<Plan>,
  body: (rig: Rig, receiver: HttpReceiver, otel: Otel, scrape: () => Scrape) => Promise<void>,
): Promise<void> {
  const receiver = await startReceiver(t);
  receiver.answer = { status: 200, text: '{}' };
  const plan = { ...toPlan(smallPlan()), ...change };
  const shards: Rig['shard']['shard'][] = [];
  const scrape = (): Scrape => ({ shards: shards.map((each) => each.scrape()), waiting: [], receivers: [] });
  const otel = startOtel({
    otlp: { url: receiver.url, headers: { 'api-key': 'k' }, traceShare: 0, metricsMs: 0, ...otlp },
    plan: () => plan,
    scrape,
    logger,
  });
  try {
    await withRig({ alike: true, observer: otel.observer('test') ?? undefined }, async (rig) => {
      shards.push(rig.shard.shard);
      await body(rig, receiver, otel, scrape);
    });
  } finally {
    await otel.close();
  }
}

const spansOf = ({ received }: HttpReceiver): Span[] =>
  received
    .filter(({ path }) => path === '/v1/traces')
    .flatMap(({ body }) => body.resourceSpans)
    .flatMap(({ scopeSpans }) => scopeSpans)
    .flatMap(({ spans }) => spans as Span[]);

const attributesOf = ({ attributes }: Pick<Span, 'attributes'>): Record<string, string> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue]));

/** Waits for the traces of these commands: spans by the name of the command. */
async function tracesOf(receiver: HttpReceiver, ...names: readonly string[]): Promise<ReadonlyMap<string, Span[]>> {
  const roots = (): Span[] => spansOf(receiver).filter(({ parentSpanId }) => parentSpanId === undefined);
  await until(() => names.every((name) => roots().some((root) => root.name === name)));
  const all = spansOf(receiver);
  return new Map(
    names.map((name) => {
      const { traceId } = roots().findLast((root) => root.name === name)!;
      return [name, all.filter((span) => span.traceId === traceId)];
    }),
  );
}

test('a command is a trace: authority, mirror and verdict, without its key and value', async (t) => {
  await withOtel(t, { traceShare: 1 }, {}, async ({ client: connect, target, shard }, receiver, otel) => {
    const client = connect();
    await client.set('secret-key', 'secret-value');
    await client.get('secret-key');
    await shard.settled();
    const direct = new Redis({ port: target.port });
    await direct.set('secret-key', 'other');
    direct.disconnect();
    await client.getrange('secret-key', 0, -1);
    await client.expire('no-key', 10);
    await client.incr('n');
    await client.lpush('n', 'x').catch(() => undefined);
    await shard.settled();
    await otel.close();
    const traces = await tracesOf(receiver, 'SET', 'GET', 'GETRANGE', 'LPUSH');
    const root = (name: string): Span => traces.get(name)!.find(({ parentSpanId }) => parentSpanId === undefined)!;
    const set = traces.get('SET')!;
    assert.deepEqual(set.map(({ name }) => name).sort(), ['SET', 'authority', 'mirror', 'verdict']);
    for (const { name, parentSpanId } of set) if (name !== 'SET') assert.equal(parentSpanId, root('SET').spanId);
    assert.deepEqual(attributesOf(root('SET')), {
      'db.system.name': 'redis',
      'db.operation.name': 'SET',
      'shadow_proxy.shard': 'test',
      'shadow_proxy.workload': 'default',
      'shadow_proxy.stage': 'shadow',
      'shadow_proxy.verdict': 'match',
    });
    const [authority, mirror] = ['authority', 'mirror'].map((name) => set.find((span) => span.name === name)!);
    assert.ok(BigInt(root('SET').startTimeUnixNano) === BigInt(authority.startTimeUnixNano));
    assert.ok(BigInt(authority.endTimeUnixNano) <= BigInt(mirror.startTimeUnixNano));
    assert.ok(BigInt(mirror.endTimeUnixNano) <= BigInt(root('SET').endTimeUnixNano));
    assert.equal(attributesOf(root('GETRANGE'))['shadow_proxy.verdict'], 'mismatch');
    assert.equal(attributesOf(root('GETRANGE'))['shadow_proxy.verdict.detail'], 'value');
    assert.deepEqual(
      traces
        .get('LPUSH')!
        .map(({ name }) => name)
        .sort(),
      ['LPUSH', 'authority'],
      'a refused write goes nowhere',
    );
    assert.doesNotMatch(receiver.received.map(({ text }) => text).join(''), /secret-(key|value)/);
    assert.equal(receiver.received[0].headers['api-key'], 'k');
  });
});

test('where the ledger is not redacted, a trace has its key', async (t) => {
  const ledger = { ...toPlan(smallPlan()).ledger, redact: false };
  await withOtel(t, { traceShare: 1 }, { ledger }, async ({ client: connect, shard }, receiver, otel) => {
    await connect().set('shown-key', 'hidden-value');
    await shard.settled();
    await otel.close();
    const traces = await tracesOf(receiver, 'SET');
    const root = traces.get('SET')!.find(({ parentSpanId }) => parentSpanId === undefined)!;
    assert.equal(attributesOf(root)['shadow_proxy.key'], 'shown-key');
    assert.doesNotMatch(receiver.received.map(({ text }) => text).join(''), /hidden-value/);
  });
});

test('a share of the commands is traced, about as large as the plan says', async (t) => {
  await withOtel(t, { traceShare: 0.1 }, {}, async ({ client: connect, shard }, receiver, otel) => {
    const client = connect();
    const pipeline = client.pipeline();
    for (let i = 0; i < 5_000; i++) pipeline.get(`k${i}`);
    await pipeline.exec();
    await shard.settled();
    await otel.close();
    await until(() => spansOf(receiver).length > 0);
    const traced = spansOf(receiver).filter(({ name }) => name === 'GET').length;
    // Five standard deviations.
    assert.ok(traced > 390 && traced < 610, `${traced} of 5,000`);
  });
});

/** Series as `name{label="value",…}`, with labels in order. */
const seriesOf = (name: string, labels: Readonly<Record<string, string>>): string =>
  `${name}{${Object.keys(labels)
    .sort()
    .map((label) => `${label}="${labels[label]}"`)
    .join(',')}}`;

test('OTLP has the metrics of /metrics: the same names, labels and numbers', async (t) => {
  await withOtel(t, { metricsMs: 50 }, {}, async ({ client: connect, shard }, receiver, otel, scrape) => {
    const client = connect();
    for (let i = 0; i < 100; i++) await client.set(`k${i}`, 'v');
    await client.get('k1');
    await shard.settled();
    await otel.close();
    const latest = receiver.received.findLast(({ path }) => path === '/v1/metrics')!;
    const sent = latest.body.resourceMetrics[0].scopeMetrics.flatMap(
      ({ metrics }: { metrics: OtlpMetric[] }) => metrics,
    ) as OtlpMetric[];
    const text = await new Metrics(scrape).text();
    const shown = new Map(
      [...text.matchAll(/^(shadow_proxy_\w+)(?:\{(.*)\})? (\S+)$/gm)].map(([, name, labels = '', value]) => [
        seriesOf(
          name,
          Object.fromEntries([...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label, of]) => [label, of])),
        ),
        Number(value),
      ]),
    );
    const exported = new Map(
      sent
        .filter(({ name }) => name.startsWith('shadow_proxy_'))
        .flatMap(({ name, sum, gauge }) =>
          (sum ?? gauge)!.dataPoints.map(
            (point) => [seriesOf(name, attributesOf(point)), point.asDouble ?? point.asInt!] as const,
          ),
        ),
    );
    assert.ok(shown.size > 100);
    assert.deepEqual([...exported.keys()].sort(), [...shown.keys()].sort());
    // The others go on while one looks after the other.
    const moving = /uptime|_minute_|age|lag|stage_start/;
    for (const [series, value] of shown) if (!moving.test(series)) assert.equal(exported.get(series), value, series);
    assert.ok(exported.get('shadow_proxy_operations_total{shard="test"}')! > 100);
    const counters = sent.filter(({ sum }) => sum !== undefined);
    assert.ok(counters.every(({ sum }) => sum!.isMonotonic));
    assert.ok(sent.some(({ name, histogram }) => name === 'nodejs_gc_duration_seconds' && histogram !== undefined));
  });
});
