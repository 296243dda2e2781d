/** `npm run simulate`: the proxy in simulated worlds; what is wrong is printed with the command that repeats it. */
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { PROFILES, type Profile } from './profiles.js';
import { simulate, type Result } from './run.js';
import { Totals } from './totals.js';

const HELP = `npm run simulate -- [options]

Runs the proxy's code in simulated worlds: two servers, clients, a network, a disk and an operator, in virtual time.
The same seed, profile and operations give the same run. Exits 1 where something is wrong, 2 for a wrong option.

  --seed N        the first seed (default: 1)
  --seeds N       how many seeds, one after the other (default: 1)
  --minutes N     instead of --seeds: seed after seed for so long
  --operations N  commands of clients in each run (default: 10000)
  --profile NAME  ${PROFILES.map(({ name }) => name).join(', ')}; all: one after the other (default: all)
  --workers N     processes, each with seeds of its own; auto: one for each core (default: 1)
  --timeline      print the last events also where nothing is wrong
  --log LEVEL     print the proxy's log from this level on (default: silent)
  --help          print this
`;

const OPTIONS = {
  seed: { type: 'string', default: '1' },
  seeds: { type: 'string', default: '1' },
  minutes: { type: 'string' },
  operations: { type: 'string', default: '10000' },
  profile: { type: 'string', default: 'all' },
  workers: { type: 'string', default: '1' },
  /** Between two seeds of one worker. */
  stride: { type: 'string', default: '1' },
  timeline: { type: 'boolean', default: false },
  log: { type: 'string', default: 'silent' },
  help: { type: 'boolean', default: false },
} as const;

const print = (line: string): void => void process.stdout.write(`${line}\n`);

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(2);
}

function optionsOf(args: string[]): ReturnType<typeof parse> {
  try {
    return parse(args);
  } catch (problem) {
    return fail(`${(problem as Error).message}; run npm run simulate -- --help`);
  }
}

const parse = (args: string[]) => parseArgs({ args, options: OPTIONS }).values;
const values = optionsOf(process.argv.slice(2));

function numberOf(name: 'seed' | 'seeds' | 'operations' | 'stride' | 'minutes' | 'workers', text: string): number {
  const value = Number(text);
  if (text !== '' && value > 0 && (name === 'minutes' || Number.isSafeInteger(value))) return value;
  return fail(`--${name} ${text}: give a number above 0${name === 'workers' ? ', or auto' : ''}`);
}

function profilesOf(name: string): readonly Profile[] {
  const found = name === 'all' ? PROFILES : PROFILES.filter((each) => each.name === name);
  if (found.length > 0) return found;
  return fail(`--profile ${name}: give all, or one of ${PROFILES.map((each) => each.name).join(', ')}`);
}

const counts = (of: ReadonlyMap<string, number>): string =>
  [...of].map(([name, count]) => `${name} ${count}`).join(', ') || 'none';

function report(seed: number, { name }: Profile, result: Result, seconds: number): void {
  const { finding, timeline, operations, virtualMs, events, trace } = result;
  print(
    `seed ${seed}, profile ${name}: ${operations} operations, ${events} events, ${(virtualMs / 1000).toFixed(1)} s of virtual time, trace ${trace.toString(16)}; ${Math.round(operations / seconds)} operations a second of one core`,
  );
  print(`  answered ${result.answered}, cut off ${result.lost}; errors: ${counts(result.errors)}`);
  print(`  faults: ${counts(result.struck)}; stages: ${counts(result.stages)}`);
  print(`  came to rest, and equal: ${result.cleanChecks}; calls in checked histories: ${result.linearized}`);
  if (result.lacking.length > 0) print(`  the models lack: ${result.lacking.join(', ')}`);
  if (finding !== null) print(`FINDING: ${finding}`);
  if (finding !== null || values.timeline) for (const line of timeline) print(line);
  if (finding !== null)
    print(`again: npm run simulate -- --seed ${seed} --profile ${name} --operations ${values.operations}`);
}

/** @returns whether nothing is wrong */
async function runSeeds(): Promise<boolean> {
  const profiles = profilesOf(values.profile);
  const [first, stride, operations] = [
    numberOf('seed', values.seed),
    numberOf('stride', values.stride),
    numberOf('operations', values.operations),
  ];
  const endsAt = values.minutes === undefined ? null : performance.now() + numberOf('minutes', values.minutes) * 60_000;
  const count = endsAt === null ? numberOf('seeds', values.seeds) : Infinity;
  const totals = profiles.map((profile) => new Totals(profile));
  for (let i = 0; i < count && performance.now() < (endsAt ?? Infinity); i++) {
    for (const [at, profile] of profiles.entries()) {
      const seed = first + i * stride;
      const began = process.cpuUsage();
      const result = await simulate({ seed, profile, operations, logLevel: values.log });
      report(seed, profile, result, process.cpuUsage(began).user / 1e6);
      totals[at].add(result);
      if (result.finding !== null) return false;
    }
  }
  const missing = totals.flatMap((each, at) => each.missing().map((what) => `profile ${profiles[at].name}: ${what}`));
  for (const what of missing) print(`FINDING: ${what}`);
  print(
    `${totals.reduce((sum, each) => sum + each.operations, 0)} operations${missing.length > 0 ? '' : ', nothing wrong'}`,
  );
  return missing.length === 0;
}

/** @returns whether nothing is wrong */
async function runWorkers(count: number): Promise<boolean> {
  const first = numberOf('seed', values.seed);
  const passed = process.argv.slice(2);
  const ends = Array.from({ length: count }, (_, i) => {
    const args = [...passed, '--workers', '1', '--seed', String(first + i), '--stride', String(count)];
    const child = spawn(process.execPath, [fileURLToPath(import.meta.url), ...args], { stdio: 'inherit' });
    return new Promise<boolean>((resolve) => child.once('close', (code) => resolve(code === 0)));
  });
  return (await Promise.all(ends)).every(Boolean);
}

if (values.help) {
  process.stdout.write(HELP);
} else {
  process.on('unhandledRejection', (problem) => {
    print(`FINDING: a promise is rejected and nothing handles it: ${(problem as Error).stack}`);
    process.exit(1);
  });
  const workers = values.workers === 'auto' ? availableParallelism() : numberOf('workers', values.workers);
  if (!(await (workers === 1 ? runSeeds() : runWorkers(workers)))) process.exitCode = 1;
}
