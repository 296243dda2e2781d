/** The runbooks that come with the kit, and the user's own. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { didYouMean } from '../text/near.js';
import { parseRunbook, RunbookError, type Runbook } from './document.js';

/** The folder in which commands run: it contains package.json, docs/, terraform/ and ansible/. */
export const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));
export const SHELF = join(ROOT, 'runbooks');

/** The names of the kit's runbooks, with or without steps, in alphabetical order; without README. */
export const runbookNames = (): string[] =>
  readdirSync(SHELF)
    .filter((file) => file.endsWith('.md') && file !== 'README.md')
    .map((file) => file.slice(0, -'.md'.length))
    .sort();

/** The week after this page; null after the last week, and for a page that is no week. */
export function weekAfter(name: string): string | null {
  const [, number] = /^week-(\d+)/.exec(name) ?? [];
  const next =
    number === undefined ? undefined : runbookNames().find((each) => each.startsWith(`week-${Number(number) + 1}-`));
  return next ?? null;
}

/** Pages in the order in which they are needed: weeks, pages for any day, pages for alerts. */
export function shelved(): { readonly weeks: string[]; readonly others: string[]; readonly alerts: string[] } {
  const names = runbookNames();
  const isWeek = (name: string): boolean => name.startsWith('week-');
  const isAlert = (name: string): boolean => /^[A-Z]/.test(name);
  return {
    weeks: names.filter(isWeek),
    others: names.filter((name) => !isWeek(name) && !isAlert(name)),
    alerts: names.filter(isAlert),
  };
}

/**
 * @param wanted the beginning of one name, such as `week-1`, or the user's own file, which ends in `.md`. @throws
 * {RunbookError}
 */
export function openRunbook(wanted: string): Runbook {
  if (wanted.endsWith('.md')) return parseRunbook(basename(wanted, '.md'), read(wanted));
  const names = runbookNames();
  const found = names.includes(wanted) ? [wanted] : names.filter((name) => name.startsWith(wanted));
  if (found.length === 1) return parseRunbook(found[0], read(join(SHELF, `${found[0]}.md`)));
  throw new RunbookError(
    found.length === 0
      ? `${wanted} is not a runbook${didYouMean(wanted, names)}. The command \`runbook\` alone lists them; a file of your own ends in .md`
      : `${wanted} is ambiguous. Allowed: ${found.join(', ')}`,
  );
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new RunbookError(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}
