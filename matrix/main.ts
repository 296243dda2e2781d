/**
 * `npm run matrix`: the proxy with each version of a source, and of a target that KeyDB is left for. Results are kept
 * in docs/compatibility.json, and shown in docs/compatibility.md.
 */
import { Command } from 'commander';
import { readCells, withCell, writeCells } from './results.js';
import { runStep } from './run.js';
import { missingIn, serversIn, titleOf } from './servers.js';
import { STEPS } from './steps.js';

interface Options {
  readonly servers: string;
  readonly only?: readonly string[];
  readonly steps?: readonly string[];
  readonly list: boolean;
}

const words = (text: string): string[] => text.split(',').filter(Boolean);

const options = new Command('matrix')
  .description('Run the proxy with each version of Redis and Valkey that a folder has')
  .requiredOption(
    '--servers <folder>',
    'one program for each version: redis-7.2.6, valkey-8.1.1',
    process.env.REDIS_SERVERS,
  )
  .option('--only <list>', 'versions, such as redis-7.2.6,valkey-8.1.1', words)
  .option('--steps <list>', `of ${STEPS.map(({ name }) => name).join(', ')}`, words)
  .option('--list', 'only say which versions there are, and which are missing', false)
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
  .parse(process.argv)
  .opts<Options>();

const say = (line: string): void => void process.stderr.write(`${line}\n`);
const all = serversIn(options.servers);
const missing = missingIn(all);
say(`versions: ${all.map(titleOf).join(', ') || 'none'}`);
if (missing.length > 0) say(`missing: ${missing.map(titleOf).join(', ')}`);

const servers = all.filter(({ name, version }) => options.only?.includes(`${name}-${version}`) ?? true);
const steps = STEPS.filter(({ name }) => options.steps?.includes(name) ?? true);
let failed = 0;
if (!options.list) {
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
}
process.exitCode = failed > 0 ? 1 : 0;
