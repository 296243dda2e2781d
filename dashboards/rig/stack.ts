/**
 * What the dashboards look at, for real and on loopback: a Redis, two KeyDB nodes that replicate from each other, the
 * proxy, the exporters, and a Prometheus that scrapes them all by the kit's own configuration and rules.
 */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../shadow-proxy/src/local/port.js';
import { parse, stringify } from 'yaml';
import { onPath } from '../../shadow-proxy/src/local/program.js';
import { Rig } from '../../loadtest/rig/rig.js';
import { missingServers } from '../../loadtest/rig/servers.js';
import { ActivePair } from '../../shadow-proxy/src/local/active-pair.js';
import { startRedis, type LocalServer } from '../../shadow-proxy/src/local/servers.js';
import { Prometheus } from './prometheus.js';

/** What a monitoring host gets, from the compiled file. */
const KIT = fileURLToPath(new URL('../../../dashboards/prometheus/', import.meta.url));

export const SHARD = 'cache-0';
export const SCRAPE_SECONDS = 1;
/** The proxy, a Redis, two KeyDB nodes, the host. */
const TARGETS = 5;

const READY_MS = 60_000;

const PROGRAMS = {
  prometheus: 'prometheus (apt-get install prometheus)',
  'prometheus-redis-exporter': 'prometheus-redis-exporter (apt-get install prometheus-redis-exporter)',
  'prometheus-node-exporter': 'prometheus-node-exporter (apt-get install prometheus-node-exporter)',
};

/** Keeps a time for each key, so that a counter with one writer is safe. */
const MEMORY = { maxmemory: '256mb', 'maxmemory-policy': 'volatile-lru' };

export interface Stack {
  readonly rig: Rig;
  readonly source: LocalServer;
  /** Its node `a` is the target. */
  readonly pair: ActivePair;
  readonly proxy: { readonly port: number; readonly admin: string };
  readonly prometheus: Prometheus;
}

/** What is not on this machine, with what to do. */
export async function missing(): Promise<readonly string[]> {
  const programs = Object.entries(PROGRAMS).flatMap(([name, what]) => (onPath(name) === null ? [what] : []));
  return [...(await missingServers()), ...programs];
}

/**
 * Ends with `rig.close()`, or with this process.
 * @param seed fills the source before anything looks at it
 */
export async function startStack(seed: (source: LocalServer) => Promise<void> = async () => undefined): Promise<Stack> {
  const rig = new Rig();
  try {
    const source = await startRedis({ config: MEMORY });
    await seed(source);
    const pair = await ActivePair.start({ config: MEMORY });
    rig.beforeClose(() => pair.stop());
    const proxy = await startProxy(rig, source.url, pair.nodes.a.url);
    const prometheus = await startPrometheus(rig, proxy.admin, {
      source: [source.port],
      target: [pair.nodes.a.port, pair.nodes.b.port],
    });
    return { rig, source, pair, proxy, prometheus };
  } catch (error) {
    await rig.close();
    throw error;
  }
}

async function startProxy(rig: Rig, source: string, target: string): Promise<Stack['proxy']> {
  const [port, admin] = [await freePort(), await freePort()];
  const plan = rig.file('migration.yaml');
  writeFileSync(plan, stringify(planOf(source, target, port, admin, rig.file('state'))));
  const main = fileURLToPath(new URL('../../shadow-proxy/src/main.js', import.meta.url));
  await rig.start('shadow-proxy', port, process.execPath, [main, '--first-start', '--plan', plan]);
  return { port, admin: `127.0.0.1:${admin}` };
}

/** The workloads are those of the demo's traffic, all of them off: the first day. */
const planOf = (source: string, target: string, port: number, admin: number, state: string): object => ({
  version: 1,
  name: 'dashboards',
  shards: [{ name: SHARD, listen: `redis://127.0.0.1:${port}`, source, target, region: 'eu' }],
  workloads: [
    { name: 'sessions', keys: ['session:*'], class: 'read-mostly' },
    { name: 'api-cache', keys: ['api:*'], class: 'read-mostly' },
    { name: 'rate-limits', keys: ['rl:*'], class: 'counter', writer: 'eu' },
    { name: 'leaderboards', keys: ['board:*'], class: 'leaderboard', writer: 'eu' },
    { name: 'auth-cache', keys: ['auth:*'], class: 'critical' },
    { name: 'feature-flags', keys: ['flag:*'], class: 'critical' },
  ],
  gates: { minCompared: 500, minMinutes: 1 },
  knownClients: ['redis_exporter'],
  topology: { mode: 'active-active', regions: ['eu', 'us'] },
  admin: { listen: `127.0.0.1:${admin}` },
  state,
});

