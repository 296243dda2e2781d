/** `shadow-compare cancel`: ends the wait of a `promote --at` or `promote --window`, whatever machine it runs on. */
import { userInfo } from 'node:os';
import type { Command } from 'commander';
import { addAdminOptions, type AdminClientOptions } from './admin-client.js';
import { CliError, exitCode } from './exit.js';
import { Fleet } from './fleet.js';
import { NO_PROXY, withManual } from './manual.js';
import { print } from './output.js';
import { waitsOf } from './schedule.js';

interface CancelOptions extends AdminClientOptions {
  readonly reason?: string;
}

export function addCancel(program: Command): void {
  const command = program
    .command('cancel')
    .description('End the wait of promote --at or --window for a workload, on whichever machine it waits')
    .argument('<workload>', 'name of the workload')
    .option('--reason <text>', 'reason, kept in the history');
  withManual(command, 'shadow-compare cancel sessions --plan migration.yaml', {
    0: 'the wait ends within 5 s, and nothing is changed',
    1: 'no promotion of the workload waits',
    3: NO_PROXY,
  });
  addAdminOptions(command).action(async (workload: string, options: CancelOptions) => {
    const fleet = await Fleet.open(options);
    const waits = await waitsOf(fleet, workload);
    if (waits.length === 0)
      throw new CliError('nothing-waits', `no promotion of ${workload} waits: nothing was changed`, exitCode.fails);
    await fleet.noteWait({
      workload,
      state: 'cancelled',
      what: options.reason ?? 'cancelled',
      by: userInfo().username,
    });
    print(waits.map((each) => `Cancelled: ${each}. It ends within 5 s, and nothing is changed`).join('\n'));
  });
}
