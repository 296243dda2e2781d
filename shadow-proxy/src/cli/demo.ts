/**
 * `shadow-compare demo`: a real Redis, a real KeyDB, the proxy between them, and two client libraries. Then a value is
 * changed on KeyDB directly, and the proxy detects it. Everything is on loopback and in a temporary directory, and is
 * removed afterwards.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Option, type Command } from 'commander';
import { launch, type LaunchedShard } from '../shard/launch.js';
import { afterDeath } from '../local/guard.js';
import {
  standInLimits,
  standInNotice,
  startRedis,
  startTarget,
  stopServers,
  type LocalServer,
} from '../local/servers.js';
import { createLogger } from '../telemetry/log.js';
import { planFrom } from '../plan/load.js';
import { list, number } from '../text/figures.js';
import { typed } from '../text/invocation.js';
import type { LedgerEntry } from '../telemetry/ledger.js';
import { sum } from '../telemetry/snapshot.js';
import { onStop } from '../io/signals.js';
import { connectApps, drive, WORKLOADS, type App } from './demo/traffic.js';
import { duration, exitCode, outputClosed } from './exit.js';
import { withManual } from './manual.js';
import { LiveView, renderMismatch } from './view.js';
import { stdout } from './output.js';

interface DemoOptions {
  readonly for: number;
  readonly json?: boolean;
}

const SETTLE_MS = 5_000;
const TAMPERED = 'flag:checkout';

export function addDemo(program: Command): void {
  const command = program
    .command('demo')
    .description(
      'See it work: starts a Redis, a KeyDB and traffic, and detects a changed value (under a minute, leaves no files)',
    )
    .addOption(new Option('--for <duration>', 'how long the traffic runs').argParser(duration).default(15_000, '15s'))
    .option('--json', 'print one JSON object at the end')
    .action(async (options: DemoOptions) => {
      process.exitCode = await demo(options);
    });
  withManual(command, 'shadow-compare demo', {
    0: 'it works: no mismatch, and the changed value was detected',
    1: 'it does not work here',
    3: 'there is no redis-server on this machine, and none can be brought',
  });
}

/** The result of the demo. */
interface Finding {
  readonly operations: number;
  readonly compared: number;
  /** Mismatches of the traffic, before the value was changed. */
  readonly mismatches: Readonly<Record<string, number>>;
  readonly allowed: Readonly<Record<string, number>>;
  readonly errors: { readonly errors: number; readonly first: string | null };
  readonly caught: LedgerEntry | null;
  readonly repaired: boolean;
}

async function demo(options: DemoOptions): Promise<number> {
  const say = options.json ? (): void => undefined : (text: string): void => void stdout.write(`${text}\n`);
  const stop = new AbortController();
  const forget = onStop(
    () => stop.abort(),
    () => process.exit(exitCode.interrupted),
  );
  outputClosed.addEventListener('abort', () => stop.abort());
  const directory = await mkdtemp(join(tmpdir(), 'shadow-demo-'));
  const callOff = afterDeath('rm -rf -- "$1"', directory);
  try {
    const [source, target] = [await startRedis(), await startTarget()];
    if (target.standIn) say(standInNotice(target));
    say(`Source: ${source.label} on port ${source.port}. Target: ${target.label} on port ${target.port}.`);
    const finding = await observe(source, target, directory, options, say, stop.signal);
    if (stop.signal.aborted || finding === null) return exitCode.interrupted;
    const fine = isFine(finding);
    if (options.json)
      stdout.write(`${JSON.stringify({ holds: fine, standIn: target.standIn ?? null, ...finding }, null, 2)}\n`);
    else say(`\n${summary(finding, fine)}`);
    if (target.standIn) say(standInLimits(target));
    return fine ? exitCode.holds : exitCode.fails;
  } finally {
    await stopServers();
    await rm(directory, { recursive: true, force: true });
    callOff();
    forget();
  }
}

