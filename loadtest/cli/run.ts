/** `npm run loadtest -- --profile P`: measures, checks the counters, and writes a report. */
import type { Command } from 'commander';
import { exitCodeOf } from '../figures/summary.js';
import { Rig } from '../rig/rig.js';
import { runRounds } from '../rounds/run.js';
import { isGiven } from '../sides/given.js';
import { loadProfile } from '../workload/load.js';
import { addRunOptions, checkRun, type RunCliOptions } from './options.js';
import { checkRate, driverOf, hostLine, newPrefix, onLoopback, pointsOf, sidesOf } from './setup.js';
import { leave } from './leave.js';

export function addRun(program: Command): void {
  addRunOptions(program.command('run', { isDefault: true }))
    .description('Measure sides in turns: is KeyDB faster for this workload here, by how much, how sure? (the default)')
    .action(async (options: RunCliOptions) => {
      process.exitCode = await run(options);
    });
}

/** @returns the exit code, see `exitCodeOf` */
async function run(options: RunCliOptions): Promise<number> {
  checkRun(options);
  const profile = loadProfile(options.profile);
  const driver = driverOf(options.driver, profile);
  const points = pointsOf(options, profile);
  checkRate(options.rate ?? null, points);
  const rig = new Rig();
  try {
    const sides = await sidesOf(rig, options, profile, options.serverThreads);
    const prefix = options.prefix ?? newPrefix();
    const { rounds, seconds, warmUp, rate = null, startAt = null } = options;
    say(`${profile.name}: ${sides.map(({ id, title, where }) => `${id} = ${title} at ${where}`).join('; ')}`);
    say(
      `keys ${prefix}…, removed at the end${isGiven({ ...options, roles: options.against }) ? `; after a kill -9 by: clean --profile ${options.profile} --prefix ${prefix}, with the same servers` : ''}`,
    );
    const given = { profile, sides, points, rate, prefix, driver, startAt, rounds, seconds, warmUp };
    const results = await runRounds(rig, { ...given, loopback: onLoopback(sides), host: hostLine() }, say);
    leave(results, options);
    return exitCodeOf(results);
  } finally {
    await rig.close();
  }
}

const say = (line: string): void => void process.stderr.write(`${line}\n`);
