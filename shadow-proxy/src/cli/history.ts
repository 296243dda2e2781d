/** `shadow-compare history`: lists changes with their time, person, reason and evidence. */
import type { Command } from 'commander';
import { describeEvent } from '../storage/history.js';
import { addAdminOptions, type AdminClientOptions } from './admin-client.js';
import { Fleet, reportSilent } from './fleet.js';
import { NO_PROXY, withManual } from './manual.js';
import { stdout } from './output.js';

export function addHistory(program: Command): void {
  const command = program.command('history').description('List the changes made through a running proxy, oldest first');
  withManual(command, 'shadow-compare history', { 0: 'listed', 3: `${NO_PROXY}, or not each: the others are listed` });
  addAdminOptions(command)
    .option('--json', 'print JSON, with the evidence of each change')
    .action(async (options: AdminClientOptions & { readonly json?: boolean }) => {
      const fleet = await Fleet.open(options);
      const shards = await fleet.history();
      const lines = shards.flatMap(({ shard, events }) =>
        events.map((event) => ({
          time: String(event.time),
          line: `${String(event.time)}  ${shard}: ${describeEvent(event)}`,
        })),
      );
      lines.sort((a, b) => (a.time < b.time ? -1 : 1));
      stdout.write(`${options.json ? JSON.stringify(shards, null, 2) : lines.map(({ line }) => line).join('\n')}\n`);
      process.exitCode = reportSilent(fleet);
    });
}
