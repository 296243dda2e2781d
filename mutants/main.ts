/**
 * `npm run mutants`: do the tests notice a fault?
 *
 *   npm run mutants -- --faults [part of id]    the list of mutants/faults, or those with the part in their id
 *
 * Ends with 0 where every fault is noticed or has the reason why it cannot be, 1 where not, 2 where it cannot be tried.
 */
import { Command, InvalidArgumentError } from 'commander';
import { FAULTS } from './faults/index.js';
import { shortcomings, table, tryFaults } from './try-faults.js';

interface CommandLine {
  readonly faults?: string | true;
  readonly parallel: number;
}

const program = new Command('mutants')
  .description('Puts faults into the code, one at a time, and says whether a test notices.')
  .option('--faults [part]', 'the faults of mutants/faults, or those with this part in their id')
  .option('--parallel <n>', 'faults at a time, 1 or 2', oneOrTwo, 2);

const controller = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => controller.abort());
const say = (line: string): void => void process.stdout.write(`${line}\n`);

try {
  process.exitCode = (await runFaults(program.parse().opts<CommandLine>())) ? 0 : 1;
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 2;
}
if (controller.signal.aborted) process.exitCode = 130;

async function runFaults({ faults: part, parallel }: CommandLine): Promise<boolean> {
  const chosen = typeof part === 'string' ? FAULTS.filter(({ id }) => id.includes(part)) : FAULTS;
  if (chosen.length === 0) throw new Error(`No fault has "${String(part)}" in its id: see mutants/faults.`);
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
