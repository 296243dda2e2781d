/**
 * `npm run bench:backfill`: measures how fast existing keys are copied and verified, compared with the source's own
 * limit and with RedisShake, interleaved in one run; and how much clients notice. Exit codes: 0 requirements met, 1 not
 * met, 2 wrong usage, 3 inconclusive.
 */
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import Table from 'cli-table3';
import { Command } from 'commander';
import type { JobSnapshot } from '../../../shadow-proxy/src/telemetry/snapshot.js';
import { median } from '../../figures/median.js';
import { drive, type Load, type Result } from '../bench/memtier.js';
import { machine } from '../bench/report.js';
import { count, requirePrograms, runBench } from '../command-line.js';
import { LoadtestError } from '../../rig/errors.js';
import { memory } from '../../rig/proc.js';
import { onPath } from '../../../shadow-proxy/src/local/program.js';
import { DEFAULT_PROXY_COMMAND, startProxy, type Proxy } from '../../rig/proxy.js';
import { Rig } from '../../rig/rig.js';
import { exchange, KEY_PREFIX, seed, seedCommands, startServers, type Servers } from '../../rig/servers.js';
import { dumpAll } from './dump.js';

const SHAKE = 'redis-shake';
/** The requirements: medians of the ratios of each round. */
const WANTED = {
  'backfill / bare DUMP': 0.2,
  'verify / backfill': 0.5,
  'backfill / RedisShake': 1.5,
  'clients with a backfill / without': 0.5,
};
/** With `--max-p99-ms` at this many times the p99 that clients have without a backfill, they must stay below it. */
const LIMIT_TIMES = 2;
const MAX_MIB = 400;
const BATCH = 5_000;
const LIMIT_MS = 300_000;
const CLIENT_KEYS = 100_000;

interface Options {
  readonly keys: number;
  readonly rounds: number;
  readonly seconds: number;
  readonly proxyCommand: string;
  readonly out?: string;
}

/** Rates in keys per second. */
interface Round {
  readonly dump: number;
  readonly backfill: number;
  readonly verify: number;
  /** Null if it is not on the PATH. */
  readonly shake: number | null;
  /** Clients' operations per second: alone, and during a backfill without limits. */
  readonly alone: number;
  readonly beside: number;
  /** The limit that was set, the clients' latency with it, in ms, and the speed of the backfill meanwhile. */
  readonly limited: { readonly limitMs: number; readonly p99Ms: number; readonly keysPerSecond: number };
}

async function main(): Promise<number> {
  const options = parse();
  await requirePrograms();
  if (!onPath(SHAKE)) process.stderr.write(`${SHAKE} is not on the PATH: RedisShake is left out\n`);
  const rig = new Rig();
  try {
    return await bench(rig, options);
  } finally {
    await rig.close();
  }
}

async function bench(rig: Rig, options: Options): Promise<number> {
  const servers = await startServers(rig);
  const keys = await fill(servers, options.keys);
  const proxy = await startProxy(rig, servers, options.proxyCommand);
  const rounds: Round[] = [];
  for (let i = 0; i < options.rounds; i++) {
    rounds.push(await round(rig, servers, proxy, keys, options));
    process.stderr.write(`round ${i + 1}/${options.rounds}: ${JSON.stringify(rounds[i])}\n`);
  }
  const peak = (memory(proxy.pid)?.peak ?? 0) / 2 ** 20;
  return report(rounds, peak, options);
}

async function round(
  rig: Rig,
  servers: Servers,
  proxy: Proxy,
  keys: readonly string[],
  options: Options,
): Promise<Round> {
  const since = performance.now();
  await dumpAll(servers.source.port, keys);
  const dump = (keys.length / (performance.now() - since)) * 1000;
  await empty(servers);
  const backfill = rateOf(await run(proxy, { kind: 'backfill', again: true }), 'copied', keys.length);
  const verify = rateOf(await run(proxy, { kind: 'verify' }), 'verified', keys.length);
  const shake = onPath(SHAKE) ? await shakeRate(rig, servers, keys.length) : null;
  const load = { clients: 50, rate: null, pipeline: 1, seconds: options.seconds, valueBytes: 64, keys: CLIENT_KEYS };
  const seeds = seedCommands(CLIENT_KEYS, 64);
  for (const server of [servers.source, servers.target]) await seed(server, seeds, CLIENT_KEYS);
  const alone = await drive(rig, proxy.port, load);
  const beside = await driveBeside(rig, proxy, load, {});
  const limitMs = alone.p99 * LIMIT_TIMES;
  const limited = await driveBeside(rig, proxy, load, { maxP99Ms: limitMs });
  await removeClientsKeys(servers);
  return {
    dump,
    backfill,
    verify,
    shake,
    alone: alone.opsPerSecond,
    beside: beside.opsPerSecond,
    limited: { limitMs, p99Ms: limited.p99, keysPerSecond: limited.keysPerSecond },
  };
}

