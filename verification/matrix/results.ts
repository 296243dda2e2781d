/** What runs of the matrix have shown, by version and step: docs/compatibility.json, and the page made of it. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { format } from 'prettier';
import { renderPage, type Cells, type Outcome } from './page.js';
import type { ServerProgram } from './servers.js';
import type { Step } from './steps.js';

const DOCS = new URL('../../../docs/', import.meta.url);
const RESULTS = fileURLToPath(new URL('compatibility.json', DOCS));
export const PAGE = fileURLToPath(new URL('compatibility.md', DOCS));

export const readCells = (): Cells => (existsSync(RESULTS) ? (JSON.parse(readFileSync(RESULTS, 'utf8')) as Cells) : {});

/** The same with one cell more, or another one in its place. */
export function withCell(cells: Cells, { name, version }: ServerProgram, step: Step, outcome: Outcome): Cells {
  const key = `${name}-${version}`;
  return { ...cells, [key]: { ...cells[key], [step.name]: outcome } };
}

/** The page, as it stands in the file. */
export const formatted = (cells: Cells): Promise<string> =>
  format(renderPage(cells), { parser: 'markdown', printWidth: 120, singleQuote: true, proseWrap: 'always' });

/** Writes the results, and the page. */
export async function writeCells(cells: Cells): Promise<void> {
  writeFileSync(RESULTS, `${JSON.stringify(cells, null, 2)}\n`);
  writeFileSync(PAGE, await formatted(cells));
}
