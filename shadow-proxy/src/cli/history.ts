/** `shadow-compare history`: what was changed, when, by whom, why, and on what evidence. */
import type { Command } from 'commander';
import type { HistoryEvent } from '../record/state.js';
import type { StagePoint } from '../plan/plan.js';
import { formatPoint } from '../record/state.js';
import { AdminClient, addAdminOptions, type AdminClientOptions } from './admin-client.js';

export function addHistory(program: Command): void {
  addAdminOptions(program.command('history').description('Show the changes of a running proxy, oldest first'))
    .option('--json', 'print JSON, with the evidence of each change')
    .action(async (options: AdminClientOptions & { readonly json?: boolean }) => {
      const shards = await new AdminClient(options).history();
      const lines = shards.flatMap(({ shard, events }) => events.map((event) => ({ time: String(event.time), line: `${String(event.time)}  ${shard}: ${describe(event)}` })));
      lines.sort((a, b) => (a.time < b.time ? -1 : 1));
      process.stdout.write(`${options.json ? JSON.stringify(shards, null, 2) : lines.map(({ line }) => line).join('\n')}\n`);
    });
}

function describe(event: HistoryEvent): string {
  if (event.event !== 'stage') {
    const { time: _, event: name, ...details } = event;
    return `${name} ${JSON.stringify(details)}`;
  }
  const { workload, from, to, by, reason, forced, drill, rollback, unanswered } = event as HistoryEvent & Record<string, unknown>;
  const kind = drill ? ', a drill' : rollback ? ', rolled back' : forced ? ', FORCED past closed gates' : '';
  const lost = unanswered === undefined ? '' : ` (${String(unanswered)} writes were in flight, and nobody was told whether they ran)`;
  return `${String(workload)} ${formatPoint(from as StagePoint)} → ${formatPoint(to as StagePoint)}${kind}${by === undefined ? '' : `, by ${String(by)}`}${reason === undefined ? '' : `: ${String(reason)}`}${lost}`;
}
