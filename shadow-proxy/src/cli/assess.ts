/** `shadow-compare assess`: recommends whether to migrate at all, from what the live servers show. */
import { InvalidArgumentError, Option, type Command } from 'commander';
import { MAX_MASTERS, type LayoutKind } from '../assess/cluster/layout.js';
import { MANAGED_ONLY } from '../assess/finding.js';
import { concludeFrom, findingsOf } from '../assess/findings.js';
import { TRUTHS } from '../assess/keydb.js';
import { sizingOf } from '../assess/sizing.js';
import { clusterJson, renderCluster, type Ends } from './assess/render-cluster.js';
import { PROXY_OPS, questionOf, readAll } from './assess/read-servers.js';
import { render } from './assess/render.js';
import { CliError, duration, exitCode, positive } from './exit.js';
import { withManual } from './manual.js';
import { monitorTime } from './monitor-option.js';
import { seedsIn, seedsOf } from './sources.js';
import { stdout } from './output.js';

interface AssessOptions {
  readonly plan?: string;
  readonly target?: string;
  readonly for: number;
  readonly monitor?: number;
  readonly ca?: string;
  readonly requires: readonly string[];
  readonly masters?: number;
  readonly layout: LayoutKind;
  readonly balance?: 'load' | 'memory';
  readonly proxyOps: number;
  readonly nodeMemory?: number;
  readonly nodeOps?: number;
  readonly sourcePrice?: number;
  readonly targetPrice?: number;
  readonly json?: boolean;
}

const GIB = 2 ** 30;

export function addAssess(program: Command): void {
  const command = program
    .command('assess')
    .description('Assess live servers: is a migration to KeyDB worth it, and what must be done first')
    .argument('[source...]', 'URL of each source Redis, or of one node of a Redis Cluster')
    .option('--plan <file>', 'read the sources from this plan instead')
    .option('--target <url>', 'URL of the target KeyDB (of a cluster: any node), if there is one already')
    .addOption(
      new Option('--for <duration>', 'how long to measure load and latency; choose a busy hour')
        .argParser(duration)
        .default(10_000, '10s'),
    )
    .option(
      '--monitor <duration>',
      'then run MONITOR for this long (at most 60s) to see which options commands use, and hot slots; slows the sources down',
      monitorTime,
    )
    .option('--ca <file>', 'CA certificate for rediss:// servers')
    .addOption(
      new Option('--requires <what...>', 'features of a managed service that you need')
        .choices(Object.keys(MANAGED_ONLY))
        .default([]),
    )
    .option(
      '--masters <number>',
      `of a Redis Cluster: lay the slots out for so many KeyDB masters, 1 to ${MAX_MASTERS} (default: as many as the source has)`,
      mastersOf,
    )
    .addOption(
      new Option('--layout <kind>', 'of a Redis Cluster: aligned has the fewest shards, even divides masters')
        .choices(['aligned', 'even'])
        .default('aligned'),
    )
    .addOption(
      new Option(
        '--balance <weight>',
        'of a Redis Cluster: what the layout spreads over the KeyDB masters (default: load; memory if the cluster is idle)',
      ).choices(['load', 'memory']),
    )
    .option(
      '--proxy-ops <number>',
      'commands per second that one proxy handles on your machines (see docs/capacity.md)',
      positive,
      PROXY_OPS,
    )
    .option('--node-memory <GiB>', 'memory of one KeyDB node, in GiB', positive)
    .option('--node-ops <number>', 'commands per second that one KeyDB node handled in your own measurement', positive)
    .option('--source-price <number>', 'monthly price of one Redis', price)
    .option('--target-price <number>', 'monthly price of one KeyDB node, in the same currency', price)
    .option('--json', 'print JSON')
    .action(async (sources: readonly string[], options: AssessOptions) => {
      process.exitCode = await assess(sources, options);
    });
  withManual(command, 'shadow-compare assess --plan migration.yaml --for 1m', {
    0: 'GO',
    1: 'NO-GO',
    3: 'UNKNOWN, or a server does not answer',
  });
}

async function assess(urls: readonly string[], options: AssessOptions): Promise<number> {
  if (urls.length === 0 && options.plan === undefined)
    throw new CliError('option', 'no source is given: add the URL of each source, or --plan', exitCode.usage);
  if (urls.length > 0 && options.plan !== undefined)
    throw new CliError('option', 'give either the URLs of the sources or --plan, not both', exitCode.usage);
  const { plan, target: targetUrl, ca, monitor: monitorMs = null, proxyOps } = options;
  const read = await readAll({
    sources: plan === undefined ? urls.map((url) => seedsOf('<source>', url, ca)) : seedsIn(plan),
    target: targetUrl === undefined ? null : seedsOf('--target', targetUrl, ca),
    watchMs: options.for,
    monitorMs,
  });
  const { sources, target } = read;
  const { masters = null, layout: kind, balance: by = null } = options;
  const cluster = await questionOf(read, { masters, kind, by, proxyOps });
  const findings = findingsOf({ sources, cluster, target, requires: options.requires, proxyOps });
  const { conclusion, because } = concludeFrom(findings);
  const { nodeMemory, nodeOps = null, sourcePrice = null, targetPrice = null } = options;
  const sizing = sizingOf(sources, {
    nodeMemory: nodeMemory === undefined ? null : nodeMemory * GIB,
    nodeOps,
    sourcePrice,
    targetPrice,
  });
  const ends: Ends = { source: read.cluster?.endpoints ?? [], target: read.targets?.endpoints ?? [] };
  if (options.json)
    stdout.write(
      `${JSON.stringify({ conclusion, because, findings, sizing, truths: TRUTHS, cluster: cluster && clusterJson(cluster, ends), sources, target }, plain, 2)}\n`,
    );
  else
    stdout.write(
      `${render({ sources, findings, sizing, conclusion, because, cluster: cluster && renderCluster(cluster, ends) })}\n`,
    );
  return { go: exitCode.holds, 'no-go': exitCode.fails, unknown: exitCode.inconclusive }[conclusion];
}

function mastersOf(text: string): number {
  const masters = /^\d{1,2}$/.test(text) ? Number(text) : NaN;
  if (!(masters >= 1 && masters <= MAX_MASTERS))
    throw new InvalidArgumentError(`Give a number from 1 to ${MAX_MASTERS}.`);
  return masters;
}

function price(text: string): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
  if (!(value >= 0)) throw new InvalidArgumentError('Give a number of 0 or more, in any currency.');
  return value;
}

/** Turns maps and sets into JSON, without fields that contain digests of passwords. */
const plain = (name: string, value: unknown): unknown =>
  name === 'acl'
    ? undefined
    : value instanceof Map
      ? Object.fromEntries(value)
      : value instanceof Set
        ? [...value].length
        : value;
