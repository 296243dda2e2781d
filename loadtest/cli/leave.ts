/**
 * Writes the results of a load test: `results.json`, `report.html`, `report.md`, and the answer on standard output.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { RESULTS_FILE, type Results } from '../figures/results.js';
import { summarise } from '../figures/summary.js';
import { asJson } from '../report/json.js';
import { asMarkdown } from '../report/markdown.js';
import { asPage } from '../report/page.js';
import { asText } from '../report/text.js';

export function leave(results: Results, { out, json }: { readonly out?: string; readonly json: boolean }): void {
  const folder = out ?? path.join('dist', 'load', `${results.profile.name}-${results.startedAt.replace(/[:.]/g, '-')}`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, RESULTS_FILE), `${JSON.stringify(results)}\n`);
  writeReport(results, folder);
  const summary = summarise(results);
  process.stdout.write(`${json ? JSON.stringify(asJson(results, summary), null, 2) : asText(results, summary)}\n`);
  process.stderr.write(`written to ${path.resolve(folder)}: ${RESULTS_FILE}, report.html, report.md\n`);
}

/** Writes `report.html` and `report.md`. */
export function writeReport(results: Results, folder: string): void {
  const summary = summarise(results);
  writeFileSync(path.join(folder, 'report.html'), asPage(results, summary));
  writeFileSync(path.join(folder, 'report.md'), asMarkdown(results, summary));
}
