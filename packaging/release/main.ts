/**
 * `npm run release:version` makes the next version. `npm run release:check` says whether this commit can be released;
 * TAG and BASE_IMAGE are environment variables.
 *
 * Exit code 0: done, or it can; 1: not so.
 */
import { Command } from 'commander';
import { ROOT } from '../npm/pack.js';
import { problemsOf, readRelease } from './check.js';
import { makeVersion } from './version.js';

const program = new Command('release').description('Makes the next version, and checks it before it is published.');

program.command('version').action(async () => {
  process.stdout.write(`${await makeVersion(ROOT, new Date())}\n`);
});

program.command('check').action(() => {
  const problems = problemsOf(readRelease(ROOT, process.env));
  for (const problem of problems) process.stderr.write(`✖ ${problem}\n`);
  process.exitCode = problems.length > 0 ? 1 : 0;
});

await program.parseAsync();