/** Runs clients during a backfill with these limits. */
async function driveBeside(
  rig: Rig,
  proxy: Proxy,
  load: Load,
  limits: object,
): Promise<Result & { keysPerSecond: number }> {
  await order(proxy, { kind: 'backfill', again: true, limits });
  const result = await drive(rig, proxy.port, load);
  const job = await jobOf(proxy);
  if (job.state !== 'running') process.stderr.write('the backfill ended before the clients did: take more --keys\n');
  await fetch(`${proxy.admin}/api/jobs`, { method: 'DELETE' });
  await untilEnded(proxy);
  return { ...result, keysPerSecond: job.keysPerSecond };
}

/** Half of the keys are strings of 100 bytes, half are small hashes. */
async function fill({ source }: Servers, count: number): Promise<string[]> {
  const keys: string[] = [];
  for (let from = 0; from < count; from += BATCH) {
    const commands: string[] = [];
    for (let i = from; i < Math.min(count, from + BATCH); i++) {
      const key = i % 2 === 0 ? `string:${i}` : `hash:${i}`;
      keys.push(key);
      const noise = `${(i * 2_654_435_761) % 4_294_967_296}`.padStart(10, '0').repeat(10);
      commands.push(
        i % 2 === 0
          ? command('SET', key, noise)
          : command('HSET', key, 'id', `${i}`, 'name', noise.slice(0, 20), 'at', noise.slice(20, 33)),
      );
    }
    await exchange(source, Buffer.from(commands.join('')));
  }
  return keys;
}

const command = (...args: string[]): string =>
  `*${args.length}\r\n${args.map((a) => `$${a.length}\r\n${a}\r\n`).join('')}`;
const empty = ({ target }: Servers): Promise<Buffer> => exchange(target, Buffer.from(command('FLUSHALL')));

async function removeClientsKeys(servers: Servers): Promise<void> {
  const keys = Array.from({ length: CLIENT_KEYS }, (_, i) => `${KEY_PREFIX}${i + 1}`);
  for (const server of [servers.source, servers.target])
    await exchange(server, Buffer.from(command('UNLINK', ...keys)));
}

// ── the proxy's jobs ────────────────────────────────────────────────────────────────────────────────────────────

const jobOf = async ({ admin }: Proxy): Promise<JobSnapshot> =>
  ((await (await fetch(`${admin}/api/jobs`)).json()) as { jobs: { job: JobSnapshot }[] }).jobs[0].job;

