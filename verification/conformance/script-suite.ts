/**
 * `npm run script-suite`: packages that run scripts do their typical work through the proxy in stage `shadow`, with a
 * default plan. Shows whether the gates that look at replies and keys open, package by package.
 */
import Table from 'cli-table3';
import { Command, InvalidArgumentError } from 'commander';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../shadow-proxy/src/local/port.js';
import { findKeydb, findRedis, ServerMissing } from '../../shadow-proxy/src/local/program.js';
import { startKeydb, startRedis } from '../../shadow-proxy/src/local/servers.js';
import type { GateName } from '../../shadow-proxy/src/route/transitions.js';
import type { Gate } from '../../shadow-proxy/src/stages/gates.js';
import { sum } from '../../shadow-proxy/src/telemetry/snapshot.js';
import { ConformanceError } from './run/error.js';
import { positive, words } from './run/main.js';
import { reportMirror, settle } from './run/mirror.js';
import { runLimited } from './run/program.js';
import { startProxy } from './run/proxy.js';

const NODE_WORK = fileURLToPath(new URL('./suites/script-work.js', import.meta.url));
const PYTHON_WORK = fileURLToPath(new URL('../../../verification/conformance/suites/script_work.py', import.meta.url));
/** A package's work may take so much longer than it is asked to. */
const GRACE_S = 30;
/** Keys of rate limiters live so long: both servers are read one after the other. */
const SHORT_TTL_MS = 1_500;
/** What a package needs that KeyDB does not have: an operator allows it by name. */
const EXPECTED: Readonly<Record<string, GateName>> = { bullmq: 'unsupported' };
/** Gates that open by time, by volume, or by an operator's command. */
const NOT_JUDGED: ReadonlySet<string> = new Set(['compared', 'time', 'verify', 'drill', 'latency']);

const NODE = ['bull', 'bullmq', 'bee-queue', 'bottleneck', 'redlock'];
const PYTHON = ['redis-py', 'dramatiq'];

interface Options {
  readonly packages?: string;
  readonly python?: string;
  readonly only: readonly string[];
  readonly seconds: number;
  readonly out: string;
}

interface Row {
  readonly name: string;
  readonly version: string;
  readonly work: string;
  readonly compared: number;
  readonly inconclusive: number;
  readonly mismatches: Readonly<Record<string, number>>;
  readonly samples: readonly string[];
  readonly differences: readonly string[];
  readonly unsettled: string | null;
  /** Gates that are closed, but for `NOT_JUDGED`. */
  readonly closed: readonly Gate[];
  readonly gates: readonly Gate[];
}

const inconclusiveShare = ({ compared, inconclusive }: Row): number =>
  compared + inconclusive === 0 ? 1 : inconclusive / (compared + inconclusive);

const isGood = (row: Row): boolean =>
  row.compared > 0 && row.closed.length === 0 && row.differences.length === 0 && row.unsettled === null;

async function runPackage(name: string, options: Options): Promise<Row> {
  const redis = await startRedis();
  const keydb = await startKeydb();
  const port = await freePort();
  const proxy = await startProxy({ source: redis, target: keydb }, 'shadow', port, false);
  try {
    const log = path.join(options.out, 'script-logs', `${name}.log`);
    mkdirSync(path.dirname(log), { recursive: true });
    const args = [String(port), String(options.seconds)];
    const isNode = NODE.includes(name);
    const { code, timedOut } = await runLimited({
      command: isNode ? process.execPath : options.python!,
      args: isNode ? [NODE_WORK, name, path.resolve(options.packages!), ...args] : [PYTHON_WORK, name, ...args],
      cwd: process.cwd(),
      log,
      limitMs: (options.seconds + GRACE_S) * 1_000,
    });
    const said = readFileSync(log, 'utf8').trim().split('\n').at(-1)!;
    const failed = timedOut || code !== 0;
    // Before the keys are compared: that would be seen as clients that bypass the proxy.
    await settle(proxy);
    const [{ workloads }] = await proxy.evidence();
    await sleep(SHORT_TTL_MS);
    const { differences, unsettled, mismatches, samples } = await reportMirror(proxy, [redis], [keydb]);
    const { evidence, gates } = workloads.find(({ workload }) => workload === 'default')!;
    return {
      name,
      version: versionOf(name, options),
      work: failed ? `failed, see ${log}` : said,
      compared: evidence.compared,
      inconclusive: evidence.inconclusive,
      mismatches,
      samples,
      differences,
      unsettled: failed ? 'its work failed' : unsettled,
      closed: gates.filter(
        ({ name: gate, answer }) => answer !== 'yes' && !NOT_JUDGED.has(gate) && EXPECTED[name] !== gate,
      ),
      gates,
    };
  } finally {
    await proxy.stop();
    await Promise.all([redis.stop(), keydb.stop()]);
  }
}

