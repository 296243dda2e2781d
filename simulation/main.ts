/** `npm run simulate`: runs the proxy in simulated worlds. */
import { parseArgs } from 'node:util';
import { PROFILES } from './profiles.js';
import { simulate, type Result } from './run.js';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    operations: { type: 'string', default: '20000' },
    minutes: { type: 'string' },
    profile: { type: 'string', default: 'calm' },
    log: { type: 'string', default: 'silent' },
    timeline: { type: 'boolean', default: false },
    seeds: { type: 'string', default: '1' },
  },
});

const profile = PROFILES.find(({ name }) => name === values.profile);
if (profile === undefined) throw new Error(`no profile ${values.profile}: ${PROFILES.map(({ name }) => name).join(', ')}`);

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const counts = (of: ReadonlyMap<string, number>): string => [...of].map(([name, count]) => `${name} ${count}`).join(', ');

function report(seed: number, result: Result, seconds: number): void {
  print(
    `seed ${seed}, profile ${profile!.name}: ${result.operations} operations in ${(result.virtualMs / 1000).toFixed(1)} s of virtual time and ${seconds.toFixed(1)} s of one core: ${Math.round(result.operations / seconds)} operations/s; ${result.events} events, trace ${result.trace.toString(16)}`,
  );
  print(`  answered ${result.answered}, cut off ${result.lost}, errors: ${counts(result.errors) || 'none'}`);
  print(`  faults: ${counts(result.struck) || 'none'}; stages: ${counts(result.stages)}; looks while clean: ${result.cleanChecks}`);
  if (result.lacking.length > 0) print(`  the models lack: ${result.lacking.join(', ')}`);
  if (result.finding !== null) print(`FINDING ${result.finding}`);
  if (result.finding !== null || values.timeline) for (const line of result.timeline) print(line);
  if (result.finding !== null) print(`again: npm run simulate -- --seed ${seed} --profile ${profile!.name} --operations ${values.operations}`);
}

process.on('unhandledRejection', (problem) => {
  if (result.finding !== null) print(`FINDING a promise is rejected and nothing handles it: ${(problem as Error).stack}`);
  process.exit(1);
});
const began = performance.now();
const minutes = values.minutes === undefined ? null : Number(values.minutes);
for (let seed = Number(values.seed), left = Number(values.seeds); minutes === null ? left > 0 : performance.now() - began < minutes * 60_000; seed++, left--) {
  const start = process.cpuUsage();
  const result = await simulate({ seed, profile, operations: Number(values.operations), logLevel: values.log });
  report(seed, result, process.cpuUsage(start).user / 1e6);
  if (result.finding !== null) {
    process.exitCode = 1;
    break;
  }
}
