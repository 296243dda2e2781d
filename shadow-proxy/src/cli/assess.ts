/** `shadow-compare assess`: whether to migrate at all, from what the live servers say. */
import Table from 'cli-table3';
import { InvalidArgumentError, Option, type Command } from 'commander';
import { MANAGED_ONLY, type Finding, type Weight } from '../assess/finding.js';
import { concludeFrom, findingsOf, type Conclusion } from '../assess/findings.js';
import type { InstanceFacts } from '../assess/facts.js';
import { TRUTHS } from '../assess/keydb.js';
import { monitor } from '../assess/monitor.js';
import { readInstance } from '../assess/read.js';
import { AskError } from '../upstream/asker.js';
import { sizingOf, type Sizing } from '../assess/sizing.js';
import { loadPlan, planFrom } from '../plan/load.js';
import { PlanError } from '../plan/errors.js';
import type { Endpoint } from '../plan/endpoint.js';
import { number } from '../text/figures.js';
import { CliError, duration, exitCode, positive } from './exit.js';

interface AssessOptions {
  readonly plan?: string;
  readonly target?: string;
  readonly for: number;
  readonly monitor?: number;
  readonly ca?: string;
  readonly requires: readonly string[];
  readonly proxyOps: number;
  readonly nodeMemory?: number;
  readonly nodeOps?: number;
  readonly sourcePrice?: number;
  readonly targetPrice?: number;
  readonly json?: boolean;
}

/** docs/figures.json, shadow@1, rounded down: pipeline 1, stage shadow, all on two shared cores. */
const PROXY_OPS = 59_000;
const GIB = 2 ** 30;
const MAX_MONITOR_MS = 60_000;

export function addAssess(program: Command): void {
  program
    .command('assess')
    .description('Say whether a migration to KeyDB is worth it, and what has to be done first, from the live servers')
    .argument('[source...]', 'URL of each Redis that would be left')
    .option('--plan <file>', 'those of this plan instead')
    .option('--target <url>', 'the KeyDB that would be adopted, where there is one')
    .option('--for <duration>', 'how long load and latency are watched: take a busy hour', duration, 10_000)
    .option(
      '--monitor <duration>',
      'then look at the options of commands with MONITOR for so long, at most 60s: it costs the sources throughput',
      monitorTime,
    )
    .option('--ca <file>', 'authority of the certificates of rediss:// servers')
    .addOption(
      new Option('--requires <what...>', 'what only a managed service gives and you cannot do without')
        .choices(Object.keys(MANAGED_ONLY))
        .default([]),
    )
    .option(
      '--proxy-ops <number>',
      'commands a second that one proxy takes on your machines (docs/capacity.md)',
      positive,
      PROXY_OPS,
    )
    .option('--node-memory <GiB>', 'memory of one KeyDB node', positive)
    .option('--node-ops <number>', 'commands a second that one KeyDB node was measured to take', positive)
    .option('--source-price <number>', 'a month of one Redis', price)
    .option('--target-price <number>', 'a month of one KeyDB node', price)
    .option('--json', 'print JSON')
    .action(async (sources: readonly string[], options: AssessOptions) => {
      process.exitCode = await assess(sources, options);
    });
}

async function assess(urls: readonly string[], options: AssessOptions): Promise<number> {
  const [sources, target] = await readAll(urls, options);
  const findings = findingsOf({ sources, target, requires: options.requires, proxyOps: options.proxyOps });
  const { conclusion, because } = concludeFrom(findings);
  const { nodeMemory, nodeOps = null, sourcePrice = null, targetPrice = null } = options;
  const sizing = sizingOf(sources, {
    nodeMemory: nodeMemory === undefined ? null : nodeMemory * GIB,
    nodeOps,
    sourcePrice,
    targetPrice,
  });
  if (options.json)
    process.stdout.write(
      `${JSON.stringify({ conclusion, because, findings, sizing, truths: TRUTHS, sources, target }, plain, 2)}\n`,
    );
  else process.stdout.write(`${render(sources, findings, sizing, conclusion, because)}\n`);
  return { go: exitCode.holds, 'no-go': exitCode.fails, unknown: exitCode.inconclusive }[conclusion];
}

/** All at once, so that they are watched in the same time. */
async function readAll(
  urls: readonly string[],
  options: AssessOptions,
): Promise<[InstanceFacts[], InstanceFacts | null]> {
  if ((urls.length === 0) === (options.plan === undefined))
    throw new CliError('option', 'give URLs of sources, or --plan with a plan that has them', exitCode.usage);
  const endpoints =
    options.plan === undefined
      ? urls.map((url) => endpointOf('<source>', url, options.ca))
      : loadPlan(options.plan).shards.map(({ source }) => source);
  const target = options.target === undefined ? null : endpointOf('--target', options.target, options.ca);
  try {
    const read = await Promise.all([
      Promise.all(endpoints.map((endpoint) => readInstance(endpoint, options.for))),
      target && readInstance(target, options.for),
    ]);
    return options.monitor === undefined ? read : [await monitorAll(read[0], endpoints, options.monitor), read[1]];
  } catch (problem) {
    if (problem instanceof AskError) throw new CliError('unreachable', problem.message, exitCode.inconclusive);
    throw problem;
  }
}

