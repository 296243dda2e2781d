/**
 * `npm run bench`: the shadow proxy beside other proxies, interleaved in one run.
 * Exit codes: 0 it holds, 1 it does not (a requirement, or the shadow proxy's own comparison), 2 wrong usage,
 * 3 could not tell (a peer is missing or failed).
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { LoadtestError } from '../../rig/errors.js';
import { findEnvoy, onPath } from '../../rig/programs.js';
import type { Proxy } from '../../rig/proxy.js';
import { Rig } from '../../rig/rig.js';
import { missingServers, startServers, type Servers } from '../../rig/servers.js';
import { doubts, settledSnapshot } from '../../rig/status.js';
import { rotate } from '../../rounds/schedule.js';
import { judge, ratioTo, rowOf, type Sample } from './figures.js';
import { keyspaceOf, measure } from './measure.js';
import { MEMTIER } from './memtier.js';
import { parseOptions, type Options } from './options.js';
import { missingPeers, startPeer, type Peer } from './peers.js';
import { figuresOf } from './record.js';
import { asMarkdown, asText, machine, type Report } from './report.js';

async function main(): Promise<number> {
  const options = parseOptions(process.argv);
  const missing = [...(await missingServers()), ...missingPeers(options.peers, options.proxyCommand)];
  if (!onPath(MEMTIER)) missing.push(`${MEMTIER} (the load): put it on PATH`);
  if (missing.length > 0)
    throw new LoadtestError('MISSING_PROGRAM', `missing:\n${missing.map((m) => `  ${m}`).join('\n')}`);

  const rig = new Rig();
  try {
    const report = await bench(rig, options);
    write(report, options);
    const failed = options.requirements.some((wanted) => !judge(report.samples, wanted).holds);
    return failed || (report.doubts?.length ?? 0) > 0 ? 1 : 0;
  } finally {
    await rig.close();
  }
}

async function bench(rig: Rig, options: Options): Promise<Report> {
  const startedAt = new Date().toISOString();
  const servers = await startServers(rig);
  const peers: (Peer & Partial<Proxy>)[] = [];
  for (const name of options.peers) peers.push(await startPeer(name, rig, servers, options.proxyCommand));
  const run = (count: number, seconds: number, note: string): Promise<Sample[]> =>
    rounds(rig, servers, peers, options, { count, seconds, note });
  const warmUp = options.warmUp > 0 ? await run(1, options.warmUp, 'warm-up ') : [];
  const samples = await run(options.rounds, options.seconds, '');
  const proxy = peers.find((peer) => peer.name === 'shadow') as (Peer & Proxy) | undefined;
  const snapshot = proxy ? await settledSnapshot(proxy) : null;
  return {
    startedAt,
    machine: machine(),
    versions: versions(servers, options),
    rounds: options.rounds,
    load: {
      connections: options.connections,
      seconds: options.seconds,
      valueBytes: options.valueBytes,
      keys: options.keys,
    },
    rows: options.pipelines.flatMap((pipeline) => options.peers.map((peer) => rowOf(samples, peer, pipeline))),
    ratios: ratios(samples, options),
    requirements: options.shown.map((wanted) => judge(samples, wanted)),
    doubts: snapshot && [
      ...doubts(snapshot, operationsOf(warmUp) + operationsOf(samples)),
      ...unequal([...warmUp, ...samples]),
    ],
    proxy: snapshot,
    samples,
  };
}

/** Rounds of all peers at all depths, each round with another peer first. */
async function rounds(
  rig: Rig,
  servers: Servers,
  peers: readonly Peer[],
  options: Options,
  { count, seconds, note }: { count: number; seconds: number; note: string },
): Promise<Sample[]> {
  const { connections, valueBytes, keys } = options;
  const keyspace = keyspaceOf(keys, valueBytes);
  const samples: Sample[] = [];
  for (let round = 0; round < count; round++) {
    for (const pipeline of options.pipelines) {
      for (const peer of rotate(peers, round)) {
        const sample = await measure(
          rig,
          servers,
          peer,
          keyspace,
          { connections, pipeline, seconds, valueBytes, keys },
          round,
        );
        const figures = `${Math.round(sample.opsPerSecond).toLocaleString('en-US')} ops/s, p99 ${sample.p99} ms`;
        process.stderr.write(`${note}round ${round + 1}/${count}, pipeline ${pipeline}, ${peer.name}: ${figures}\n`);
        samples.push(sample);
      }
    }
  }
  return samples;
}

const operationsOf = (samples: readonly Sample[]): number =>
  samples.filter((s) => s.peer === 'shadow').reduce((total, s) => total + s.operations, 0);

function unequal(samples: readonly Sample[]): string[] {
  const count = samples.filter((s) => s.peer === 'shadow' && s.equal === false).length;
  return count > 0 ? [`after ${count} measurements the two servers held different values`] : [];
}

function ratios(samples: readonly Sample[], { pipelines, peers }: Options): Report['ratios'] {
  const others = peers.filter((peer) => peer !== 'shadow');
  return pipelines
    .flatMap((pipeline) => others.map((peer) => ratioTo(samples, peer, pipeline)))
    .filter((ratio) => ratio !== null);
}

function versions({ source, target }: Servers, { peers }: Options): Record<string, string> {
  const files = { haproxy: onPath('haproxy'), twemproxy: onPath('nutcracker'), envoy: findEnvoy() };
  const measured = Object.entries(files).filter(([name]) => peers.some((peer) => peer === name));
  const said = measured.map(([name, file]) => [name, versionOf(name, file!)]);
  return {
    source: source.label,
    target: target.label,
    load: versionOf(MEMTIER, onPath(MEMTIER)!),
    ...Object.fromEntries(said),
  };
}

function versionOf(name: string, file: string): string {
  const flag = name === 'haproxy' ? '-v' : '--version';
  try {
    // twemproxy writes its version to the error stream
    const said = execFileSync('/bin/sh', ['-c', `"$0" ${flag} 2>&1`, file], { encoding: 'utf8' });
    return (
      said
        .split('\n')
        .map((line) => line.replaceAll(file, '').trim())
        .find(Boolean) ?? 'unknown'
    );
  } catch {
    return 'unknown';
  }
}

function write(report: Report, options: Options): void {
  mkdirSync(options.out, { recursive: true });
  const json = JSON.stringify(report, null, 2);
  writeFileSync(path.join(options.out, 'bench-results.json'), `${json}\n`);
  writeFileSync(path.join(options.out, 'bench-results.md'), asMarkdown(report));
  if (options.record !== undefined) record(report, options.record);
  process.stdout.write(`${options.json ? json : asText(report)}\n`);
  process.stderr.write(`written to ${path.resolve(options.out)}/bench-results.{json,md}\n`);
}

/** Of the runs in the file, only that of the bench is replaced. */
function record({ startedAt, machine: where, rows, ratios }: Report, file: string): void {
  const runs = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  const command = ['npm run bench --', ...process.argv.slice(2)].join(' ');
  const bench = { command, date: startedAt.slice(0, 10), machine: where, figures: figuresOf(rows, ratios) };
  writeFileSync(file, `${JSON.stringify({ ...runs, bench }, null, 2)}\n`);
}

process.exitCode = await main().catch((error: unknown) => {
  process.stderr.write(`bench: ${error instanceof LoadtestError ? error.message : (error as Error).stack}\n`);
  return error instanceof LoadtestError ? error.exitCode : 3;
});
