/**
 * `npm run bench:cluster`: measures what a command costs the proxies if 1, 2 or 4 of them share one master of a
 * cluster, by slots. Each proxy gets the same load. Clients are those of a cluster: each has a connection to every
 * proxy. Rounds are interleaved; results are medians of ratios. Exit codes: 0 requirement met, 1 not met, 2 wrong
 * usage, 3 inconclusive.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import Table from 'cli-table3';
import { Command } from 'commander';
import { stringify } from 'yaml';
import { startCluster } from '../../../shadow-proxy/src/local/start-cluster.js';
import { freePorts } from '../../../shadow-proxy/src/local/port.js';
import { SLOTS } from '../../../shadow-proxy/src/route/slot.js';
import { sum, type ShardSnapshot } from '../../../shadow-proxy/src/telemetry/snapshot.js';
import { median } from '../../figures/median.js';
import { machine } from '../bench/report.js';
import { MEMTIER } from '../bench/memtier.js';
import { count, requirePrograms, runBench } from '../command-line.js';
import { LoadtestError } from '../../rig/errors.js';
import { cpuSeconds } from '../../rig/proc.js';
import { DEFAULT_PROXY_COMMAND, untilReady } from '../../rig/proxy.js';
import { Rig, type Running } from '../../rig/rig.js';

const PROCESSES = [1, 2, 4];
/** A command may cost this many times what it costs with one process. */
const WANTED = 1.15;
const KEYS = 100_000;

interface Options {
  readonly rounds: number;
  readonly seconds: number;
  readonly clients: number;
  readonly pipeline: number;
  /** Commands per second of each proxy. */
  readonly rate: number;
  readonly out?: string;
}

interface Measured {
  readonly processes: number;
  /** Number of answered commands. */
  readonly operations: number;
  /** CPU seconds of all proxies for a million commands. */
  readonly cpu: number;
  readonly mismatches: number;
}

interface Seeds {
  readonly source: string;
  readonly target: string;
}

async function main(): Promise<number> {
  const options = parse();
  await requirePrograms();
  const rig = new Rig();
  try {
    const [source, target] = [
      await startCluster({ program: 'redis', masters: 1 }),
      await startCluster({ program: 'keydb', masters: 1 }),
    ];
    const rounds: Measured[][] = [];
    for (let i = 0; i < options.rounds; i++) {
      const order = PROCESSES.map((_, n) => PROCESSES[(n + i) % PROCESSES.length]);
      const round: Measured[] = [];
      for (const processes of order)
        round.push(await measure(rig, { source: source.seeds, target: target.seeds }, processes, options));
      rounds.push(round.sort((a, b) => a.processes - b.processes));
      process.stderr.write(`round ${i + 1}/${options.rounds}: ${JSON.stringify(round)}\n`);
    }
    return report(rounds, options);
  } finally {
    await rig.close();
  }
}

/** Starts the proxies, loads them, and stops them. */
async function measure(rig: Rig, seeds: Seeds, processes: number, options: Options): Promise<Measured> {
  const [port, adminPort] = [await freePorts(processes), await freePorts(processes)];
  const cuts = Array.from({ length: processes - 1 }, (_, i) => Math.floor(((i + 1) * SLOTS) / processes));
  const plan = rig.file(`${processes}.yaml`);
  writeFileSync(
    plan,
    stringify({
      version: 1,
      name: 'cluster',
      cluster: {
        source: `redis://${seeds.source}`,
        target: `redis://${seeds.target}`,
        listen: `redis://127.0.0.1:${port}`,
        admin: { listen: `127.0.0.1:${adminPort}` },
        ...(cuts.length > 0 && { cuts }),
      },
      default: { stage: 'shadow' },
      onAuthorityChange: 'accept',
      state: rig.file(`${processes}-state`),
    }),
  );
  const proxies: Running[] = [];
  for (const [i, first] of [0, ...cuts].entries()) {
    const [program, ...args] = [...DEFAULT_PROXY_COMMAND.split(' '), '--plan', plan, '--shard', `slots-${first}`];
    proxies.push(await rig.start(`shadow-proxy-${processes}-${first}`, port + i, program, args));
  }
  const admins = proxies.map((_, i) => `http://127.0.0.1:${adminPort + i}`);
  await Promise.all(admins.map((admin) => untilReady(rig, admin)));
  const load = (more: readonly string[]): Promise<number> => drive(rig, port, options, more);
  await load(['--ratio=1:0', '--key-pattern=P:P', `--requests=${Math.ceil(KEYS / options.clients)}`]);
  const used = (): number => proxies.reduce((all, { pid }) => all + cpuSeconds(pid), 0);
  const before = used();
  const operations = await load([
    '--ratio=3:7',
    `--test-time=${options.seconds}`,
    `--rate-limiting=${Math.ceil(options.rate / options.clients)}`,
  ]);
  const cpu = used() - before;
  const snapshots = await Promise.all(admins.map(snapshotOf));
  for (const proxy of proxies) await rig.stop(proxy);
  return {
    processes,
    operations,
    cpu: (cpu / operations) * 1e6,
    mismatches: added(snapshots.map(({ mismatches }) => sum(mismatches))),
  };
}

