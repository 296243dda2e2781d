/**
 * The Helm chart: its values have the plan's own schema, and what it renders is compared with golden files, checked
 * against the schemas of Kubernetes, and the plan in it by the proxy. `npm run chart:golden` writes the golden files.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { Ajv } from 'ajv';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { type CommandFailed, run } from '../../verification/rehearsal/run.js';
import { planFrom } from '../../shadow-proxy/src/plan/load.js';
import { scratch } from '../../shadow-proxy/test/support/plans.js';
import { makeCertificates } from '../../shadow-proxy/test/support/servers.js';
import { tableOf, withTable } from '../chart/readme.js';
import { valuesSchema } from '../chart/schema.js';
import { ROOT } from '../npm/pack.js';
import { SCHEMAS, missing, toolAt } from '../../shadow-proxy/test/support/needs.js';

const CHART = join(ROOT, 'charts/shadow-proxy');
const HERE = join(ROOT, 'packaging/test/chart');
const { version: VERSION } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
const CASES = ['one-shard', 'everything', 'cluster'] as const;
type Case = (typeof CASES)[number];

// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Values = Record<string, any>;

const valuesOf = (name: Case): Values => parse(readFileSync(join(HERE, `${name}.values.yaml`), 'utf8')) as Values;

describe("the chart's values", () => {
  const defaults = parse(readFileSync(join(CHART, 'values.yaml'), 'utf8')) as Values;
  const validate = new Ajv({ strict: false }).compile(valuesSchema());
  /** What is wrong with the values of a case after `change`. */
  const problemsOf = (name: Case, change: (values: Values) => void = () => undefined): string => {
    const values = merged(defaults, valuesOf(name));
    change(values);
    validate(values);
    return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`).join('\n');
  };

  test('have the schema that is generated from the schema of the plan', () => {
    const written = readFileSync(join(CHART, 'values.schema.json'), 'utf8');
    assert.equal(written, `${JSON.stringify(valuesSchema(), null, 2)}\n`, 'run: npm run schema');
    for (const name of CASES) assert.equal(problemsOf(name), '');
  });

  test('are what the README of the chart says', () => {
    const file = join(CHART, 'README.md');
    const readme = withTable(readFileSync(file, 'utf8'), tableOf(readFileSync(join(CHART, 'values.yaml'), 'utf8')));
    if (process.env.UPDATE_GOLDEN) writeFileSync(file, readme);
    assert.equal(readFileSync(file, 'utf8'), readme, 'run: npm run chart:golden');
  });

  test('are no secrets: a password in a URL is refused, a reference is not', () => {
    const withSource = (source: unknown): string =>
      problemsOf('one-shard', ({ plan }) => ((plan as Values).shards[0].source = source));
    for (const url of ['redis://u:secret@10.0.0.1', 'redis://:$@10.0.0.1:6379', 'rediss+sentinel://u:a$b@h:1,h:2/m'])
      for (const source of [url, { url }])
        assert.match(withSource(source), /shards\/0\/source.* must NOT be valid/, url);
    for (const url of ['redis://10.0.0.1:6379', 'redis://u@10.0.0.1:6379', 'redis://u:${PW}@h:1,h:2'])
      assert.equal(withSource(url), '', url);
  });

  test('are no secrets: the URL of Slack is refused, and a password in the URL of any receiver', () => {
    const withReceiver = (receiver: Values): string =>
      problemsOf('one-shard', ({ plan }) => ((plan as Values).notify = [receiver]));
    assert.match(withReceiver({ kind: 'slack', url: 'https://example.com/T0/B0/x' }), /notify\/0 must NOT be valid/);
    for (const reference of [{ url: '${SLACK_URL}' }, { urlFile: '/run/secrets/slack/url' }])
      assert.equal(withReceiver({ kind: 'slack', ...reference }), '');
    assert.match(withReceiver({ kind: 'webhook', url: 'https://u:secret@example.com' }), /url must NOT be valid/);
    assert.equal(withReceiver({ kind: 'webhook', url: 'https://example.com:8443/' }), '');
    const traces = problemsOf(
      'one-shard',
      ({ plan }) => ((plan as Values).opentelemetry = { url: 'http://u:p@h:4318' }),
    );
    assert.match(traces, /opentelemetry\/url must NOT be valid/);
  });

  test('are a plan for pods: what the chart sets, other names and loopback are refused', () => {
    const shard = (change: Values): string =>
      problemsOf('one-shard', ({ plan }) => Object.assign((plan as Values).shards[0] as Values, change));
    assert.match(shard({ listen: 'redis://127.0.0.1:6400' }), /listen must match pattern/);
    assert.match(shard({ name: 'cache_0' }), /name must match pattern/);
    assert.match(shard({ admin: { listen: '0.0.0.0:9401' } }), /must NOT have additional properties/);
    for (const field of ['admin', 'state', 'workload'])
      assert.match(
        problemsOf('one-shard', ({ plan }) => ((plan as Values)[field] = {})),
        /plan must NOT have additional properties/,
        field,
      );
  });
});

describe('the chart', { skip: await missing('helm') }, async () => {
  const helm = async (command: string, name: Case, ...more: string[]): Promise<string> => {
    const release = command === 'template' ? ['shadow-proxy'] : [];
    const values = join(HERE, `${name}.values.yaml`);
    const args = [
      command,
      ...release,
      CHART,
      '--namespace=checkout',
      '--kube-version=1.33.0',
      '--values',
      values,
      ...more,
    ];
    return (await run([toolAt('helm')!, ...args])).stdout;
  };

  for (const name of CASES) {
    test(`renders ${name} as its golden file has it`, async () => {
      const file = join(HERE, `${name}.golden.yaml`);
      const rendered = (await helm('template', name)).replaceAll(VERSION, 'VERSION');
      if (process.env.UPDATE_GOLDEN) writeFileSync(file, rendered);
      assert.equal(rendered, readFileSync(file, 'utf8'), 'run: npm run chart:golden, and read what changed');
      await helm('lint', name, '--strict');
    });
  }

  test('refuses a plan whose replicas have no port', async () => {
    await assert.rejects(
      helm('template', 'cluster', '--set', 'plan.cluster.replicas.port=7100'),
      /plan\.cluster\.replicas is given, and the Services have no port for it/,
    );
  });

  test('renders what Kubernetes takes', { skip: await missing('kubeconform', 'kubernetes-schemas') }, async () => {
    const rendered = (
      await Promise.all(CASES.map((name) => helm('template', name, '--set', 'dashboards.enabled=true')))
    ).join('---\n');
    const wrong =
      'apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: { name: wrong }\nspec: { available: 1 }\n';
    // Custom resources: no schema of Kubernetes has them.
    const custom = ['PrometheusRule', 'ServiceMonitor'];
    const args = ['-strict', '-summary', `-skip=${custom.join(',')}`, '-schema-location', SCHEMAS];
    const options = { input: `${rendered}---\n${wrong}`, accept: [1] };
    const { stdout } = await run([toolAt('kubeconform')!, ...args], options);
    const [problem, summary, ...more] = stdout.trim().split('\n');
    assert.match(problem, /PodDisruptionBudget wrong is invalid: .*additional properties 'available' not allowed/);
    const [skipped, valid] = [true, false].map((is) => kinds(rendered).filter((kind) => custom.includes(kind) === is));
    assert.match(summary, new RegExp(`Valid: ${valid.length}, Invalid: 1, Errors: 0, Skipped: ${skipped.length}$`));
    assert.deepEqual(more, []);
  });

  test('renders a ServiceMonitor where nothing keeps Prometheus out', async () => {
    const off = ['--set', 'serviceMonitor.enabled=true', '--set', 'networkPolicy.enabled=false'];
    assert.ok(kinds(await helm('template', 'one-shard', ...off)).includes('ServiceMonitor'));
  });

  test('carries the rules and dashboards of the kit, with where the runbooks are', async () => {
    const on = ['--set', 'dashboards.enabled=true', '--set', 'prometheusRule.enabled=true'];
    const objects = (...more: string[]): Promise<Values[]> =>
      helm('template', 'one-shard', ...on, ...more).then((text) =>
        parseAllDocuments(text).flatMap((document) => (document.toJS() as Values | null) ?? []),
      );
    const rules = (all: Values[]): unknown[] =>
      all.filter(({ kind }) => kind === 'PrometheusRule').flatMap(({ spec }) => (spec as Values).groups as unknown[]);
    const plain = await objects();
    const folder = join(ROOT, 'dashboards');
    const written = readdirSync(join(folder, 'prometheus/rules')).map(
      (file) => parse(readFileSync(join(folder, 'prometheus/rules', file), 'utf8')) as Values,
    );
    assert.deepEqual(
      rules(plain),
      written.flatMap(({ groups }) => groups as unknown[]),
    );
    const placed = JSON.stringify(rules(await objects('--set', 'prometheusRule.runbooks=https://example.com/r')));
    assert.doesNotMatch(placed, /externalLabels/);
    assert.match(placed, /"runbook_url":"https:\/\/example\.com\/r\/MismatchFound\.md"/);

    const maps = plain.filter(({ metadata }) => (metadata as Values).labels.grafana_dashboard === '1');
    const files = readdirSync(join(folder, 'grafana'));
    assert.deepEqual(
      Object.fromEntries(maps.flatMap(({ data }) => Object.entries(data as Record<string, string>))),
      Object.fromEntries(files.map((file) => [file, readFileSync(join(folder, 'grafana', file), 'utf8')])),
    );
    // A ConfigMap holds 1 MiB.
    for (const { data } of maps) assert.ok(JSON.stringify(data).length < 2 ** 20);
  });

  test('renders plans that the proxy takes', async (t) => {
    for (const name of ['one-shard', 'everything'] as const) {
      const plan = planIn(await helm('template', name), t);
      assert.deepEqual(
        plan.shards.map((shard) => shard.name),
        valuesOf(name).plan.shards.map((shard: Values) => shard.name as string),
      );
      assert.equal(plan.state, '/var/lib/shadow-proxy/state');
      assert.deepEqual(plan.admin, { host: '0.0.0.0', port: 9400, token: 'secret' });
    }
  });

  test('refuses values that its schema refuses, names that are too long, and servers that nothing names', async (t) => {
    const refused = async (
      pattern: RegExp,
      change: (values: Values) => void,
      release = 'shadow-proxy',
    ): Promise<void> => {
      const values = valuesOf('one-shard');
      change(values);
      const file = join(scratch(t, { 'values.yaml': stringify(values) }), 'values.yaml');
      await assert.rejects(
        run([toolAt('helm')!, 'template', release, CHART, '--kube-version=1.33.0', '--values', file]),
        (error) => {
          assert.match((error as CommandFailed).output, pattern);
          return true;
        },
      );
    };
    await refused(/shards/, ({ plan }) => ((plan as Values).shards[0].target = 'redis://u:secret@10.0.0.1:6379'));
    await refused(
      /serviceMonitor\.enabled is true and networkPolicy\.monitoring is empty, so the NetworkPolicy keeps Prometheus out/,
      (values) => (values.serviceMonitor = { enabled: true }),
    );
    await refused(/networkPolicy\.servers is empty/, (values) => (values.networkPolicy = {}));
    await refused(/has \d+ characters, and 52 are allowed/, () => undefined, 'a'.repeat(40));
  });
});

const kinds = (text: string): string[] =>
  parseAllDocuments(text).flatMap((document) => (document.toJS() as { kind?: string } | null)?.kind ?? []);

/** The plan of the ConfigMap, with its secrets as files of this machine. */
function planIn(rendered: string, t: TestContext): ReturnType<typeof planFrom> {
  const map = parseAllDocuments(rendered)
    .map((document) => document.toJS() as { kind?: string; data: { 'migration.yaml': string } } | null)
    .find((each) => each?.kind === 'ConfigMap')!;
  const { cert, key } = makeCertificates();
  const files = { secret: 'secret\n', 'tls.crt': readFileSync(cert, 'utf8'), 'tls.key': readFileSync(key, 'utf8') };
  const directory = scratch(t, files);
  const placed = map.data['migration.yaml'].replaceAll(/\/run\/secrets\/[\w-]+\/([\w.-]+)/g, (_, file: string) =>
    join(directory, file in files ? file : 'secret'),
  );
  return planFrom(parse(placed), 'the chart', {
    directory,
    env: { REDIS_PASSWORD: 'a', KEYDB_PASSWORD: 'b', POD_IP: '10.8.0.1' },
  });
}

/** As Helm merges values: mappings are merged, all else is replaced. */
function merged(below: Values, above: Values): Values {
  const isMapping = (value: unknown): value is Values =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
  const entries = Object.entries(above).map(([name, value]) => [
    name,
    isMapping(value) && isMapping(below[name]) ? merged(below[name], value) : (value as unknown),
  ]);
  return { ...structuredClone(below), ...Object.fromEntries(entries) };
}