/** After everything else was measured, which it would distort. */
function monitorAll(
  sources: readonly InstanceFacts[],
  endpoints: readonly Endpoint[],
  ms: number,
): Promise<InstanceFacts[]> {
  const count = `${endpoints.length} ${endpoints.length === 1 ? 'source' : 'sources'}`;
  process.stderr.write(
    `MONITOR on ${count} for ${ms / 1000} s: it costs throughput, and shows this tool every command with its arguments. Nothing of them is kept but counts.\n`,
  );
  return Promise.all(sources.map(async (source, i) => ({ ...source, monitored: await monitor(endpoints[i], ms) })));
}

function monitorTime(text: string): number {
  const ms = duration(text);
  if (ms > MAX_MONITOR_MS) throw new InvalidArgumentError('At most 60s: MONITOR costs the server throughput.');
  return ms;
}

/** Read as a plan's would be: environment variables, Sentinels, certificates. */
function endpointOf(option: string, url: string, ca: string | undefined): Endpoint {
  const tls = ca !== undefined && url.startsWith('rediss') ? { tls: { source: { ca } } } : {};
  const value = {
    version: 1,
    name: 'assess',
    shards: [
      { name: 'assess', listen: 'redis://127.0.0.1:0', source: url, target: 'redis://target.invalid:1', ...tls },
    ],
  };
  try {
    return planFrom(value, 'shadow-compare assess', { directory: process.cwd(), env: process.env }).shards[0].source;
  } catch (error) {
    if (!(error instanceof PlanError)) throw error;
    throw new PlanError(
      'shadow-compare assess',
      error.problems.map(({ message }) => ({ path: [option], message })),
    );
  }
}

function price(text: string): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
  if (!(value >= 0)) throw new InvalidArgumentError('A number is allowed, in whatever currency.');
  return value;
}

/** Maps and sets as JSON, without what has digests of passwords. */
const plain = (name: string, value: unknown): unknown =>
  name === 'acl'
    ? undefined
    : value instanceof Map
      ? Object.fromEntries(value)
      : value instanceof Set
        ? [...value].length
        : value;

const ORDER: readonly Weight[] = ['no-go', 'go', 'unknown', 'first', 'note'];
const WORD: Readonly<Record<Weight, string>> = {
  'no-go': 'NO-GO',
  go: 'GO',
  unknown: 'UNKNOWN',
  first: 'FIRST',
  note: 'note',
};
const WIDTH = 100;

function render(
  sources: readonly InstanceFacts[],
  findings: readonly Finding[],
  sizing: Sizing,
  conclusion: Conclusion,
  because: string,
): string {
  const servers = new Table({
    head: ['source', 'version', 'commands/s', 'CPU', 'clients', 'memory', 'keys', 'p50 / p99'],
    style: { head: [], border: [] },
  });
  for (const { label, version, opsPerSecond, cpu, clients, memory, databases, ping } of sources) {
    const keys = [...databases.values()].reduce((a, b) => a + b, 0);
    const share = cpu === null ? '–' : `${Math.round(cpu * 100)} %`;
    servers.push([
      label,
      version,
      number(Math.round(opsPerSecond)),
      share,
      number(clients.connected),
      `${(memory.used / 2 ** 20).toFixed(0)} MiB`,
      number(keys),
      `${ping.p50.toFixed(2)} / ${ping.p99.toFixed(2)} ms`,
    ]);
  }
  const lines = ORDER.flatMap((weight) => findings.filter((finding) => finding.weight === weight)).map(
    ({ about, weight, what, means }) => entry(WORD[weight], `${about}: ${what}`, means),
  );
  const truths = TRUTHS.map(({ what, means }) => entry('', what, means));
  return [
    servers.toString(),
    '',
    ...lines,
    '',
    'KeyDB, told plainly',
    ...truths,
    '',
    renderSizing(sizing, sources.length),
    '',
    `${conclusion.toUpperCase()}: ${because}`,
  ].join('\n');
}

const INDENT = 9;
const entry = (word: string, what: string, means: string): string =>
  [
    ...wrap(what).map((line, i) => `${(i === 0 ? word : '').padEnd(INDENT)}${line}`),
    ...wrap(`→ ${means}`).map((line) => `${''.padEnd(INDENT)}${line}`),
  ].join('\n');

function wrap(text: string): string[] {
  const lines: string[] = [''];
  for (const word of text.split(' ')) {
    if (lines[lines.length - 1].length + word.length + 1 > WIDTH - INDENT && lines[lines.length - 1] !== '')
      lines.push(word);
    else lines[lines.length - 1] += lines[lines.length - 1] === '' ? word : ` ${word}`;
  }
  return lines;
}

function renderSizing(
  { opsPerSecond, memory, byMemory, byOps, nodes, costNow, costThen }: Sizing,
  instances: number,
): string {
  const load = `Sizing: ${number(Math.round(opsPerSecond))} commands a second, ${(memory / GIB).toFixed(1)} GiB with room for fragmentation and growth`;
  if (byMemory === null || byOps === null) {
    return `${load}.\nSay --node-memory, and --node-ops as you measured it on your own KeyDB (loadtest/), for the number of nodes: KeyDB runs commands one at a\ntime, so that nobody else's figure holds for your commands.`;
  }
  const cost =
    costNow === null || costThen === null
      ? 'say --source-price and --target-price for the cost'
      : `${number(Math.round(costThen))} a month instead of ${number(Math.round(costNow))}`;
  return `${load}: ${nodes} KeyDB ${nodes === 1 ? 'node' : 'nodes'} instead of ${instances} (${byMemory} for memory, ${byOps} for commands), without replicas; ${cost}.`;
}
