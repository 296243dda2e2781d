/**
 * What the programs share: from the suite to the exit code (0 it holds, 1 it does not, 2 wrong usage, 3 could not
 * tell).
 */
import { Command, InvalidArgumentError } from 'commander';
import path from 'node:path';
import { findKeydb, findRedis, ServerMissing } from '../../../shadow-proxy/src/local/program.js';
import { KEYS, TESTS } from '../exceptions.js';
import { judge } from './compare.js';
import { ConformanceError } from './error.js';
import { report } from './report.js';
import { DIRECT, type Proxied, type Way } from './result.js';
import { runUnits, type Suite } from './units.js';

export interface CommonOptions {
  readonly stages: readonly Proxied[];
  readonly direct: boolean;
  readonly again: number;
  readonly limit: number;
  /** Folder of the results and of what the suite printed. */
  readonly out: string;
  readonly json: boolean;
}

/** A command line with the options of all programs. Ends the process with 2 on wrong usage. */
export const commandLine = (name: string, stages: string): Command =>
  new Command(name)
    .option(
      '--stages <list>',
      'stages of the proxy: shadow (compared with Redis), live (with KeyDB)',
      stagesOf,
      stagesOf(stages),
    )
    .option('--direct', 'without the proxy only: what passes here at all', false)
    .option(
      '--again <n>',
      'how often a unit that lost tests goes through the proxy once more; lost is then what every try lost',
      whole,
      0,
    )
    .option('--limit <seconds>', 'the longest that one unit may take', positive, 900)
    .option('--out <folder>', 'where the results go', path.join('dist', 'conformance'))
    .option('--json', 'print the JSON instead of the table', false)
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2));

export const waysOf = ({ stages, direct }: CommonOptions): Way[] =>
  stages.flatMap((stage) => (direct ? [DIRECT[stage]] : [DIRECT[stage], stage]));

/** Runs a suite on all its ways, and sets the exit code. */
export async function main(suiteOf: () => { suite: Suite; tree: string; options: CommonOptions }): Promise<void> {
  process.exitCode = await run(suiteOf).catch((error: unknown) => {
    const known = error instanceof ConformanceError || error instanceof ServerMissing;
    process.stderr.write(`${known ? error.message : (error as Error).stack}\n`);
    return error instanceof ConformanceError ? error.exitCode : 3;
  });
}

async function run(suiteOf: () => { suite: Suite; tree: string; options: CommonOptions }): Promise<number> {
  const { suite, tree, options } = suiteOf();
  const [redis, keydb] = [await findRedis(), await findKeydb()];
  if (keydb === null)
    throw new ConformanceError(
      'MISSING_PROGRAM',
      'keydb-server (the mirror) is missing: put it on PATH, or set KEYDB_SERVER',
    );
  const say = (line: string): void => void process.stderr.write(`${line}\n`);
  say(`suite:  ${tree}`);
  say(`redis:  ${redis.path} ${redis.version}`);
  say(`keydb:  ${keydb.container ? `${keydb.path} in ${keydb.container.image}` : keydb.path} ${keydb.version}`);
  say(
    `ways:   ${suite.ways.map((way) => (way in DIRECT ? `through the proxy in stage ${way}` : `directly to ${way}`)).join(', ')}`,
  );
  const results = await runUnits(suite, path.resolve(options.out, `${suite.name}-logs`), say);
  if (options.direct) return 0;
  const judgement = judge(results, { suite: suite.name, tests: TESTS, keys: KEYS });
  report(suite.name, judgement, options.out, options.json);
  if (judgement.failures.length > 0) return 1;
  return judgement.open.length > 0 || judgement.comparisons.length === 0 ? 3 : 0;
}

export function positive(text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new InvalidArgumentError('a number above 0 is wanted');
  return value;
}

function whole(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0) throw new InvalidArgumentError('a whole number is wanted');
  return value;
}

export const words = (text: string): string[] => text.split(',').filter(Boolean);

function stagesOf(text: string): Proxied[] {
  return words(text).map((word) => {
    if (word !== 'shadow' && word !== 'live') throw new InvalidArgumentError('shadow, live or both are wanted');
    return word;
  });
}
