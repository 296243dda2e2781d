/**
 * `npm run mutants`: do the tests notice a fault?
 *
 *   npm run mutants                             both of the following; hours
 *   npm run mutants -- --faults [part]           the list of mutants/faults, or those with the part in their id or file
 *   npm run mutants -- --stryker [part]          StrykerJS over mutants/stryker/modules.ts: a group, or part of a path
 *
 * Exits with 0 where every fault is noticed or has the reason why it cannot be, and Stryker's score is high enough; 1
 * where not, 2 where it cannot be tried.
 */
import { Command, InvalidArgumentError } from 'commander';
import { FAULTS } from './faults/index.js';
import { shortcomings, table, tryFaults } from './try-faults.js';

interface CommandLine {
  readonly faults?: string | true;
  readonly stryker?: string | true;
  readonly parallel: number;
}

const program = new Command('mutants')
  .description('Puts faults into the code, one at a time, and says whether a test notices.')
  .option('--faults [part]', 'the faults of mutants/faults, or those with this part in their id or file')
  .option('--stryker [part]', 'the modules of mutants/stryker/modules.ts: all, a group, or part of a path')
  .option('--parallel <n>', 'faults, or test processes of Stryker, at a time: 1 or 2', oneOrTwo, 2);

const controller = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => controller.abort());
const partOf = (option: string | true | undefined): string => (typeof option === 'string' ? option : '');
const say = (line: string): void => void process.stdout.write(`${line}\n`);

try {
  const { faults, stryker, parallel } = program.parse().opts<CommandLine>();
  const both = faults === undefined && stryker === undefined;
  const mutated = both || stryker !== undefined ? await runModules(partOf(stryker), parallel) : true;
  const noticed = both || faults !== undefined ? await runFaults(partOf(faults), parallel) : true;
  process.exitCode = mutated && noticed ? 0 : 1;
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 2;
}
if (controller.signal.aborted) process.exitCode = 130;

/** Stryker stops by itself at a signal. */
async function runModules(part: string, parallel: number): Promise<boolean> {
  // Only here: it is large.
  const { LEAST_SCORE, runStryker } = await import('./stryker/run-stryker.js');
  const score = await runStryker(part, parallel, say);
  if (score < LEAST_SCORE) say(`Tests have noticed ${score.toFixed(1)} % of the mutants, fewer than ${LEAST_SCORE} %.`);
  return score >= LEAST_SCORE;
}

async function runFaults(part: string, parallel: number): Promise<boolean> {
  const chosen = part === '' ? FAULTS : FAULTS.filter(({ id, file }) => id.includes(part) || file.includes(part));
  if (chosen.length === 0)
    throw new Error(`No fault has "${part}" in its id or in the path of its file: see mutants/faults.`);
  const trials = await tryFaults(chosen, { parallel, say, signal: controller.signal });
  say(`\n${table(trials)}`);
  const lacks = shortcomings(trials, chosen === FAULTS);
  for (const each of lacks) say(each);
  return lacks.length === 0;
}

function oneOrTwo(value: string): number {
  if (value !== '1' && value !== '2') throw new InvalidArgumentError('1 or 2');
  return Number(value);
}
