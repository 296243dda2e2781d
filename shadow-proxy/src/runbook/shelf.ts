/** The runbooks that come with the kit, and those of one's own. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseRunbook, RunbookError, type Runbook } from './document.js';

/** The folder that commands run in: with package.json, docs/, terraform/ and ansible/ in it. */
export const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));
export const SHELF = join(ROOT, 'runbooks');

/** The names of the kit's runbooks that have steps or not, in the order of the alphabet; README is none. */
export const runbookNames = (): string[] =>
  readdirSync(SHELF)
    .filter((file) => file.endsWith('.md') && file !== 'README.md')
    .map((file) => file.slice(0, -'.md'.length))
    .sort();

/**
 * @param wanted the beginning of one name, such as `week-1`, or a file of one's own that ends in `.md`. @throws
 * {RunbookError}
 */
export function openRunbook(wanted: string): Runbook {
  if (wanted.endsWith('.md')) return parseRunbook(basename(wanted, '.md'), read(wanted));
  const names = runbookNames();
  const found = names.includes(wanted) ? [wanted] : names.filter((name) => name.startsWith(wanted));
  if (found.length === 1) return parseRunbook(found[0], read(join(SHELF, `${found[0]}.md`)));
  const allowed = found.length === 0 ? names : found;
  throw new RunbookError(
    `${wanted} ${found.length === 0 ? 'is not a runbook' : 'is ambiguous'}. Allowed: ${allowed.join(', ')}, or a file that ends in .md`,
  );
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new RunbookError(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}
