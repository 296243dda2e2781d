/**
 * `npm run bench`: measures the shadow proxy and other proxies, interleaved in one run. Exit codes: 0 requirements met,
 * 1 not met (a requirement, or the shadow proxy's own comparison), 2 wrong usage, 3 inconclusive (a peer is missing or
 * failed, or the rate was not kept).
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { LoadtestError } from '../../rig/errors.js';
import { onPath } from '../../../shadow-proxy/src/local/program.js';
import type { Proxy } from '../../rig/proxy.js';
import { Rig } from '../../rig/rig.js';
import { missingServers, startServers, type Servers } from '../../rig/servers.js';
import { warningsOf, settledSnapshot } from '../../rig/status.js';
import { rotate } from '../../rounds/schedule.js';
import { fillDocs } from '../pages/fill.js';
import { textOfRuns } from '../pages/runs.js';
import { judge } from '../requirements.js';
import { rowOf, type Sample } from './figures.js';
import { keyspaceOf, measure, type Keyspace } from './measure.js';
import { MEMTIER } from './memtier.js';
import { parseOptions, type Options } from './options.js';
import { isShadow, missingPeers, startPeer, type Peer } from './peers.js';
import { byClients, pointKey } from './point.js';
import { figuresOf } from './record.js';
import { asMarkdown, asText, machine, type ProxyReport, type Report } from './report.js';
import { versionsOf } from './versions.js';

/** The cores that the load, the peers and both servers share. */
const CORES = availableParallelism();

async function main(): Promise<number> {
  const options = parseOptions(process.argv);
  const missing = [...(await missingServers()), ...missingPeers(options.peers, options.proxyCommand)];
  if (!onPath(MEMTIER)) missing.push(`${MEMTIER} (the load): put it on PATH`);
  if (missing.length > 0)
    throw new LoadtestError('MISSING_PROGRAM', `missing:\n${missing.map((m) => `  ${m}`).join('\n')}`);

  const rig = new Rig();
  try {
    const report = await bench(rig, options);
    await write(report, options);
    const verdicts = options.requirements.map((wanted) => judge(report.samples, wanted, CORES).verdict);
    if (verdicts.includes('missed') || isDoubtful(report)) return 1;
    return verdicts.every((verdict) => verdict === 'holds') ? 0 : 3;
  } finally {
    await rig.close();
  }
}

const isDoubtful = ({ proxies }: Report): boolean => proxies.some(({ warnings: found }) => found.length > 0);

type StartedPeer = Peer & Partial<Proxy>;

async function bench(rig: Rig, options: Options): Promise<Report> {
  const startedAt = new Date().toISOString();
  const where = machine();
  const servers = await startServers(rig);
  const peers: StartedPeer[] = [];
  for (const name of options.peers) peers.push(await startPeer(name, rig, servers, options.proxyCommand));
  const [warmUp, samples]: [Sample[], Sample[]] = [[], []];
  const { points, seconds, valueBytes, keys } = options;
  // Points with more clients come later, because a process keeps the memory that they took.
  for (const group of byClients(points)) {
    const run = (count: number, length: number, note: string): Promise<Sample[]> =>
      rounds(rig, servers, peers, { ...options, points: group }, { count, seconds: length, note });
    if (options.warmUp > 0) warmUp.push(...(await run(1, options.warmUp, 'warm-up ')));
    samples.push(...(await run(options.rounds, seconds, '')));
  }
  const measured = points.flatMap((point) =>
    options.peers
      .filter((peer) => samples.some((s) => s.peer === peer && s.rate === point.rate))
      .map((peer) => rowOf(samples, peer, point)),
  );
  return {
    startedAt,
    machine: where,
    versions: versionsOf(servers, options),
    rounds: options.rounds,
    load: { seconds, valueBytes, keys },
    rows: measured,
    requirements: options.shown.map((wanted) => judge(samples, wanted, CORES)),
    proxies: await proxyReports(peers, [...warmUp, ...samples]),
    samples,
  };
}

/** Rounds of all peers under all loads; each round begins with another peer. */
async function rounds(
  rig: Rig,
  servers: Servers,
  peers: readonly Peer[],
  { points, valueBytes, keys }: Options,
  { count, seconds, note }: { count: number; seconds: number; note: string },
): Promise<Sample[]> {
  const keyspace: Keyspace = keyspaceOf(keys, valueBytes);
  const samples: Sample[] = [];
  for (let round = 0; round < count; round++) {
    for (const point of points) {
      for (const peer of rotate(peers, round)) {
        // At a fixed rate the shadow proxy is compared with Redis only.
        if (point.rate !== null && peer.name !== 'direct' && !isShadow(peer.name)) continue;
        const sample = await measure(rig, servers, peer, keyspace, { ...point, seconds, valueBytes, keys }, round);
        const figures = `${Math.round(sample.opsPerSecond).toLocaleString('en-US')} ops/s, p99 ${sample.p99} ms`;
        process.stderr.write(
          `${note}round ${round + 1}/${count}, ${peer.name}${pointKey(point)}: ${figures}, thread ${sample.threadCpu.toFixed(2)} s/M\n`,
        );
        samples.push(sample);
      }
    }
  }
  return samples;
}

/** The counts of each shadow proxy, and reasons not to trust its figures. */
async function proxyReports(peers: readonly StartedPeer[], samples: readonly Sample[]): Promise<ProxyReport[]> {
  const reports: ProxyReport[] = [];
  for (const peer of peers) {
    if (!isShadow(peer.name)) continue;
    const own = samples.filter((sample) => sample.peer === peer.name);
    const snapshot = await settledSnapshot(peer as Peer & Proxy);
    const operations = own.reduce((total, sample) => total + sample.operations, 0);
    const unequal = own.filter(({ equal }) => equal === false).length;
    const found = warningsOf(snapshot, operations);
    if (unequal > 0) found.push(`after ${unequal} measurements the two servers held different values`);
    reports.push({ peer: peer.name, warnings: found, snapshot });
  }
  return reports;
}

async function write(report: Report, options: Options): Promise<void> {
  mkdirSync(options.out, { recursive: true });
  const json = JSON.stringify(report, null, 2);
  writeFileSync(path.join(options.out, 'bench-results.json'), `${json}\n`);
  writeFileSync(path.join(options.out, 'bench-results.md'), asMarkdown(report));
  if (options.record !== undefined && isDoubtful(report))
    process.stderr.write(`not recorded in ${options.record}: the figures of the shadow proxy are worthless\n`);
  else if (options.record !== undefined) await record(report, options.record);
  process.stdout.write(`${options.json ? json : asText(report)}\n`);
  process.stderr.write(`written to ${path.resolve(options.out)}/bench-results.{json,md}\n`);
}

/** Replaces only the bench's run in the file, which the pages quote. */
async function record({ startedAt, machine: where, versions, rows }: Report, file: string): Promise<void> {
  const runs = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  const command = ['npm run bench --', ...process.argv.slice(2)].join(' ');
  const bench = {
    command,
    date: startedAt.slice(0, 10),
    machine: [where, ...Object.entries(versions).map(([name, version]) => `${name} ${version}`)].join('; '),
    figures: figuresOf(rows),
  };
  writeFileSync(file, textOfRuns({ ...runs, bench }));
  for (const page of await fillDocs()) process.stderr.write(`filled ${page}\n`);
}

process.exitCode = await main().catch((error: unknown) => {
  process.stderr.write(`bench: ${error instanceof LoadtestError ? error.message : (error as Error).stack}\n`);
  return error instanceof LoadtestError ? error.exitCode : 3;
});
