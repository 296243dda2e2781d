/** `shadow-compare status`: what a running proxy says of its shards. */
import Table from 'cli-table3';
import type { Command } from 'commander';
import { NOT_COPIED } from '../copy/job.js';
import type { ShardSnapshot } from '../record/snapshot.js';
import { AdminClient, addAdminOptions, type AdminClientOptions } from './admin-client.js';
import { renderJob } from './job-progress.js';
import { number } from './verdict.js';
import { renderTable } from './view.js';

export function addStatus(program: Command): void {
  addAdminOptions(program.command('status').description('Show the shards and workloads of a running proxy'))
    .option('--json', 'print JSON')
    .action(async (options: AdminClientOptions & { readonly json?: boolean }) => {
      const shards = await new AdminClient(options).status();
      process.stdout.write(`${options.json ? JSON.stringify(shards, null, 2) : shards.map(renderShard).join('\n\n')}\n`);
    });
}

export function renderShard(shard: ShardSnapshot): string {
  const table = new Table({
    head: ['workload', 'class', 'stage', 'operations', 'compared', 'explained', 'mismatches', 'inconclusive', 'suspects', 'clean'],
    style: { head: [], border: [] },
  });
  for (const w of shard.workloads) {
    const stage = w.stage === 'live' && w.percent < 100 ? `live ${w.percent} %` : w.stage;
    const counts = [w.operations, w.compared, w.explained, w.mismatches, w.inconclusive, w.suspects].map(number);
    table.push([w.name, w.class, stage, ...counts, w.clean ? 'yes' : 'no']);
  }
  const [figures] = renderTable({ now: shard, before: null, leftMs: null }).split(/\n(?=[^\n]*$)/);
  const doubts = shard.workloads.filter(({ suspect }) => suspect !== null).map(({ name, suspect }) => `\n${name}: every key is in doubt: ${suspect}${suspect === NOT_COPIED ? `; next: shadow-compare backfill --workload ${name}` : ''}`);
  const job = shard.job === null ? '' : `\n${renderJob({ shard: shard.name, job: shard.job })}`;
  return `shard ${shard.name}\n${figures}\n${table.toString()}${doubts.join('')}${job}`;
}
