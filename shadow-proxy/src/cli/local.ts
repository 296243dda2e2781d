/**
 * `shadow-compare local`: a practice migration on this machine. It starts a Redis, a KeyDB and the proxy between them,
 * as the demo does. They run until `local down`. Terraform's environments/local uses these commands.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { InvalidArgumentError, Option, type Command } from 'commander';
import { freePort, freePorts } from '../local/port.js';
import { stringify } from 'yaml';
import { Daemon } from '../shard/daemon.js';
import { afterDeath } from '../local/guard.js';
import { startCluster } from '../local/start-cluster.js';
import { findRedis, findTarget, requireKeydb } from '../local/program.js';
import {
  standInLimits,
  standInNotice,
  startRedis,
  startTarget,
  stopServers,
  type LocalServer,
} from '../local/servers.js';
import { createLogger } from '../telemetry/log.js';
import { openPlan } from '../upstream/open-plan.js';
import { onStop } from '../io/signals.js';
import { connectApps, drive, WORKLOADS, type Tally } from './demo/traffic.js';
import { SENT_ON_CONNECT } from '../telemetry/error-origins.js';
import { count, duration as seconds, number } from '../text/figures.js';
import { quoted } from '../text/shell.js';
import { commandLine } from './admin-client.js';
import { CliError, duration, exitCode, positive } from './exit.js';
import { Folder, type Running, type Server } from './local/folder.js';
import { withManual } from './manual.js';
import { Silence, SILENCE_MS, StatusLine, waitingFor } from './silence.js';
import { stderr, stdout } from './output.js';
import { printable } from '../text/printable.js';

interface UpOptions {
  readonly directory: string;
  readonly redisPort?: number;
  readonly keydbPort?: number;
  readonly proxyPort?: number;
  readonly adminPort?: number;
  readonly cluster?: boolean;
  readonly id: string;
  readonly json?: boolean;
}

const START_MS = 60_000;
/** Extra time for replies that are still to come when the time is over, in ms. */
const LATE_MS = 10_000;
const DIRECTORY = './local-migration';

export function addLocal(program: Command): void {
  const local = program
    .command('local')
    .description('Practise on this machine: a Redis, a KeyDB and the proxy between them, all workloads in stage off');
  const command = (name: string, description: string, hidden = false): Command =>
    local
      .command(name, { hidden })
      .description(description)
      .option('--directory <folder>', 'directory for plan, state and log', DIRECTORY);
  const withServers = (into: Command): Command =>
    into
      .option('--redis-port <port>', 'port of the source (default: a free port)', port)
      .option('--keydb-port <port>', 'port of the target (default: a free port)', port)
      .option('--proxy-port <port>', 'port that clients connect to (default: a free port)', port)
      .option('--admin-port <port>', 'port of the admin address and status page (default: a free port)', port)
      .option('--cluster', 'a Redis Cluster and a KeyDB cluster of three masters each; ports are those of the first')
      .option('--id <text>', 'note for running.json: who started it', 'by hand');
  const started = withServers(command('up', 'Start it, and return when it serves'))
    .option('--json', 'print one JSON object')
    .action(up);
  withManual(started, 'shadow-compare local up', { 0: 'started', 1: 'it did not start' });
  withServers(command('serve', 'The process that up starts', true)).action(serve);
  const stopped = command('down', 'Stop it, and remove its directory').action(down);
  withManual(stopped, 'shadow-compare local down', { 0: 'stopped, or it was not running' });
  const sent = command('traffic', 'Send traffic with two client libraries: 70 % reads, 30 % writes, on six workloads')
    .addOption(new Option('--for <duration>', 'how long to send').argParser(duration).default(30_000, '30s'))
    .option('--rate <n>', 'about this many commands per second (default: as fast as replies come)', positive)
    .action(traffic);
  withManual(sent, 'shadow-compare local traffic --rate 500', {
    0: 'every command succeeded',
    1: 'commands failed',
  });
}

async function up(options: UpOptions): Promise<void> {
  // Installing a server takes time, and is reported here: the background process has no terminal.
  await findRedis();
  await (options.cluster ? requireKeydb() : findTarget());
  const folder = new Folder(options.directory);
  await requireFreePorts(options);
  await folder.claim();
  const log = openSync(folder.file('log'), 'a');
  const args = ['local', 'serve', '--directory', folder.path, '--id', options.id, ...portArguments(options)];
  const child = spawn(process.execPath, [process.argv[1], ...args], { detached: true, stdio: ['ignore', log, log] });
  closeSync(log);
  let ended = false;
  child.once('exit', () => (ended = true)).once('error', () => (ended = true));
  // Ctrl-C during the start: everything is removed.
  let stopped = false;
  const forget = onStop(
    () => (stopped = true),
    () => undefined,
  );
  const silence = new Silence('Starting both servers and the proxy');
  try {
    for (const deadline = Date.now() + START_MS; !ended && !stopped && Date.now() < deadline; await sleep(50)) {
      const running = await folder.running();
      if (running === null) continue;
      child.unref();
      silence.end();
      stdout.write(options.json ? `${JSON.stringify(running, null, 2)}\n` : describe(running, folder));
      return;
    }
  } finally {
    forget();
    silence.end();
  }
  const reason = folder.log() || `the proxy did not start within ${START_MS / 1000} s`;
  if (!ended) {
    const exit = once(child, 'exit');
    child.kill('SIGKILL');
    await exit;
  }
  folder.remove();
  if (stopped) throw new CliError('interrupted', 'stopped before it had started', exitCode.interrupted);
  throw new CliError('start', reason, exitCode.fails);
}

