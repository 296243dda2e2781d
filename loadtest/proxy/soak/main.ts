/**
 * `npm run soak`: runs many connected clients with values up to 64 KiB for minutes, and checks that the proxy's memory
 * is small and flat. With `--hostile`: runs hostile clients, and checks that they do not harm the others, and that
 * memory is bounded. Exit codes: 0 requirements met, 1 not met, 2 wrong usage, 3 inconclusive (a server is missing, or
 * the run was too short).
 */
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ShardSnapshot } from '../../../shadow-proxy/src/telemetry/snapshot.js';
import { LoadtestError } from '../../rig/errors.js';
import { memory, resetPeak } from '../../rig/proc.js';
import { missingProxy, startProxy, type Proxy } from '../../rig/proxy.js';
import { Rig } from '../../rig/rig.js';
import { missingServers, startServers } from '../../rig/servers.js';
import { runHostile } from '../hostile/run.js';
import { asText as asHostileText } from '../hostile/report.js';
import { gaugesOf, settledSnapshot, snapshotOf } from '../../rig/status.js';
import type { ClientsMessage, ClientsTask, Totals } from './clients.js';
import { parseOptions, type Options } from './options.js';
import { asText, judge, type Report, type Sample } from './report.js';
import { trendOf, type MemorySample } from './verdict.js';

async function main(): Promise<number> {
  const options = parseOptions(process.argv);
  const missing = [...(await missingServers()), missingProxy(options.proxyCommand)].filter((what) => what !== null);
  if (missing.length > 0)
    throw new LoadtestError('MISSING_PROGRAM', `missing:\n${missing.map((m) => `  ${m}`).join('\n')}`);
  const rig = new Rig();
  try {
    if (options.hostile) return await attack(rig, options);
    const report = await soak(rig, options);
    write('soak-results.json', report, asText(report), options);
    if (report.failures.length > 0) return 1;
    return report.trend.flat === null ? 3 : 0;
  } finally {
    await rig.close();
  }
}

async function attack(rig: Rig, { attacks, minutes, seconds, ...options }: Options): Promise<number> {
  const secondsEach = seconds ?? (minutes * 60) / attacks.length;
  const report = await runHostile(rig, { ...options, attacks, secondsEach });
  write('hostile-results.json', report, asHostileText(report), options);
  return Object.keys(report.failures).length > 0 ? 1 : 0;
}

async function soak(rig: Rig, options: Options): Promise<Report> {
  const proxy = await startProxy(rig, await startServers(rig), options.proxyCommand);
  const idleRss = memory(proxy.pid).rss;
  const groups = await startClients(rig, proxy, options);
  resetPeak(proxy.pid);
  const samples = await sample(rig, proxy, options);
  const peakRss = memory(proxy.pid).peak;
  const totals = add(await Promise.all(groups.map((group) => group.stop())));
  const snapshot = await settledSnapshot(proxy);
  const { minutes, clients, limitMib } = options;
  const measured = { minutes, clients, limitMib, idleRss, peakRss, samples, trend: trendOf(samples), totals, snapshot };
  return { ...measured, failures: judge(measured) };
}

interface ClientGroup {
  stop(): Promise<Totals>;
}

/** Divides the clients among the processes, and waits until all are connected. */
async function startClients(rig: Rig, proxy: Proxy, options: Options): Promise<ClientGroup[]> {
  const { processes, clients, rate, maxValue, churn } = options;
  const groups = Array.from({ length: processes }, (_, i) => {
    const share = Math.floor(clients / processes) + (i < clients % processes ? 1 : 0);
    const task: ClientsTask = {
      port: proxy.port,
      clients: share,
      rate: rate / processes,
      maxValue,
      churn: churn / processes,
    };
    const child = rig.fork(new URL('./clients.js', import.meta.url), [JSON.stringify(task)]);
    const message = async (type: ClientsMessage['type']): Promise<ClientsMessage> => {
      const ended = once(child, 'exit').then(() => [null]);
      const [said] = (await Promise.race([once(child, 'message'), ended])) as [ClientsMessage | null];
      if (said?.type !== type) throw new LoadtestError('DIED', 'a process of clients ended by itself');
      return said;
    };
    const stop = async (): Promise<Totals> => {
      child.send('stop');
      return ((await message('totals')) as ClientsMessage & { type: 'totals' }).totals;
    };
    return { connected: message('connected'), stop };
  });
  await Promise.all(groups.map((group) => group.connected));
  return groups;
}

/** The proxy's memory at every interval of the run. */
async function sample(rig: Rig, proxy: Proxy, options: Options): Promise<Sample[]> {
  const start = Date.now();
  const samples: Sample[] = [];
  for (let next = start; next <= start + options.minutes * 60_000; next += options.sampleSeconds * 1000) {
    await sleep(Math.max(0, next - Date.now()));
    rig.assertAlive();
    const at = Math.round((Date.now() - start) / 100) / 10;
    const gauges = await gaugesOf(proxy, 'nodejs_heap_size_total_bytes', 'nodejs_external_memory_bytes');
    samples.push({
      at,
      rss: memory(proxy.pid).rss,
      heap: gauges.nodejs_heap_size_total_bytes,
      buffers: gauges.nodejs_external_memory_bytes,
    });
    if (samples.length % 6 === 1) progress(samples[samples.length - 1], await snapshotOf(proxy));
  }
  return samples;
}

function progress({ at, rss }: MemorySample, { clients, compared, mirror }: ShardSnapshot): void {
  const mib = (rss / 2 ** 20).toFixed(1);
  const state = `${mib} MiB, ${clients} clients, ${compared} compared, mirror ${mirror.lagMs.toFixed(1)} ms behind`;
  process.stderr.write(`${at.toFixed(0).padStart(4)} s: ${state}\n`);
}

function add(all: readonly Totals[]): Totals {
  const total: Totals = {
    commands: 0,
    replies: 0,
    errors: 0,
    errorTexts: [],
    wrong: 0,
    lost: 0,
    hungUp: 0,
    heldBack: 0,
  };
  for (const one of all) {
    for (const key of ['commands', 'replies', 'errors', 'wrong', 'lost', 'hungUp', 'heldBack'] as const)
      total[key] += one[key];
    total.errorTexts.push(...one.errorTexts);
  }
  return total;
}

function write(file: string, report: object, text: string, { out, json }: Pick<Options, 'out' | 'json'>): void {
  mkdirSync(out, { recursive: true });
  const written = JSON.stringify(report, null, 2);
  writeFileSync(path.join(out, file), `${written}\n`);
  process.stdout.write(`${json ? written : text}\n`);
  process.stderr.write(`written to ${path.join(path.resolve(out), file)}\n`);
}

process.exitCode = await main().catch((error: unknown) => {
  process.stderr.write(`soak: ${error instanceof LoadtestError ? error.message : (error as Error).stack}\n`);
  return error instanceof LoadtestError ? error.exitCode : 3;
});