async function observe(
  source: LocalServer,
  target: LocalServer,
  directory: string,
  options: DemoOptions,
  say: (text: string) => void,
  signal: AbortSignal,
): Promise<Finding | null> {
  const shard = { name: 'demo', listen: 'redis://127.0.0.1:0', source: source.url, target: target.url };
  const value = {
    version: 1,
    name: 'demo',
    shards: [shard],
    workloads: WORKLOADS,
    state: directory,
    admin: { listen: '127.0.0.1:0' },
  };
  const plan = planFrom(value, 'the demo', { directory, env: {} });
  const launched = await launch(plan, plan.shards[0], createLogger('error', 2));
  let apps: App[] = [];
  let direct: App[] = [];
  try {
    apps = await connectApps(launched.shard.port);
    say(
      `Proxy on port ${launched.shard.port}, all six workloads in stage shadow. ioredis and node-redis send 70 % reads, 30 % writes.`,
    );
    const errors = await traffic(launched, apps, options, signal);
    if (signal.aborted) return null;
    const { operations, compared, mismatches, allowed } = launched.shard.snapshot();
    direct = await connectApps(target.port);
    say('\nNow one value is changed directly on the target, bypassing the proxy …');
    const { caught, repaired } = await tamper(launched, apps[0], direct[0]);
    say(
      caught
        ? `… and a client reads it. Detected:\n  ${renderMismatch(caught)}`
        : '… and a client reads it. The mismatch was NOT detected.',
    );
    if (repaired) say('The proxy has repaired the key: both servers hold the same value.');
    return { operations, compared, mismatches, allowed, errors, caught, repaired };
  } finally {
    for (const app of [...apps, ...direct]) app.close();
    await launched.stop();
  }
}

async function traffic(
  launched: LaunchedShard,
  apps: readonly App[],
  options: DemoOptions,
  signal: AbortSignal,
): Promise<Finding['errors']> {
  const { shard } = launched;
  const until = performance.now() + options.for;
  const left = (): number => Math.max(0, until - performance.now());
  const view = options.json ? null : new LiveView(() => shard.snapshot(), left);
  const errors = await drive(apps, () => signal.aborted || left() === 0);
  await settled(() => shard.snapshot().mirror.queuedEffects === 0);
  view?.stop();
  return errors;
}

/** Changes a value that clients no longer write, and lets a client read it. */
async function tamper(
  { shard, ledger }: LaunchedShard,
  client: App,
  direct: App,
): Promise<{ caught: LedgerEntry | null; repaired: boolean }> {
  await client.call(['SADD', TAMPERED, 'everybody']);
  await settled(() => shard.snapshot().mirror.queuedEffects === 0);
  const before = ledger.total;
  await direct.call(['SADD', TAMPERED, 'nobody-told-the-proxy']);
  const right = JSON.stringify(sorted(await client.call(['SMEMBERS', TAMPERED])));
  await settled(() => ledger.total > before);
  const caught = ledger.total > before ? (ledger.latest().at(-1) ?? null) : null;
  const repaired =
    caught !== null &&
    (await settled(async () => JSON.stringify(sorted(await direct.call(['SMEMBERS', TAMPERED]))) === right));
  return { caught, repaired };
}

const sorted = (members: unknown): string[] => (members as string[]).map(String).sort();

/** Waits for a condition. @returns whether it became true in time */
async function settled(holds: () => boolean | Promise<boolean>): Promise<boolean> {
  for (const deadline = performance.now() + SETTLE_MS; performance.now() < deadline; await sleep(20))
    if (await holds()) return true;
  return false;
}

const isFine = ({ compared, mismatches, errors, caught }: Finding): boolean =>
  compared > 0 && sum(mismatches) === 0 && errors.errors === 0 && caught !== null;

function summary({ operations, compared, mismatches, allowed, errors, caught }: Finding, fine: boolean): string {
  const allowedPart = sum(allowed) === 0 ? '' : `, ${number(sum(allowed))} of them allowed (${list(allowed)})`;
  return [
    `${number(operations)} operations, ${number(compared)} pairs of replies compared${allowedPart}, ${number(sum(mismatches))} mismatches in the traffic${sum(mismatches) === 0 ? '' : ` (${list(mismatches)})`}.`,
    ...(errors.errors === 0 ? [] : [`${number(errors.errors)} commands failed, the first with: ${errors.first}`]),
    caught ? 'The changed value was detected.' : 'The changed value was NOT detected.',
    fine
      ? `It works. Next: ${typed('shadow-compare run --source URL --target URL')}`
      : 'It does NOT work here: see the lines above.',
  ].join('\n');
}