/** A port that is in use is reported before anything starts, and not by a server's log. */
async function requireFreePorts(options: UpOptions): Promise<void> {
  const asked = Object.entries({
    '--redis-port': options.redisPort,
    '--keydb-port': options.keydbPort,
    '--proxy-port': options.proxyPort,
    '--admin-port': options.adminPort,
  });
  const taken = new Map<number, string>();
  for (const [option, first] of asked) {
    if (first === undefined) continue;
    for (const port of portsFrom(option, first, options.cluster === true)) {
      const other = taken.get(port);
      const problem = other === undefined ? await whyNot(port) : `is that of ${other}, too`;
      const which = port === first ? '' : ` (and port ${port}, which a cluster from there needs,`;
      if (problem !== null)
        throw new CliError(
          'port',
          `${option} ${first}${which} ${problem}${which && ')'}: choose another port, or leave ${option} out`,
          exitCode.usage,
        );
      taken.set(port, option);
    }
  }
}

/** Each master of a cluster has a client port above the first one, and another port for the other nodes. */
const portsFrom = (option: string, first: number, cluster: boolean): number[] =>
  !cluster || option === '--admin-port'
    ? [first]
    : Array.from({ length: MASTERS }, (_, i) => first + i).flatMap((port) =>
        option === '--proxy-port' ? [port] : [port, port + BUS],
      );

/** Why the port cannot be opened; null if it can. */
async function whyNot(port: number): Promise<string | null> {
  if (port > 65_535) return 'is above 65535';
  const server = createServer();
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening');
    return null;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === 'EADDRINUSE' ? 'is in use' : code === 'EACCES' ? 'needs the rights of root' : message;
  } finally {
    server.close();
  }
}

/** The background process: the servers and the folder's running.json end with it. */
async function serve(options: UpOptions): Promise<void> {
  const folder = new Folder(options.directory);
  const running = folder.file('running.json');
  const callOff = afterDeath('rm -f -- "$1"', running);
  try {
    const cluster = options.cluster === true;
    const [[source, target], sides] = await (cluster ? startClusters(options) : startServers(options));
    const proxy = options.proxyPort ?? (cluster ? await freePorts(MASTERS) : await freePort());
    const admin = options.adminPort ?? (await freePort());
    writeFileSync(folder.file('migration.yaml'), planOf(sides(proxy), admin));
    const daemon = await Daemon.start(await openPlan(folder.file('migration.yaml')), null, createLogger('info'));
    const stopped = new Promise<void>((resolve) =>
      onStop(
        () => resolve(),
        () => process.exit(exitCode.fails),
      ),
    );
    folder.write({
      id: options.id,
      pid: process.pid,
      source: serverOf(source),
      target: { ...serverOf(target), standIn: target.standIn ?? null },
      proxy: `redis://127.0.0.1:${proxy}`,
      admin: `http://127.0.0.1:${admin}`,
      cluster,
      plan: folder.file('migration.yaml'),
    });
    const lost = await Promise.race([stopped, daemon.lost]);
    if (lost instanceof Error) {
      // The proxy was fenced, by rollback --offline or another proxy. The servers keep running, because the next proxy
      // needs them.
      stderr.write(`${lost.message}\nStart the proxy again: shadow-proxy --plan ${folder.file('migration.yaml')}\n`);
      await stopped;
    } else await daemon.stop();
  } finally {
    await stopServers();
    rmSync(running, { force: true });
    callOff();
  }
  process.exit(exitCode.holds);
}

async function down({ directory }: { readonly directory: string }): Promise<void> {
  const folder = new Folder(directory);
  const ran = await folder.end();
  stdout.write(
    ran
      ? `Stopped the migration in ${folder.path}, and removed the directory.\n`
      : `No migration runs in ${folder.path}.\n`,
  );
}

