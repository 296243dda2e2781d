/**
 * `npm run crashes`: the property of crashes (run.ts), as often as is asked for. Exit codes: 0 it holds, 1 keys
 * differed that were not suspect, 2 wrong usage, 3 a run was inconclusive.
 */
import { Command, InvalidArgumentError } from 'commander';
import { withServers } from '../../../support/servers.js';
import { crash, type Crash } from './run.js';

const whole =
  (least: number) =>
  (text: string): number => {
    const value = Number(text);
    if (Number.isInteger(value) && value >= least) return value;
    throw new InvalidArgumentError(`a whole number, ${least} or more`);
  };

const program = new Command('crashes')
  .description(
    'Kills the proxy at random moments, damages a file of its state, and looks for keys that differ though none is suspect.',
  )
  .option('--runs <number>', 'how many', whole(1), 200)
  .option('--seed <number>', 'of the first run; each next one has the next number', whole(0), Date.now() % 1_000_000)
  .option('--proxy <file>', 'the compiled main.js of another build')
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2));

const { runs, seed, proxy } = program.parse().opts<{ runs: number; seed: number; proxy?: string }>();

const crashes: Crash[] = [];
let unclear = 0;
await withServers(async (servers) => {
  for (let i = 0; i < runs; i++) {
    try {
      const each = await crash(servers, seed + i, proxy);
      crashes.push(each);
      const { stage, copying, damage, differed, outcome, silent } = each;
      process.stdout.write(
        `${seed + i} ${stage}${copying ? ', copying' : ''}: ${damage ?? 'no damage'}; ${differed} keys differed; ${outcome}${silent.length > 0 ? `; ${silent.length} DIFFER IN SILENCE: ${silent.slice(0, 3).join('; ')}` : ''}\n`,
      );
    } catch (error) {
      unclear++;
      process.stdout.write(`${seed + i} could not tell: ${(error as Error).message}\n`);
    }
  }
});
const count = (which: (each: Crash) => boolean): number => crashes.filter(which).length;
const outcomes = ['refused', 'all suspect', 'keys suspect', 'clean'].map(
  (outcome) => `${count((each) => each.outcome === outcome)} ${outcome}`,
);
const silent = count((each) => each.silent.length > 0);
process.stdout.write(
  `${crashes.length} runs from seed ${seed}: ${count(({ differed }) => differed > 0)} in which keys differed after the kill (${crashes.reduce((sum, { differed }) => sum + differed, 0)} keys), ` +
    `${count(({ damage }) => damage !== null)} with a damaged file; ${outcomes.join(', ')}; ${silent} with differences in silence; ${unclear} could not tell\n`,
);
process.exitCode = silent > 0 ? 1 : unclear > 0 ? 3 : 0;
