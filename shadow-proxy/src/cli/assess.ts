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
import { withManual } from './manual.js';
import { PLAIN, short } from './table.js';

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
  const command = program
    .command('assess')
    .description('Assess live servers: is a migration to KeyDB worth it, and what must be done first')
    .argument('[source...]', 'URL of each source Redis')
    .option('--plan <file>', 'read the sources from this plan instead')
    .option('--target <url>', 'URL of the target KeyDB, if there is one already')
    .addOption(
      new Option('--for <duration>', 'how long to measure load and latency; choose a busy hour')
        .argParser(duration)
        .default(10_000, '10s'),
    )
    .option(
      '--monitor <duration>',
      'then run MONITOR for this long (at most 60s) to see which options commands use; slows the sources down',
      monitorTime,
    )
    .option('--ca <file>', 'CA certificate for rediss:// servers')
    .addOption(
      new Option('--requires <what...>', 'features of a managed service that you need')
        .choices(Object.keys(MANAGED_ONLY))
        .default([]),
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
  withManual(command, 'npx shadow-compare assess --plan migration.yaml --for 1m', {
    0: 'GO',
    1: 'NO-GO',
    3: 'UNKNOWN, or a server does not answer',
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
    throw new CliError('option', 'give either the URLs of the sources or --plan, not both', exitCode.usage);
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
    `Running MONITOR on ${count} for ${ms / 1000} s. It lowers throughput and shows this tool every command with its arguments; only counts are kept.\n`,
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
  if (!(value >= 0)) throw new InvalidArgumentError('Give a number of 0 or more, in any currency.');
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
const WIDTH = 80;

/** What fits 80 columns with a blank between them. */
const SERVER_COLUMNS = [19, 7, 8, 5, 7, 9, 7, 11];

export function serverTable(sources: readonly InstanceFacts[]): string {
  const table = new Table({
    ...PLAIN,
    chars: { ...PLAIN.chars, middle: ' ' },
    wordWrap: true,
    wrapOnWordBoundary: false,
    colWidths: SERVER_COLUMNS,
    head: ['source', 'version', 'commands\nper s', 'CPU', 'clients', 'memory', 'keys', 'p50 / p99\nin ms'],
    colAligns: ['left', 'left', 'right', 'right', 'right', 'right', 'right', 'right'],
  });
  for (const { label, version, opsPerSecond, cpu, clients, memory, databases, ping } of sources)
    table.push([
      // Whatever is not TLS or Sentinel needs no scheme.
      label.replace(/^redis:\/\//, ''),
      version,
      short(Math.round(opsPerSecond)),
      cpu === null ? '–' : `${Math.round(cpu * 100)} %`,
      short(clients.connected),
      memory.used < GIB ? `${(memory.used / 2 ** 20).toFixed(0)} MiB` : `${(memory.used / GIB).toFixed(1)} GiB`,
      short([...databases.values()].reduce((a, b) => a + b, 0)),
      `${milliseconds(ping.p50)} / ${milliseconds(ping.p99)}`,
    ]);
  return table.toString().replace(/ +$/gm, '');
}

/** Fits its column. */
const milliseconds = (ms: number): string => ms.toFixed(ms < 10 ? 2 : ms < 100 ? 1 : 0);

function render(
  sources: readonly InstanceFacts[],
  findings: readonly Finding[],
  sizing: Sizing,
  conclusion: Conclusion,
  because: string,
): string {
  const lines = ORDER.flatMap((weight) => findings.filter((finding) => finding.weight === weight)).map(
    ({ about, weight, what, means }) => entry(WORD[weight], `${about}: ${what}`, means),
  );
  const truths = TRUTHS.map(({ what, means }) => entry('', what, means));
  return [
    serverTable(sources),
    '',
    ...lines,
    '',
    'What to know about KeyDB',
    ...truths,
    '',
    renderSizing(sizing, sources.length),
    '',
    fold(`${conclusion.toUpperCase()}: ${because}`),
  ].join('\n');
}

const INDENT = 9;
const entry = (word: string, what: string, means: string): string =>
  [
    ...wrap(what).map((line, i) => `${(i === 0 ? word : '').padEnd(INDENT)}${line}`),
    ...wrap(`→ ${means}`).map((line) => `${''.padEnd(INDENT)}${line}`),
  ].join('\n');

const fold = (text: string): string => wrap(text, WIDTH).join('\n');

function wrap(text: string, width = WIDTH - INDENT): string[] {
  const lines: string[] = [''];
  for (const word of text.split(/\s+/)) {
    if (lines[lines.length - 1].length + word.length + 1 > width && lines[lines.length - 1] !== '') lines.push(word);
    else lines[lines.length - 1] += lines[lines.length - 1] === '' ? word : ` ${word}`;
  }
  return lines;
}

function renderSizing(
  { opsPerSecond, memory, byMemory, byOps, nodes, costNow, costThen }: Sizing,
  instances: number,
): string {
  const load = `Sizing: ${number(Math.round(opsPerSecond))} commands per second, ${(memory / GIB).toFixed(1)} GiB including fragmentation and growth`;
  if (byMemory === null || byOps === null) {
    return fold(
      `${load}. For the number of nodes, give --node-memory and --node-ops. Measure --node-ops on your own KeyDB with your own commands (loadtest/): other people's figures do not apply.`,
    );
  }
  const cost =
    costNow === null || costThen === null
      ? 'for the cost, give --source-price and --target-price'
      : `${number(Math.round(costThen))} per month instead of ${number(Math.round(costNow))}`;
  return fold(
    `${load}: ${nodes} KeyDB ${nodes === 1 ? 'node' : 'nodes'} instead of ${instances} (${byMemory} for memory, ${byOps} for commands), without replicas; ${cost}.`,
  );
}