async function order({ admin }: Proxy, body: object): Promise<void> {
  const response = await fetch(`${admin}/api/jobs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new LoadtestError('MEASUREMENT', await response.text());
}

async function untilEnded(proxy: Proxy): Promise<JobSnapshot> {
  for (const deadline = Date.now() + LIMIT_MS; Date.now() < deadline; await sleep(50)) {
    const job = await jobOf(proxy);
    if (job.state !== 'running') return job;
  }
  throw new LoadtestError('MEASUREMENT', `the job did not end within ${LIMIT_MS / 1000} s`);
}

async function run(proxy: Proxy, body: object): Promise<JobSnapshot> {
  await order(proxy, body);
  return untilEnded(proxy);
}

function rateOf(job: JobSnapshot, what: 'copied' | 'verified', keys: number): number {
  const differences = Object.values(job.differences).reduce((a, b) => a + b, 0);
  if (job.state !== 'done' || job[what] < keys || job.failed > 0 || differences > 0)
    throw new LoadtestError('MEASUREMENT', `the ${job.kind} is not what it should be: ${JSON.stringify(job)}`);
  return (keys / (Date.parse(job.endedAt!) - Date.parse(job.startedAt))) * 1000;
}

// ── RedisShake with the replication stream: its scan mode cannot write to KeyDB ─────────────────────────────────

async function shakeRate(rig: Rig, servers: Servers, keys: number): Promise<number> {
  await empty(servers);
  const file = rig.file('shake.toml');
  const settings = `[sync_reader]\naddress = "127.0.0.1:${servers.source.port}"\n[redis_writer]\naddress = "127.0.0.1:${servers.target.port}"\n`;
  writeFileSync(
    file,
    `${settings}[advanced]\ndir = "${rig.file('shake')}"\nrdb_restore_command_behavior = "rewrite"\n`,
  );
  const since = performance.now();
  // RedisShake never stops following the source: it is stopped when the target has all keys.
  const stop = rig.begin(SHAKE, onPath(SHAKE)!, [file]);
  for (const deadline = Date.now() + LIMIT_MS; ; await sleep(20)) {
    if (Number(/:(\d+)/.exec((await exchange(servers.target, Buffer.from(command('DBSIZE')))).toString())?.[1]) >= keys)
      break;
    if (Date.now() > deadline) throw new LoadtestError('MEASUREMENT', 'RedisShake did not copy all keys in time');
    rig.assertAlive();
  }
  const rate = (keys / (performance.now() - since)) * 1000;
  await stop();
  return rate;
}

// ── results ─────────────────────────────────────────────────────────────────────────────────────────────────────

function report(rounds: readonly Round[], peakMib: number, { keys, out }: Options): number {
  const ratios: Readonly<Record<keyof typeof WANTED, readonly (number | null)[]>> = {
    'backfill / bare DUMP': rounds.map((r) => r.backfill / r.dump),
    'verify / backfill': rounds.map((r) => r.verify / r.backfill),
    'backfill / RedisShake': rounds.map((r) => (r.shake === null ? null : r.backfill / r.shake)),
    'clients with a backfill / without': rounds.map((r) => r.beside / r.alone),
  };
  const speeds = new Table({ head: ['', 'median', 'min – max'], style: { head: [], border: [] } });
  for (const name of ['dump', 'backfill', 'verify', 'shake', 'alone', 'beside'] as const) {
    const values = rounds.flatMap((r) => r[name] ?? []);
    if (values.length > 0)
      speeds.push([
        TITLES[name],
        whole(median(values)!),
        `${whole(Math.min(...values))} – ${whole(Math.max(...values))}`,
      ]);
  }
  const judged = new Table({ head: ['ratio', 'median', 'min – max', 'wanted', ''], style: { head: [], border: [] } });
  let holds = peakMib < MAX_MIB;
  for (const [name, wanted] of Object.entries(WANTED)) {
    const values = ratios[name as keyof typeof WANTED].filter((value) => value !== null);
    if (values.length === 0) {
      judged.push([name, '–', 'not on the PATH', `≥ ${wanted}`, 'left out']);
      continue;
    }
    const ok = median(values)! >= wanted;
    holds &&= ok;
    judged.push([
      name,
      median(values)!.toFixed(2),
      `${Math.min(...values).toFixed(2)} – ${Math.max(...values).toFixed(2)}`,
      `≥ ${wanted}`,
      ok ? 'holds' : 'FAILS',
    ]);
  }
  const p99 = rounds.map(({ limited: { p99Ms, limitMs } }) => p99Ms / limitMs);
  const stays = median(p99)! <= 1;
  holds &&= stays;
  const meanwhile = whole(median(rounds.map(({ limited }) => limited.keysPerSecond))!);
  judged.push([
    `clients' p99 / --max-p99-ms (${meanwhile} keys/s)`,
    median(p99)!.toFixed(2),
    `${Math.min(...p99).toFixed(2)} – ${Math.max(...p99).toFixed(2)}`,
    '≤ 1',
    stays ? 'holds' : 'FAILS',
  ]);
  judged.push([
    'memory of the proxy, MiB',
    peakMib.toFixed(0),
    '',
    `< ${MAX_MIB}`,
    peakMib < MAX_MIB ? 'holds' : 'FAILS',
  ]);
  process.stdout.write(
    `${machine()}\n${whole(keys)} keys, half strings of 100 bytes, half hashes of three fields; ${rounds.length} rounds\n${speeds.toString()}\n${judged.toString()}\n`,
  );
  if (out !== undefined) writeFileSync(out, `${JSON.stringify({ keys, rounds, peakMib }, null, 2)}\n`);
  return holds ? 0 : 1;
}

const TITLES = {
  dump: 'bare pipelined DUMP, keys/s',
  backfill: 'backfill, keys/s',
  verify: 'verify, keys/s',
  shake: 'RedisShake, PSYNC, keys/s',
  alone: 'clients alone, ops/s',
  beside: 'clients with a backfill, ops/s',
};

const whole = (value: number): string => Math.round(value).toLocaleString('en-US');

function parse(): Options {
  return new Command('bench:backfill')
    .description('Measure backfill and verify beside a bare DUMP and RedisShake, interleaved in one run. Needs Linux.')
    .option('--keys <n>', 'how many keys there are', count, 1_000_000)
    .option('--rounds <n>', 'rounds; the figures are their medians', count, 3)
    .option('--seconds <n>', 'how long the clients are measured, each time', count, 5)
    .option('--proxy-command <command>', 'how to run the shadow proxy; --plan FILE is added', DEFAULT_PROXY_COMMAND)
    .option('--out <file>', 'write the figures of each round as JSON')
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
    .parse()
    .opts();
}

await runBench(main);