async function traffic({
  directory,
  for: forMs,
  rate,
}: {
  readonly directory: string;
  readonly for: number;
  readonly rate?: number;
}): Promise<void> {
  const running = await new Folder(directory).running();
  if (running === null)
    throw new CliError(
      'down',
      `no migration runs in ${directory}: start it with ${commandLine(`local up --directory ${quoted(directory)}`, {})}`,
      exitCode.usage,
    );
  const connecting = connectApps(Number(new URL(running.proxy).port), running.cluster);
  const apps = await waitingFor(`Connecting to the proxy at ${running.proxy}`, connecting);
  // A command that is never answered ends with its connection.
  const close = (): void => apps.forEach((app) => app.close());
  const late = setTimeout(close, forMs + LATE_MS);
  const until = Date.now() + forMs;
  const tally: Tally = { answered: 0, errors: 0, first: null };
  const line = new StatusLine();
  const ticks = setInterval(
    () => line.show(progressOf(tally, until - Date.now())),
    process.stderr.isTTY ? 1_000 : SILENCE_MS,
  );
  try {
    const { errors, first } = await drive(apps, () => Date.now() >= until, rate, tally);
    line.end();
    stdout.write(
      errors === 0
        ? `Every read and write of the traffic succeeded. ${ON_CONNECT}\n`
        : `${count(errors, 'command')} failed, the first with: ${printable(String(first))}\n`,
    );
    process.exitCode = errors === 0 ? exitCode.holds : exitCode.fails;
  } finally {
    clearTimeout(late);
    clearInterval(ticks);
    line.end();
    close();
  }
}

const progressOf = ({ answered, errors }: Tally, leftMs: number): string =>
  `${count(answered, 'command')} answered, ${number(errors)} failed; ${leftMs > 0 ? `${seconds(leftMs / 1_000)} left` : 'waiting for the last replies'}`;

/** The list of clients' errors counts these: the message must not contradict it. */
const ON_CONNECT = `Not counted: what the client libraries send when they connect, and work without (${Object.keys(
  SENT_ON_CONNECT,
)
  .map((command) => command.toUpperCase())
  .join(', ')}).`;

const portArguments = ({ redisPort, keydbPort, proxyPort, adminPort, cluster }: UpOptions): string[] => [
  ...(cluster === true ? ['--cluster'] : []),
  ...Object.entries({
    '--redis-port': redisPort,
    '--keydb-port': keydbPort,
    '--proxy-port': proxyPort,
    '--admin-port': adminPort,
  }).flatMap(([option, value]) => (value === undefined ? [] : [option, String(value)])),
];

const MASTERS = 3;
/** A cluster node's port for other nodes is this much higher than its port for clients. */
const BUS = 10_000;

/** The first server of each side, and the plan's part about both for the proxy's first port. */
type Sides = readonly [readonly [LocalServer, LocalServer], (proxy: number) => Readonly<Record<string, unknown>>];

async function startServers({ redisPort, keydbPort }: UpOptions): Promise<Sides> {
  const source = await startRedis({ port: redisPort });
  const target = await startTarget({ port: keydbPort });
  const shard = { name: 'practice', source: source.url, target: target.url };
  return [[source, target], (proxy) => ({ shards: [{ ...shard, listen: `redis://127.0.0.1:${proxy}` }] })];
}

async function startClusters({ redisPort, keydbPort }: UpOptions): Promise<Sides> {
  const source = await startCluster({ program: 'redis', masters: MASTERS, port: redisPort });
  const target = await startCluster({ program: 'target', masters: MASTERS, port: keydbPort });
  const cluster = { source: `redis://${source.seeds}`, target: `redis://${target.seeds}` };
  return [
    [source.masters[0], target.masters[0]],
    (proxy) => ({ cluster: { ...cluster, listen: `redis://127.0.0.1:${proxy}` } }),
  ];
}

const serverOf = ({ label, url, port, pid }: LocalServer): Server => ({ label, url, port, pid: pid! });

/** The demo's workloads before their first step, with gates that open after minutes of practice. */
function planOf(sides: Readonly<Record<string, unknown>>, admin: number): string {
  const plan = {
    version: 1,
    name: 'practice',
    ...sides,
    workloads: WORKLOADS.map((workload) => ({ ...workload, stage: 'off' })),
    gates: { minCompared: 500, minMinutes: 0.1, maxP99Ratio: 20, maxAllowedShare: 1 },
    admin: { listen: `127.0.0.1:${admin}` },
    state: './state',
  };
  return `# For practice: the gates are small, and prove nothing about a real migration.\n${stringify(plan)}`;
}

const describe = ({ source, target, proxy, admin, plan, cluster }: Running, folder: Folder): string =>
  [
    ...(target.standIn === null
      ? []
      : [standInNotice({ standIn: target.standIn }), standInLimits({ standIn: target.standIn })]),
    `Source: ${source.label} at ${source.url}. Target: ${target.label} at ${target.url}.`,
    cluster
      ? `Both are clusters of ${MASTERS} masters. Clients in cluster mode connect to ${proxy}.`
      : `Clients connect to ${proxy}.`,
    `Status page: ${admin}/`,
    'Next:',
    `  ${commandLine(`local traffic --directory ${quoted(folder.path)}`, {})}`,
    `  ${commandLine('runbook week-1', { plan })}`,
    `  ${commandLine('status', { plan })}`,
    `Stop it: ${commandLine(`local down --directory ${quoted(folder.path)}`, {})}`,
    '',
  ].join('\n');

function port(text: string): number {
  const value = /^\d+$/.test(text) ? Number(text) : NaN;
  if (!(value >= 1 && value <= 65535)) throw new InvalidArgumentError('Give a port from 1 to 65535.');
  return value;
}
