/** BullMQ's own tests: Vitest in a BullMQ source tree, one file a unit. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runLimited } from '../run/program.js';
import { ConformanceError } from '../run/error.js';
import type { Outcome, TestResult } from '../run/result.js';
import type { ReportLine } from './reporter.js';

const REPORTER = fileURLToPath(new URL('./reporter.js', import.meta.url));

/** Which of BullMQ's configurations has which client. */
export const CONFIGS = {
  ioredis: 'vitest.config.ts',
  'ioredis-only': 'vitest.ioredis.config.ts',
  'node-redis': 'vitest.node-redis.config.ts',
} as const;
export type Client = keyof typeof CONFIGS;

/** The files of a configuration, relative to the tree. @throws {ConformanceError} */
export function filesOf(source: string, client: Client): string[] {
  const program = vitestOf(source);
  if (!existsSync(join(source, CONFIGS[client])))
    throw new ConformanceError('USAGE', `${source} has no ${CONFIGS[client]}`);
  const args = [program, 'list', '--filesOnly', '--json', '--config', CONFIGS[client]];
  const said = execFileSync(process.execPath, args, {
    cwd: source,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const files = JSON.parse(said.slice(said.indexOf('[\n'))) as { file: string }[];
  return files.map(({ file }) => relative(source, file)).sort();
}

function vitestOf(source: string): string {
  const program = join(source, 'node_modules', 'vitest', 'vitest.mjs');
  if (existsSync(program)) return program;
  throw new ConformanceError(
    'USAGE',
    `${source} has no Vitest: install the packages of that tree, and generate its scripts (its "pretest")`,
  );
}

export interface VitestOptions {
  readonly source: string;
  /** Seconds for a whole file. */
  readonly limit: number;
}

/** @param unit `CLIENT FILE` */
export async function runVitest(
  unit: string,
  port: number,
  log: string,
  { source, limit }: VitestOptions,
): Promise<Outcome> {
  const [client, file] = unit.split(' ') as [Client, string];
  const results = `${log}.jsonl`;
  writeFileSync(results, '');
  const args = [
    vitestOf(source),
    'run',
    '--no-file-parallelism',
    '--config',
    CONFIGS[client],
    `--reporter=${REPORTER}`,
    '--reporter=verbose',
    file,
  ];
  const env = { REDIS_HOST: '127.0.0.1', REDIS_PORT: String(port), CONFORMANCE_RESULTS: results, NO_COLOR: '1' };
  const { timedOut, code } = await runLimited({
    command: process.execPath,
    args,
    cwd: source,
    env,
    log: `${log}.log`,
    limitMs: limit * 1000,
  });
  const outcome = parseLines(readFileSync(results, 'utf8'));
  if (timedOut) return { ...outcome, cutShort: `after the limit of ${limit} s` };
  return outcome.cutShort === null ? outcome : { ...outcome, cutShort: `${outcome.cutShort}, exit code ${code}` };
}

/** Reads what the reporter wrote. */
export function parseLines(text: string): Outcome {
  const tests: TestResult[] = [];
  const aborts: string[] = [];
  let cutShort: string | null = 'it did not come to its end';
  for (const line of text.split('\n').filter(Boolean)) {
    const said = JSON.parse(line) as ReportLine;
    if ('test' in said) tests.push(said.test);
    else if ('error' in said) aborts.push(said.error);
    else cutShort = null;
  }
  return { tests, aborts, cutShort };
}
