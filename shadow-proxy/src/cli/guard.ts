/**
 * `shadow-compare guard`: checks whether counters are safe on the target's nodes, and what would make a resync full.
 */
import { existsSync } from 'node:fs';
import Table from 'cli-table3';
import { Option, type Command } from 'commander';
import { byKind } from '../command/counting.js';
import { judgeAll, sightingsOf } from '../stages/counters-gate.js';
import { acceptsWrites, type Cluster, type NodeFacts } from '../guard/node-facts.js';
import { hazardsOf, type Hazard } from '../guard/hazards.js';
import type { Safety, Sightings, Verdict } from '../guard/judge.js';
import { readClusters, targetsOf } from '../guard/read-nodes.js';
import { openPlan } from '../upstream/open-plan.js';
import type { Plan } from '../plan/plan.js';
import { number } from '../text/figures.js';
import { addAdminOptions, type AdminClientOptions } from './admin-client.js';
import { CliError, duration, exitCode, repeat } from './exit.js';
import { Fleet } from './fleet.js';
import { withManual } from './manual.js';
import { stdout } from './output.js';

interface GuardOptions extends AdminClientOptions {
  /** False with `--no-proxy`. */
  readonly proxy: boolean;
  readonly watch?: boolean;
  readonly for: number;
  readonly json?: boolean;
}

export interface Guard {
  readonly verdict: Safety;
  readonly workloads: readonly Verdict[];
  readonly hazards: readonly Hazard[];
  readonly clusters: readonly Cluster[];
  /** Null if the proxy was not asked; `proxyProblem` says why it could not be asked. */
  readonly sightings: Sightings | null;
  readonly proxyProblem: string | null;
  /** Commands of clients that the proxy has handled; 0 if it was not asked. */
  readonly operations: number;
}

const DEFAULT_PLAN = 'migration.yaml';
const WATCH_MS = 10_000;

export function addGuard(program: Command): void {
  const command = program
    .command('guard')
    .description(
      'Check whether counters are safe on the live target nodes, and what would turn a reconnect into a full resync',
    )
    .option(
      '--no-proxy',
      'do not ask the proxy which commands it has seen: judge only the workloads that the plan calls counters',
    )
    .addOption(
      new Option('--for <duration>', 'how long to measure the nodes; choose a busy time, it gives the backlog size')
        .argParser(duration)
        .default(2_000, '2s'),
    )
    .option('--watch', 'repeat every 10 s until Ctrl-C; print each full resync and each changed verdict')
    .option('--json', 'print JSON');
  withManual(command, 'shadow-compare guard --plan migration.yaml', {
    0: 'safe: the counters are safe on these nodes',
    1: 'unsafe',
    3: 'unknown: a node or the proxy does not answer, or nothing was judged',
  });
  addAdminOptions(command).action(async (options: GuardOptions) => {
    const plan = await openPlan(planFile(options));
    if (options.watch) return watch(plan, options);
    const guard = await inspect(plan, options);
    stdout.write(`${options.json ? JSON.stringify(guard, plain, 2) : render(guard)}\n`);
    process.exitCode = exitOf(guard);
  });
}

function planFile({ plan }: GuardOptions): string {
  if (plan !== undefined) return plan;
  if (existsSync(DEFAULT_PLAN)) return DEFAULT_PLAN;
  throw new CliError('option', `--plan is missing, and there is no ${DEFAULT_PLAN} in this directory`, exitCode.usage);
}

async function inspect(plan: Plan, options: GuardOptions): Promise<Guard> {
  // The proxy is asked first: if it refuses, the nodes need not be watched.
  const { sightings, proxyProblem, operations } = await askProxy(options);
  const clusters = await readClusters(targetsOf(plan), options.for);
  const workloads = judgeAll(plan, clusters, sightings);
  const hazards = clusters.flatMap((cluster) => hazardsOf(cluster, plan.topology.outageMinutes));
  const answers = new Set<Safety>(workloads.map(({ verdict }) => verdict));
  if (
    clusters.some(({ unread }) => unread.length > 0) ||
    proxyProblem !== null ||
    sawNothing({ workloads, operations, clusters })
  )
    answers.add('unknown');
  const verdict = answers.has('unsafe') ? 'unsafe' : answers.has('unknown') ? 'unknown' : 'safe';
  return { verdict, workloads, hazards, clusters, sightings, proxyProblem, operations };
}

async function askProxy(options: GuardOptions): Promise<Pick<Guard, 'sightings' | 'proxyProblem' | 'operations'>> {
  if (!options.proxy) return { sightings: null, proxyProblem: null, operations: 0 };
  try {
    const fleet = await Fleet.open({ ...options, plan: planFile(options) });
    const { shards } = await fleet.status();
    const [silent] = fleet.silent;
    return {
      sightings: sightingsOf(shards),
      proxyProblem: silent === undefined ? null : withoutProxies(silent.error),
      operations: shards.reduce((all, shard) => all + shard.operations, 0),
    };
  } catch (error) {
    if (!(error instanceof CliError) || error.code !== 'unreachable') throw error;
    return {
      sightings: null,
      proxyProblem: withoutProxies(error),
      operations: 0,
    };
  }
}

const withoutProxies = ({ message }: CliError): string =>
  `${message}; or use --no-proxy: then only counters that the plan names are judged`;

/** Whether nothing was judged, although counters could be written on two nodes. */
export const sawNothing = ({
  workloads,
  operations,
  clusters,
}: Pick<Guard, 'workloads' | 'operations' | 'clusters'>): boolean =>
  workloads.length === 0 && operations === 0 && clusters.some(({ nodes }) => nodes.filter(acceptsWrites).length > 1);

const exitOf = ({ verdict }: Guard): number =>
  ({ safe: exitCode.holds, unsafe: exitCode.fails, unknown: exitCode.inconclusive })[verdict];

