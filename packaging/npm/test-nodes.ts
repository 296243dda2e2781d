/**
 * `npm run test:nodes`: the tests that Node's version can break, on each version of Node that can be had. What CI does
 * in the job `node`, on one machine.
 *
 * Exit code 0: all pass, and no version is missing; 1: a test fails; 3: a version could not be had.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { run } from '../../verification/rehearsal/run.js';
import { afterDeath } from '../../shadow-proxy/src/local/guard.js';
import { findNodes, type Node } from './nodes.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** As the job `node` of .github/workflows/test.yml has them. */
const PARTS = ['unit/', 'integration/protocol/'];
/** How `node --test` counts. */
const COUNTS = /^ℹ (?:tests|pass|fail|skipped) \d+$/gm;

const say = (text: string): void => void process.stdout.write(`${text}\n`);

/** @returns whether all tests pass */
async function test({ version, path }: Node, parts: readonly string[]): Promise<boolean> {
  const env = { PATH: `${dirname(path)}${delimiter}${process.env.PATH}` };
  const command = [path, join(ROOT, 'shadow-proxy/bin/run.mjs'), 'test', ...parts];
  const { stdout, code } = await run(command, { cwd: ROOT, env, accept: [0, 1] });
  const counts = (stdout.match(COUNTS) ?? []).map((line) => line.slice(2)).join(', ');
  if (code !== 0) say(stdout.slice(Math.max(0, stdout.indexOf('✖ failing tests'))));
  // Without a count nothing ran.
  const passes = code === 0 && counts !== '';
  say(`${passes ? '✔' : '✖'} Node ${version}: ${counts || 'no test ran'}`);
  return passes;
}

async function main(parts: readonly string[]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'test-nodes-'));
  const callOff = afterDeath('rm -rf -- "$1"', folder);
  try {
    const { nodes, missing } = await findNodes(folder);
    let passes = true;
    for (const node of nodes) passes = (await test(node, parts.length > 0 ? parts : PARTS)) && passes;
    for (const line of missing) say(`✖ not tested with ${line}`);
    process.exitCode = !passes ? 1 : missing.length > 0 ? 3 : 0;
  } finally {
    rmSync(folder, { recursive: true, force: true });
    callOff();
  }
}

await new Command('test:nodes')
  .description('Runs tests on each version of Node that is supported')
  .argument('[parts...]', `parts of the paths of tests; by default ${PARTS.join(' and ')}`)
  .action(main)
  .parseAsync();
