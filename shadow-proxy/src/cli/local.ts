/**
 * `shadow-compare local`: a migration on this machine to practise on. A Redis, a KeyDB and the proxy between them,
 * started as the demo starts them; they stay until they are told to go. Terraform's environments/local is these
 * commands.
 */
import { spawn } from 'node:child_process';
import { closeSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { InvalidArgumentError, type Command } from 'commander';
import getPort from 'get-port';
import { stringify } from 'yaml';
import { Daemon } from '../shard/daemon.js';
import { afterDeath } from '../local/guard.js';
import { startRedis, startTarget, stopServers, type LocalServer } from '../local/servers.js';
import { createLogger } from '../telemetry/log.js';
import { loadPlan } from '../plan/load.js';
import { onStop } from '../io/signals.js';
import { connectApps, drive, WORKLOADS } from './demo/traffic.js';
import { CliError, duration, exitCode, positive } from './exit.js';
import { Folder, type Running, type Server } from './local/folder.js';

interface UpOptions {
  readonly directory: string;
  readonly redisPort?: number;
  readonly keydbPort?: number;
  readonly proxyPort?: number;
  readonly adminPort?: number;
  readonly id: string;
  readonly json?: boolean;
}

const START_MS = 60_000;
const DIRECTORY = './local-migration';

export function addLocal(program: Command): void {
  const local = program
    .command('local')
    .description(
      'A migration on this machine to practise on: a Redis, a KeyDB and the proxy between them, all workloads in stage off',
    );
  const command = (name: string, description: string, hidden = false): Command =>
    local
      .command(name, { hidden })
      .description(description)
      .option('--directory <folder>', 'its plan, state and log', DIRECTORY);
  const withServers = (into: Command): Command =>
    into
      .option('--redis-port <port>', 'of the source (default: a free one)', port)
      .option('--keydb-port <port>', 'of the target (default: a free one)', port)
      .option('--proxy-port <port>', 'where clients connect to (default: a free one)', port)
      .option('--admin-port <port>', 'of the admin HTTP (default: a free one)', port)
      .option('--id <text>', 'kept in running.json: who started it', 'by hand');
  withServers(command('up', 'Start it, and come back when it serves'))
    .option('--json', 'print one JSON object')
    .action(up);
  withServers(command('serve', 'Be it: the process that up starts, and that stays', true)).action(serve);
  command('down', 'End it, and leave nothing').action(down);
  command('traffic', 'Send it what two client libraries send: 70 % reads, 30 % writes, on six workloads')
    .option('--for <duration>', 'how long', duration, 30_000)
    .option('--rate <n>', 'about so many commands a second (default: as many as are answered)', positive)
    .action(traffic);
}

async function up(options: UpOptions): Promise<void> {
  const folder = new Folder(options.directory);
  await folder.claim();
  const log = openSync(folder.file('log'), 'a');
  const args = ['local', 'serve', '--directory', folder.path, '--id', options.id, ...portArguments(options)];
  const child = spawn(process.execPath, [process.argv[1], ...args], { detached: true, stdio: ['ignore', log, log] });
  closeSync(log);
  let ended = false;
  child.once('exit', () => (ended = true)).once('error', () => (ended = true));
  for (const deadline = Date.now() + START_MS; !ended && Date.now() < deadline; await sleep(50)) {
    const running = await folder.running();
    if (running === null) continue;
    child.unref();
    process.stdout.write(options.json ? `${JSON.stringify(running, null, 2)}\n` : describe(running));
    return;
  }
  const reason = folder.log() || `it did not serve within ${START_MS / 1000} s`;
  if (!ended) child.kill('SIGKILL');
  folder.remove();
  throw new CliError('start', reason, exitCode.fails);
}

/** The process that stays: the servers end with it, and with them the folder's running.json. */
async function serve(options: UpOptions): Promise<void> {
  const folder = new Folder(options.directory);
  const running = folder.file('running.json');
  const callOff = afterDeath('rm -f -- "$1"', running);
  try {
    const [source, target] = [
      await startRedis({ port: options.redisPort }),
      await startTarget({ port: options.keydbPort }),
    ];
    const [proxy, admin] = [options.proxyPort ?? (await getPort()), options.adminPort ?? (await getPort())];
    writeFileSync(folder.file('migration.yaml'), planOf(source, target, proxy, admin));
    const daemon = await Daemon.start(loadPlan(folder.file('migration.yaml')), null, createLogger('info'));
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
      plan: folder.file('migration.yaml'),
    });
    const lost = await Promise.race([stopped, daemon.lost]);
    if (lost instanceof Error) {
      // Fenced, by rollback --offline or another proxy. The servers stay, as they would: the next proxy needs them.
      process.stderr.write(
        `${lost.message}\nStart the proxy again: shadow-proxy --plan ${folder.file('migration.yaml')}\n`,
      );
      // Waiting for a signal alone keeps no process.
      const alive = setInterval(() => undefined, 60_000);
      await stopped;
      clearInterval(alive);
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
  process.stdout.write(ran ? `The migration in ${folder.path} has ended.\n` : `Nothing runs in ${folder.path}.\n`);
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
      `nothing runs in ${directory}: start it with shadow-compare local up --directory ${directory}`,
      exitCode.usage,
    );
  const apps = await connectApps(Number(new URL(running.proxy).port));
  try {
    const until = Date.now() + forMs;
    const { errors, first } = await drive(apps, () => Date.now() >= until, rate);
    process.stdout.write(
      errors === 0 ? 'No client saw an error.\n' : `${errors} commands failed, the first with: ${first}\n`,
    );
    process.exitCode = errors === 0 ? exitCode.holds : exitCode.fails;
  } finally {
    for (const app of apps) app.close();
  }
}

const portArguments = ({ redisPort, keydbPort, proxyPort, adminPort }: UpOptions): string[] =>
  Object.entries({
    '--redis-port': redisPort,
    '--keydb-port': keydbPort,
    '--proxy-port': proxyPort,
    '--admin-port': adminPort,
  }).flatMap(([option, value]) => (value === undefined ? [] : [option, String(value)]));

const serverOf = ({ label, url, port, pid }: LocalServer): Server => ({ label, url, port, pid: pid! });

/** The demo's workloads, before their first step; gates that minutes of practice can open. */
function planOf(source: LocalServer, target: LocalServer, proxy: number, admin: number): string {
  const plan = {
    version: 1,
    name: 'practice',
    shards: [{ name: 'practice', listen: `redis://127.0.0.1:${proxy}`, source: source.url, target: target.url }],
    workloads: WORKLOADS.map((workload) => ({ ...workload, stage: 'off' })),
    gates: { minCompared: 500, minMinutes: 0.1, maxP99Ratio: 20, maxAllowedShare: 1 },
    admin: { listen: `127.0.0.1:${admin}` },
    state: './state',
  };
  return `# For practice: the gates are small, and say nothing about a real migration.\n${stringify(plan)}`;
}

const describe = ({ source, target, proxy, plan }: Running): string =>
  [
    ...(target.standIn === null
      ? []
      : [`NOTE: there is no KeyDB on this machine, so ${target.standIn} stands in for it.`]),
    `Source: ${source.label} at ${source.url}. Target: ${target.label} at ${target.url}.`,
    `Clients connect to ${proxy}. Next: shadow-compare status --plan ${plan}`,
    '',
  ].join('\n');

function port(text: string): number {
  const value = /^\d+$/.test(text) ? Number(text) : NaN;
  if (!(value >= 1 && value <= 65535)) throw new InvalidArgumentError('A number from 1 to 65535 is allowed.');
  return value;
}
