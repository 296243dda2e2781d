/**
 * `npm run loadtest -- merge DIR DIR… --out DIR`: joins the results of several load hosts, measured at the same time,
 * in one report.
 */
import type { Command } from 'commander';
import { mergeResults } from '../figures/merge.js';
import { readResults } from '../figures/results.js';
import { exitCodeOf } from '../figures/summary.js';
import { leave } from './leave.js';

export function addMerge(program: Command): void {
  program
    .command('merge')
    .description('Make one report of what several load hosts measured with the same --start-at')
    .argument('<folders...>', 'what their runs left')
    .requiredOption('--out <folder>', 'where results.json, report.html and report.md go')
    .option('--json', 'print the summary as JSON', false)
    .action((folders: string[], options: { out: string; json: boolean }) => {
      const results = mergeResults(folders.map(readResults));
      leave(results, options);
      process.exitCode = exitCodeOf(results);
    });
}
