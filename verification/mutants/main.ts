/**
 * `npm run mutants`: do the tests notice a fault?
 *
 *   npm run mutants                             both of the following; hours
 *   npm run mutants -- --faults [part]           the list of verification/mutants/faults, or those with the part in their id or file
 *   npm run mutants -- --simulate [part]         the same list, noticed by simulated runs instead of tests
 *   npm run mutants -- --stryker [part]          StrykerJS over verification/mutants/stryker/modules.ts: a group, or part of a path
 *
 * Exits with 0 where every fault is noticed or has the reason why it cannot be, and Stryker's score is high enough; 1
 * where not, 2 where it cannot be tried.
 */
import { Command, InvalidArgumentError } from 'commander';
import type { Fault } from './fault.js';
import { FAULTS } from './faults/index.js';
import { ROOT } from './root.js';
import { shortcomings, table, tryFaults } from './try-faults.js';

interface CommandLine {
  readonly faults?: string | true;
  readonly stryker?: string | true;
  readonly simulate?: string | true;
  readonly seconds: number;
  readonly profiles?: string;
  readonly again: boolean;
  readonly parallel: number;
}

/** Of each simulated run. */
const OPERATIONS = 1_500;

const program = new Command('mutants')
  .description('Puts faults into the code, one at a time, and says whether a test notices.')
  .option('--faults [part]', 'the faults of verification/mutants/faults, or those with this part in their id or file')
  .option('--stryker [part]', 'the modules of verification/mutants/stryker/modules.ts: all, a group, or part of a path')
  .option(
    '--simulate [part]',
    'the same faults, or those with one of these parts: a,b; simulated runs must notice them',
  )
  .option('--seconds <n>', 'with --simulate: CPU time for each fault', seconds, 20)
  .option('--profiles <names>', 'with --simulate: only these profiles: a,b')
  .option('--again', 'with --simulate: tries what was noticed before, too', false)
  .option('--parallel <n>', 'faults, or test processes of Stryker, at a time: 1 or 2', oneOrTwo, 2);

const controller = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => controller.abort());
const partOf = (option: string | true | undefined): string => (typeof option === 'string' ? option : '');
const say = (line: string): void => void process.stdout.write(`${line}\n`);

try {
  const { faults, stryker, simulate, parallel, seconds, profiles, again } = program.parse().opts<CommandLine>();
  const both = faults === undefined && stryker === undefined && simulate === undefined;
  const mutated = both || stryker !== undefined ? await runModules(partOf(stryker), parallel) : true;
  const noticed = both || faults !== undefined ? await runFaults(partOf(faults), parallel) : true;
  if (simulate !== undefined) await runSimulated(partOf(simulate), { parallel, seconds, profiles, again });
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

/** @param parts of ids and files, one of which a fault must have; separated by commas */
function chosenOf(parts: string): readonly Fault[] {
  if (parts === '') return FAULTS;
  const chosen = FAULTS.filter(({ id, file }) =>
    parts.split(',').some((part) => id.includes(part) || file.includes(part)),
  );
  if (chosen.length > 0) return chosen;
  throw new Error(`No fault has "${parts}" in its id or in the path of its file: see verification/mutants/faults.`);
}

async function runSimulated(
  part: string,
  options: Pick<CommandLine, 'parallel' | 'seconds' | 'profiles' | 'again'>,
): Promise<void> {
  // Only here: it loads the simulation.
  const { shareOf, trySimulated } = await import('./simulated/try-simulated.js');
  const { PROFILES } = await import('../simulation/run/profiles.js');
  const known = PROFILES.map(({ name }) => name);
  const profiles = options.profiles?.split(',') ?? known;
  const unknown = profiles.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Error(`No profile is called "${unknown}": ${known.join(', ')}.`);
  const chosen = chosenOf(part);
  const report = `${ROOT}reports/simulated-faults`;
  const trials = await trySimulated(chosen, {
    ...options,
    profiles,
    operations: OPERATIONS,
    seedsToCount: 2,
    report,
    say,
    signal: controller.signal,
  });
  say(`\n${shareOf(chosen, trials)}. The table is in reports/simulated-faults.md.`);
}

async function runFaults(part: string, parallel: number): Promise<boolean> {
  const chosen = chosenOf(part);
  const trials = await tryFaults(chosen, { parallel, say, signal: controller.signal });
  say(`\n${table(trials)}`);
  const lacks = shortcomings(trials, chosen === FAULTS);
  for (const each of lacks) say(each);
  return lacks.length === 0;
}

function seconds(value: string): number {
  if (Number(value) > 0) return Number(value);
  throw new InvalidArgumentError('Give a number above 0.');
}

function oneOrTwo(value: string): number {
  if (value !== '1' && value !== '2') throw new InvalidArgumentError('1 or 2');
  return Number(value);
}
