/**
 * `npm run matrix`: the proxy with each version of a source, and of a target that KeyDB is left for. Results are kept
 * in docs/compatibility.json, and shown in docs/compatibility.md. With `--new`: what is unknown of each program.
 */
import { Command } from 'commander';
import { nameOf, readKnown, writeKnown } from './new/known.js';
import { survey } from './new/survey.js';
import { readCells, withCell, writeCells } from './results.js';
import { runStep } from './run.js';
import { missingIn, programsIn, serversIn, titleOf } from './servers.js';
import { STEPS } from './steps.js';

interface Options {
  readonly servers?: string;
  readonly new?: string;
  readonly learn: boolean;
  readonly only?: readonly string[];
  readonly steps?: readonly string[];
  readonly list: boolean;
}

const words = (text: string): string[] => text.split(',').filter(Boolean);

const options = new Command('matrix')
  .description('Run the proxy with each version of Redis and Valkey that a folder has')
  .option('--servers <folder>', 'one program for each version: redis-7.2.6, valkey-8.1.1', process.env.REDIS_SERVERS)
  .option('--only <list>', 'versions, such as redis-7.2.6,valkey-8.1.1', words)
  .option('--steps <list>', `of ${STEPS.map(({ name }) => name).join(', ')}`, words)
  .option('--new <folder>', 'only say what is unknown of each program, such as redis-8.12.0 or keydb-6.3.4')
  .option('--learn', 'with --new: from now on what these programs say is known', false)
  .option('--list', 'only say which versions there are, and which are missing', false)
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
  .parse(process.argv)
  .opts<Options>();

const say = (line: string): void => void process.stderr.write(`${line}\n`);

/** Prints what is to be done about each program. Returns for how many there is something. */
async function showUnknown(folder: string, only: readonly string[] | undefined, learn: boolean): Promise<number> {
  let withWork = 0;
  for (const program of programsIn(folder).filter((each) => only?.includes(nameOf(each)) ?? true)) {
    const known = readKnown();
    const { software, facts, work } = await survey(program.path, program.name === 'keydb', known);
    if (work.length > 0) withWork++;
    const title = titleOf(software);
    process.stdout.write(work.length === 0 ? `${title}: nothing to do\n` : `${title}: ${work.length} to do\n`);
    for (const line of work) process.stdout.write(`- ${line}\n`);
    if (learn) writeKnown({ ...known, [nameOf(software)]: facts });
  }
  return withWork;
}

async function runSteps(folder: string): Promise<number> {
  const all = serversIn(folder);
  const missing = missingIn(all);
  say(`versions: ${all.map(titleOf).join(', ') || 'none'}`);
  if (missing.length > 0) say(`missing: ${missing.map(titleOf).join(', ')}`);
  if (options.list) return 0;
  const servers = all.filter((each) => options.only?.includes(nameOf(each)) ?? true);
  const steps = STEPS.filter(({ name }) => options.steps?.includes(name) ?? true);
  let failed = 0;
  for (const server of servers) {
    for (const step of steps) {
      const outcome = await runStep(step, server, (line) => say(`  ${line}`));
      failed += outcome.failed;
      await writeCells(withCell(readCells(), server, step, outcome));
      const { passed, failed: lost, skipped, operations, seconds } = outcome;
      say(
        `${titleOf(server)}, ${step.name}: ${passed} passed, ${lost} failed, ${skipped} skipped, ${operations} operations, ${seconds} s`,
      );
    }
  }
  return failed;
}

if (options.new !== undefined)
  process.exitCode = (await showUnknown(options.new, options.only, options.learn)) > 0 ? 1 : 0;
else if (options.servers !== undefined) process.exitCode = (await runSteps(options.servers)) > 0 ? 1 : 0;
else {
  say('say where the programs are: --servers <folder>, or REDIS_SERVERS');
  process.exitCode = 2;
}