/** Prints the whole result first, then one line for each change. */
async function watch(plan: Plan, options: GuardOptions): Promise<void> {
  let before: Guard | null = null;
  await repeat(WATCH_MS, async () => {
    const now = await inspect(plan, options);
    const lines = before === null ? [] : changes(before, now);
    if (options.json)
      stdout.write(`${JSON.stringify({ at: new Date().toISOString(), alerts: lines, ...now }, plain)}\n`);
    else if (before === null) stdout.write(`${render(now)}\n`);
    else for (const line of lines) stdout.write(`${new Date().toISOString()} ${line}\n`);
    before = now;
    process.exitCode = exitOf(now);
  });
}

/** The changes between two checks. A full resync is shown even if the verdicts are the same. */
export function changes(before: Guard, now: Guard): string[] {
  const nodes = (guard: Guard): readonly NodeFacts[] => guard.clusters.flatMap((cluster) => cluster.nodes);
  const resyncs = nodes(now).flatMap(({ runId, label, syncFull }) => {
    const known = nodes(before).filter((node) => node.runId === runId || node.label === label);
    // A restarted node counts from 0; for a new node the count before is unknown.
    const was = known.find((node) => node.runId === runId)?.syncFull ?? (known.length > 0 ? 0 : syncFull);
    return syncFull > was
      ? [
          `ALERT: ${label} has served ${syncFull - was} full ${syncFull - was === 1 ? 'resync' : 'resyncs'} (sync_full ${syncFull}): counters that two nodes wrote have lost increments; check them`,
        ]
      : [];
  });
  const verdicts = now.workloads.flatMap(({ workload, verdict, why }) => {
    const was = before.workloads.find((each) => each.workload === workload)?.verdict;
    return was === verdict ? [] : [`${WORDS[verdict]}: ${workload}: ${why}`];
  });
  const hazards = now.hazards
    .filter(({ what }) => !before.hazards.some((each) => kindOf(each) === kindOf({ what })))
    .map(({ about, what }) => `${about}: ${what}`);
  return [...resyncs, ...verdicts, ...hazards];
}

/** The hazard's text without its figures, which may have changed. */
const kindOf = ({ what }: Pick<Hazard, 'what'>): string =>
  what.replace(/:\d+/g, (port) => port).replace(/(?<!:)\b\d[\d.,]*\b/g, '#');

/** Turns maps into JSON. */
const plain = (_: string, value: unknown): unknown => (value instanceof Map ? Object.fromEntries(value) : value);

const WORDS: Readonly<Record<Safety, string>> = { safe: 'safe', unsafe: 'UNSAFE', unknown: 'UNKNOWN' };
const BARE = { head: [], border: [] };

/** The result in 80 columns. */
function render({ verdict, workloads, hazards, clusters, proxyProblem, operations }: Guard): string {
  const nodes = new Table({
    head: ['node', 'role', 'writes', 'counting commands since start'],
    style: BARE,
    colWidths: [23, 23, 8, 21],
    wordWrap: true,
  });
  for (const cluster of clusters) {
    for (const node of cluster.nodes)
      nodes.push([
        `${node.label}\n${node.version}`,
        `${node.role}${node.masters.map(({ address, up }) => `\n${up ? '←' : '✗'} ${address}`).join('')}`,
        acceptsWrites(node) ? 'yes' : 'no',
        callsAt(node),
      ]);
    for (const { label, why } of cluster.unread) nodes.push([label, 'UNREAD', '?', why]);
  }
  const verdicts = new Table({
    head: ['workload', 'counters', 'why'],
    style: BARE,
    colWidths: [16, 10, 50],
    wordWrap: true,
  });
  for (const { workload, class: name, verdict: answer, why, lost, todo } of workloads) {
    verdicts.push([
      `${workload}\n(${name})`,
      WORDS[answer],
      [why, lost === null ? null : `lost: ${lost}`, todo === null ? null : `→ ${todo}`]
        .filter((line) => line !== null)
        .join('\n'),
    ]);
  }
  const resyncs = new Table({ style: BARE, colWidths: [11, 66], wordWrap: true });
  for (const { about, what, todo } of hazards) resyncs.push([about, `${what}\n→ ${todo}`]);
  return [
    nodes.toString(),
    workloads.length === 0
      ? 'No workload has the class counter, and none was seen to be used as one.'
      : verdicts.toString(),
    ...(hazards.length === 0
      ? []
      : ['What turns a reconnect into a full resync, or makes one worse:', resyncs.toString()]),
    ...(proxyProblem === null ? [] : [`UNKNOWN: ${proxyProblem}`]),
    ...(sawNothing({ workloads, operations, clusters })
      ? ['UNKNOWN: the proxy has seen no client command yet: run guard again under traffic']
      : []),
    `${WORDS[verdict]}${verdict === 'safe' ? ': no counter can lose increments by being written on two nodes' : ''}`,
  ].join('\n');
}

/** A node also counts calls that its peers sent; scripts only if clients sent them. */
function callsAt({ calls, writers }: NodeFacts): string {
  const kinds = byKind(Object.fromEntries([...calls].sort()));
  const counts = Object.entries(kinds).map(
    ([kind, commands]) =>
      `${kind}: ${Object.entries(commands)
        .map(([name, times]) => `${name} ${number(times)}`)
        .join(', ')}`,
  );
  const clients = [...new Set((writers ?? []).map(({ who, command }) => `${who} (${command})`))].slice(0, 3);
  return (
    [
      ...counts,
      ...(clients.length === 0 ? [] : [`writing now: ${clients.join(', ')}`]),
      ...(writers === null ? ['client list unavailable'] : []),
    ].join('\n') || 'none'
  );
}
