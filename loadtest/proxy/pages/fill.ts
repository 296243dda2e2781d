/** Writes the figures of docs/figures.json into the pages that quote them, and draws the picture. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { plotOf } from './plot.js';
import { written, type Runs } from './runs.js';
import { tableOf } from './tables.js';

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));
const PICTURE = 'docs/images/cpu-by-thread.svg';

/**
 * A number is before its marker, `59,441 <!-- figure: bench.shadow@1.ops/s -->`; a table is after its own, `<!--
 * figures: bench measures -->`. A number whose key is in no run is kept.
 */
export const filled = (text: string, runs: Runs): string =>
  text
    .replaceAll(/[\d,.]*\d(\s+<!-- figure: ([^>]+) -->)/g, (whole, marker: string, key: string) => {
      const [run, row, ...column] = key.split('.');
      const value = runs[run!]?.figures[row!]?.[column.join('.')];
      return value === undefined ? whole : written(value) + marker;
    })
    .replaceAll(/(<!-- figures: ([^>]+) -->\n\n)(?:\|.*\n)*/g, (_, marker: string, name: string) => {
      return `${marker}${tableOf(runs, name)}\n`;
    });

/** The contents that every page with figures, and the picture, should have, by path from the repository's root. */
export async function docsFrom(runs: Runs): Promise<Map<string, string>> {
  // prettier is missing if the kit runs without its development tools, as on a load host.
  const { format, resolveConfig } = await import('prettier');
  const pages = ['README.md', ...readdirSync(path.join(ROOT, 'docs')).map((name) => `docs/${name}`)].filter((page) =>
    page.endsWith('.md'),
  );
  const docs = new Map([[PICTURE, plotOf(runs.bench!)]]);
  for (const page of pages) {
    const file = path.join(ROOT, page);
    const text = readFileSync(file, 'utf8');
    if (!/<!-- figures?:/.test(text)) continue;
    docs.set(page, await format(filled(text, runs), { ...(await resolveConfig(file)), filepath: file }));
  }
  return docs;
}

export const readRuns = (): Runs => JSON.parse(readFileSync(path.join(ROOT, 'docs/figures.json'), 'utf8')) as Runs;

/** @returns the files that were changed, by path from the repository's root */
export async function fillDocs(): Promise<string[]> {
  const changed = [...(await docsFrom(readRuns()))].filter(([name, text]) => textOf(name) !== text);
  for (const [name, text] of changed) writeFileSync(path.join(ROOT, name), text);
  return changed.map(([name]) => name);
}

function textOf(name: string): string | null {
  try {
    return readFileSync(path.join(ROOT, name), 'utf8');
  } catch {
    return null;
  }
}
