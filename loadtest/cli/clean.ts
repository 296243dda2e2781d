/** `npm run loadtest -- clean`: removes keys that a killed run left, by the names that its profile uses. */
import type { Command } from 'commander';
import { LoadtestError } from '../rig/errors.js';
import { Rig } from '../rig/rig.js';
import { removeKeys } from '../rounds/keyspace.js';
import { isGiven } from '../sides/given.js';
import { loadProfile } from '../workload/load.js';
import { addPlaceOptions, type PlaceOptions } from './options.js';
import { driverOf, sidesOf } from './setup.js';

export function addClean(program: Command): void {
  const command = program
    .command('clean')
    .description('Remove the keys of a run that was killed')
    .requiredOption('--profile <name>', 'its profile');
  addPlaceOptions(command.requiredOption('--prefix <text>', 'its prefix, which it printed when it began')).action(
    clean,
  );
}

async function clean(options: PlaceOptions & { readonly profile: string; readonly prefix: string }): Promise<void> {
  const profile = loadProfile(options.profile);
  if (!isGiven({ ...options, roles: options.against }))
    throw new LoadtestError('USAGE', 'clean needs the servers: --source, --target, --proxy, or --plan');
  const rig = new Rig();
  try {
    for (const side of await sidesOf(rig, options, profile, [])) {
      await removeKeys(side.address, {
        profile,
        prefix: `${options.prefix}${side.id}:`,
        naming: driverOf('memtier', profile).naming,
      });
      process.stdout.write(`${side.id}: the keys ${options.prefix}${side.id}:… are gone\n`);
    }
  } finally {
    await rig.close();
  }
}
