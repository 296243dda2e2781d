/** `npm run simulate`: the proxy in simulated worlds; what is wrong is printed with the command that repeats it. */
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Command, InvalidArgumentError, Option } from 'commander';
import { PROFILES, type Profile } from './run/profiles.js';
import { simulate, type Result } from './run/run.js';
import { linesOf } from './run/program.js';
import { shrink } from './run/shrink.js';
import { missingOfAll, Totals } from './run/totals.js';

function number(text: string): number {
  const value = Number(text);
  if (text !== '' && value > 0) return value;
  throw new InvalidArgumentError('Give a number above 0.');
}

function whole(text: string): number {
  if (Number.isSafeInteger(number(text))) return Number(text);
  throw new InvalidArgumentError('Give a whole number above 0.');
}

/** Runs make much that lives for a moment: with this room for it, in MiB, many runs need an eighth less CPU time. */
const HEAP = '--max-semi-space-size=64';

interface Values {
  readonly seed: number;
  readonly seeds: number;
  readonly minutes?: number;
  readonly operations: number;
  readonly profile: string;
  readonly workers: number;
  readonly stride: number;
  readonly timeline: boolean;
  readonly shrink?: number;
  readonly log: string;
}

const program = new Command('npm run simulate --')
  .description(
    'Run the code of the proxy in simulated worlds: servers, clients, network, disk and operator, in virtual time.\n' +
      'The same seed, profile and operations give the same run. Exits with 1 where something is wrong.',
  )
  .option('--seed <number>', 'the first seed', whole, 1)
  .option('--seeds <number>', 'how many seeds, one after the other', whole, 1)
  .option('--minutes <number>', 'instead of --seeds: seed after seed for so long', number)
  .option('--operations <number>', 'commands of clients in each run', whole, 10_000)
  .addOption(
    new Option('--profile <name>', 'load and faults; all: one profile after the other')
      .choices(['all', ...PROFILES.map(({ name }) => name)])
      .default('all'),
  )
  .option(
    '--workers <number>',
    'processes, each with seeds of its own; auto: one for each core',
    (text) => (text === 'auto' ? availableParallelism() : whole(text)),
    1,
  )
  .addOption(new Option('--stride <number>', 'between two seeds of one worker').argParser(whole).default(1).hideHelp())
  .option('--timeline', 'print the last events also where nothing is wrong', false)
  .addOption(
    new Option('--shrink [seconds]', 'make what is found small, in so much CPU time').argParser(number).preset(60),
  )
  .option('--log <level>', "print the proxy's log from this level on", 'silent');
const values = program.parse().opts<Values>();

const print = (line: string): void => void process.stdout.write(`${line}\n`);
// Who reads has enough, such as `| head`.
process.stdout.on('error', () => process.exit());

const counts = (of: ReadonlyMap<string, number>): string =>
  [...of].map(([name, count]) => `${name} ${count}`).join(', ') || 'none';

/** The finding as a program of a few lines, and what happens in it. */
async function printSmall(profile: Profile, result: Result): Promise<void> {
  const small = await shrink(profile, result, values.shrink!);
  if (small === null) return print('the program that was recorded does not repeat the finding');
  for (const line of linesOf(small.program)) print(line);
  print(`FINDING: ${small.result.finding}`);
  for (const line of small.result.timeline) print(line);
}

async function report(seed: number, profile: Profile, result: Result, seconds: number): Promise<void> {
  const { name } = profile;
  const { finding, timeline, operations, virtualMs, events, trace } = result;
  print(
    `seed ${seed}, profile ${name}: ${operations} operations, ${events} events, ${(virtualMs / 1000).toFixed(1)} s of virtual time, trace ${trace.toString(16)}; ${Math.round(operations / seconds)} operations a second of one core`,
  );
  print(`  answered ${result.answered}, cut off ${result.lost}; errors: ${counts(result.errors)}`);
  print(`  faults: ${counts(result.struck)}; stages: ${counts(result.stages)}`);
  print(
    `  came to rest, and equal: ${result.cleanChecks}; calls in checked histories: ${result.linearized}, histories given up: ${result.unsearched}; messages: ${result.messages}`,
  );
  if (result.lacking.length > 0) print(`  the models lack: ${result.lacking.join(', ')}`);
  if (finding !== null) print(`FINDING: ${finding}`);
  if (finding !== null || values.timeline) for (const line of timeline) print(line);
  if (finding !== null && values.shrink !== undefined) await printSmall(profile, result);
  if (finding !== null)
    print(`again: npm run simulate -- --seed ${seed} --profile ${name} --operations ${values.operations}`);
}

/** @returns whether nothing is wrong */
async function runSeeds(): Promise<boolean> {
  const { seed: first, stride, operations, minutes, seeds } = values;
  const profiles = values.profile === 'all' ? PROFILES : PROFILES.filter(({ name }) => values.profile === name);
  const endsAt = minutes === undefined ? Infinity : performance.now() + minutes * 60_000;
  const count = minutes === undefined ? seeds : Infinity;
  const totals = profiles.map((profile) => new Totals(profile));
  for (let i = 0; i < count && performance.now() < endsAt; i++) {
    for (const [at, profile] of profiles.entries()) {
      const seed = first + i * stride;
      const began = process.cpuUsage();
      const result = await simulate({ seed, profile, operations, logLevel: values.log });
      await report(seed, profile, result, process.cpuUsage(began).user / 1e6);
      totals[at].add(result);
      if (result.finding !== null) return false;
    }
  }
  const missing = totals.flatMap((each, at) => each.missing().map((what) => `profile ${profiles[at].name}: ${what}`));
  if (profiles === PROFILES) missing.push(...missingOfAll(totals));
  for (const what of missing) print(`FINDING: ${what}`);
  print(
    `${totals.reduce((sum, each) => sum + each.operations, 0)} operations${missing.length > 0 ? '' : ', nothing wrong'}`,
  );
  return missing.length === 0;
}

/** @returns whether nothing is wrong */
async function runWorkers(count: number): Promise<boolean> {
  const passed = process.argv.slice(2);
  const ends = Array.from({ length: count }, (_, i) => {
    const args = [...passed, '--workers', '1', '--seed', String(values.seed + i), '--stride', String(count)];
    const child = spawn(process.execPath, [HEAP, fileURLToPath(import.meta.url), ...args], { stdio: 'inherit' });
    return new Promise<boolean>((resolve) => child.once('close', (code) => resolve(code === 0)));
  });
  return (await Promise.all(ends)).every(Boolean);
}

process.on('unhandledRejection', (problem) => {
  print(`FINDING: a promise is rejected and nothing handles it: ${(problem as Error).stack}`);
  process.exit(1);
});
if (!(await (values.workers === 1 ? runSeeds() : runWorkers(values.workers)))) process.exitCode = 1;