async function startPrometheus(
  rig: Rig,
  admin: string,
  servers: Readonly<Record<string, readonly number[]>>,
): Promise<Prometheus> {
  const [port, redisExporter, nodeExporter] = [await freePort(), await freePort(), await freePort()];
  await rig.start('redis-exporter', redisExporter, 'prometheus-redis-exporter', [
    '-web.listen-address',
    `127.0.0.1:${redisExporter}`,
    '-redis.addr',
    '',
  ]);
  await rig.start('node-exporter', nodeExporter, 'prometheus-node-exporter', [
    `--web.listen-address=127.0.0.1:${nodeExporter}`,
  ]);
  const config = writeConfig(rig, {
    'shadow-proxy': [{ targets: [admin], labels: { shard: SHARD } }],
    'redis-exporter': Object.entries(servers).flatMap(([side, ports]) =>
      ports.map((server) => askedFor(server, side, redisExporter)),
    ),
    node: [{ targets: [`127.0.0.1:${nodeExporter}`] }],
    haproxy: [],
    alertmanager: [],
  });
  await rig.start('prometheus', port, 'prometheus', [
    `--config.file=${config}`,
    `--storage.tsdb.path=${rig.file('data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ]);
  const prometheus = new Prometheus(`http://127.0.0.1:${port}`);
  await ready(prometheus);
  return prometheus;
}

/** It listens before it answers. */
async function ready({ url }: Prometheus): Promise<void> {
  for (const deadline = Date.now() + READY_MS; !(await fetch(`${url}/-/ready`)).ok; await sleep(100))
    if (Date.now() > deadline) throw new Error('Prometheus was not ready in time');
}

/** One exporter asks all servers, as Ansible has it for sources; each is known by its own address. */
const askedFor = (server: number, side: string, exporter: number): Target => ({
  targets: [`127.0.0.1:${exporter}`],
  labels: {
    __metrics_path__: '/scrape',
    __param_target: `redis://127.0.0.1:${server}`,
    instance: `127.0.0.1:${server}`,
    side,
    shard: SHARD,
  },
});

interface Target {
  readonly targets: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
}

/** The kit's own configuration with its rules, in a hurry. @returns the file */
function writeConfig(rig: Rig, targets: Readonly<Record<string, readonly Target[]>>): string {
  const folder = rig.file('prometheus');
  cpSync(KIT, folder, { recursive: true });
  for (const name of ['targets', 'tokens']) mkdirSync(join(folder, name), { recursive: true });
  for (const [job, of] of Object.entries(targets)) writeFileSync(join(folder, 'targets', `${job}.yml`), stringify(of));
  writeFileSync(join(folder, 'tokens', 'shadow-proxy'), 'the plan has none');
  const file = join(folder, 'prometheus.yml');
  const config = parse(readFileSync(file, 'utf8')) as { global: object };
  const often = `${SCRAPE_SECONDS}s`;
  writeFileSync(
    file,
    stringify({ ...config, global: { ...config.global, scrape_interval: often, evaluation_interval: often } }),
  );
  return file;
}

/** Every target has been scraped often enough to tell a rate. */
export async function scraped({ prometheus }: Stack): Promise<void> {
  const often = 'count(count_over_time(up[5m]) >= 5 and up == 1)';
  for (const deadline = Date.now() + 60_000; Date.now() < deadline; await sleep(200)) {
    const [found] = await prometheus.instant(often);
    if (found?.points[0][1] === TARGETS) return;
  }
  throw new Error(`not all ${TARGETS} targets were scraped: ${JSON.stringify(await prometheus.instant('up'))}`);
}
