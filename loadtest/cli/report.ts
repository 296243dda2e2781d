/** `npm run loadtest -- report DIR`: writes the pages again, from `results.json`. */
import type { Command } from 'commander';
import path from 'node:path';
import { readResults } from '../figures/results.js';
import { summarise } from '../figures/summary.js';
import { asJson } from '../report/json.js';
import { asText } from '../report/text.js';
import { writeReport } from './leave.js';

export function addReport(program: Command): void {
  program
    .command('report')
    .description('Write report.html and report.md of a load test, and print its answer')
    .argument('<folder>', 'what a run, or merge, left')
    .option('--json', 'print the summary as JSON', false)
    .action((folder: string, { json }: { json: boolean }) => {
      const results = readResults(folder);
      writeReport(results, folder.endsWith('.json') ? path.dirname(folder) : folder);
      const summary = summarise(results);
      process.stdout.write(`${json ? JSON.stringify(asJson(results, summary), null, 2) : asText(results, summary)}\n`);
    });
}