async function snapshotOf(admin: string): Promise<ShardSnapshot> {
  const { shards } = (await (await fetch(`${admin}/api/status`)).json()) as { shards: ShardSnapshot[] };
  return shards[0];
}

/** @returns how many commands were answered */
async function drive(rig: Rig, port: number, options: Options, more: readonly string[]): Promise<number> {
  const json = rig.file('memtier.json');
  const args = [
    '--cluster-mode',
    '--server=127.0.0.1',
    `--port=${port}`,
    '--threads=1',
    `--clients=${options.clients}`,
    `--pipeline=${options.pipeline}`,
    '--data-size=64',
    '--key-minimum=1',
    `--key-maximum=${KEYS}`,
    '--random-data',
    '--distinct-client-seed',
    '--hide-histogram',
    `--json-out-file=${json}`,
    ...more,
  ];
  await rig.run(MEMTIER, MEMTIER, args, (options.seconds + 60) * 1000);
  const output = JSON.parse(readFileSync(json, 'utf8')) as {
    'ALL STATS': { Totals: { Count: number; 'Connection Errors': number } };
  };
  const { Count: operations, 'Connection Errors': failed } = output['ALL STATS'].Totals;
  if (failed > 0) throw new LoadtestError('MEASUREMENT', `${failed} connections failed`);
  return operations;
}

function report(rounds: readonly Measured[][], { clients, pipeline, seconds, out }: Options): number {
  const table = new Table({
    head: [
      'proxies',
      'commands/s',
      'CPU s / 1 M commands',
      '/ that of one',
      'lowest – highest',
      'wanted',
      'mismatches',
    ],
  });
  let holds = true;
  for (const [i, processes] of PROCESSES.entries()) {
    const ratios = rounds.map((round) => round[i].cpu / round[0].cpu);
    const mismatches = added(rounds.map((round) => round[i].mismatches));
    holds &&= median(ratios)! <= WANTED && mismatches === 0;
    table.push([
      processes,
      Math.round(median(rounds.map((round) => round[i].operations / seconds))!).toLocaleString('en-US'),
      median(rounds.map((round) => round[i].cpu))!.toFixed(2),
      median(ratios)!.toFixed(2),
      `${Math.min(...ratios).toFixed(2)} – ${Math.max(...ratios).toFixed(2)}`,
      i === 0 ? '' : `≤ ${WANTED}`,
      mismatches,
    ]);
  }
  const commands = added(rounds.flat().map(({ operations }) => operations));
  process.stdout.write(
    `${machine()}\n${commands.toLocaleString('en-US')} commands, 30 % SET, 64 bytes, ${clients} cluster clients, pipeline ${pipeline}; ${rounds.length} rounds\n${table.toString()}\n`,
  );
  if (out !== undefined) writeFileSync(out, `${JSON.stringify({ rounds }, null, 2)}\n`);
  return holds ? 0 : 1;
}

const added = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

function parse(): Options {
  return new Command('bench:cluster')
    .description('Measure what a command costs where 1, 2 and 4 proxies share one master of a cluster. Needs Linux.')
    .option('--rounds <n>', 'rounds; the figures are their medians', count, 5)
    .option('--seconds <n>', 'how long each is measured', count, 5)
    .option('--clients <n>', 'clients, each with a connection to every proxy', count, 20)
    .option('--pipeline <n>', 'commands that a connection sends at once', count, 10)
    .option('--rate <n>', 'commands a second that each proxy gets', count, 20_000)
    .option('--out <file>', 'write the figures of each round as JSON')
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
    .parse()
    .opts();
}

await runBench(main);
