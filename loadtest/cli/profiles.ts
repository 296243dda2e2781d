/** `npm run loadtest -- profiles`: lists the profiles. */
import type { Command } from 'commander';
import { loadProfile, profileNames } from '../workload/load.js';

export function addProfiles(program: Command): void {
  program
    .command('profiles')
    .description('List the profiles of the kit')
    .action(() => {
      for (const name of profileNames()) process.stdout.write(`${name.padEnd(14)}${loadProfile(name).description}\n`);
    });
}