function versionOf(name: string, { packages, python }: Options): string {
  if (NODE.includes(name)) {
    const file = path.join(packages!, 'node_modules', name, 'package.json');
    return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
  }
  return `of ${path.basename(path.dirname(path.dirname(python!)))}`;
}

const isHere = (name: string, { packages, python }: Options): boolean =>
  NODE.includes(name)
    ? packages !== undefined && existsSync(path.join(packages, 'node_modules', name))
    : python !== undefined;

function render(rows: readonly Row[]): string {
  const table = new Table({
    head: ['package', 'pairs', 'inconclusive', 'mismatches', 'differ', 'gates'],
    style: { head: [], border: [] },
    colWidths: [22, 9, 14, 12, 8, 60],
    wordWrap: true,
  });
  for (const row of rows) {
    table.push([
      `${row.name} ${row.version}`,
      row.compared,
      `${row.inconclusive} (${(inconclusiveShare(row) * 100).toFixed(2)} %)`,
      sum(row.mismatches),
      row.differences.length,
      row.closed.map(({ name, evidence }) => `${name}: ${evidence}`).join('\n') || (row.unsettled ?? 'open'),
    ]);
  }
  return table.toString();
}

function namesOf(text: string): string[] {
  return words(text).map((word) => {
    if (![...NODE, ...PYTHON].includes(word))
      throw new InvalidArgumentError(`one of ${[...NODE, ...PYTHON].join(', ')} is wanted`);
    return word;
  });
}

async function main(): Promise<number> {
  const options = new Command('script-suite')
    .description('Packages that run scripts work through the proxy; shows whether their gates open.')
    .option('--packages <folder>', `a folder with node_modules that has ${NODE.join(', ')} and ioredis`)
    .option('--python <program>', 'a Python that has redis and dramatiq')
    .option('--only <list>', 'only these packages', namesOf, [...NODE, ...PYTHON])
    .option('--seconds <n>', 'how long each package works', positive, 30)
    .option('--out <folder>', 'where the results go', path.join('dist', 'conformance'))
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
    .parse(process.argv)
    .opts<Options>();
  const names = options.only.filter((name) => isHere(name, options));
  if (names.length === 0) throw new ConformanceError('USAGE', 'name where the packages are: --packages, --python');
  const redis = await findRedis();
  const keydb = await findKeydb();
  if (keydb === null) throw new ConformanceError('MISSING_PROGRAM', 'keydb-server is missing: set KEYDB_SERVER');
  process.stderr.write(`redis ${redis.version}, keydb ${keydb.version}, ${options.seconds} s each\n`);
  const rows: Row[] = [];
  for (const name of names) {
    const row = await runPackage(name, options);
    process.stderr.write(`${isGood(row) ? 'ok  ' : 'FAIL'} ${name}: ${row.work}\n`);
    rows.push(row);
  }
  writeFileSync(path.join(options.out, 'script.json'), `${JSON.stringify(rows, null, 2)}\n`);
  process.stdout.write(`${render(rows)}\n`);
  for (const name of options.only.filter((each) => !names.includes(each)))
    process.stdout.write(`not run: ${name} (not in the given folder)\n`);
  return rows.every(isGood) ? 0 : 1;
}

process.exitCode = await main().catch((error: unknown) => {
  const known = error instanceof ConformanceError || error instanceof ServerMissing;
  process.stderr.write(`${known ? error.message : (error as Error).stack}\n`);
  return error instanceof ConformanceError ? error.exitCode : 3;
});
