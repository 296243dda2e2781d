/**
 * What the checks find in the whole repository, and the list of files that are not clean yet, which may only shrink.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { namesRefusedBy, readGlossary, refusedBy } from './glossary.js';
import { type Finding } from './finding.js';
import { lintFileName, lintIdentifiers } from './identifiers.js';
import { lintMarkdown } from './markdown.js';
import { lintComments, lintMessages, lintTitles } from './messages.js';
import { lintNpx, programsOf } from './npx.js';

/** For each check the files that are not clean yet. */
export type Todo = Readonly<Record<Listed, readonly string[]>>;
/** Checks that old files need not pass yet. */
type Listed = Exclude<Finding['check'], 'npx'>;

export const GLOSSARY = 'docs/glossary.yaml';
export const TODO = 'docs/words-todo.json';

/** These name old words on purpose. */
const EXEMPT = new Set(['CHANGELOG.md', 'docs/glossary.md']);
/** Files that are no text, and what names commands that must be found. */
const NO_TEXT = /\.(png|rdb|gz|tgz|aof)$|^package-lock\.json$|^tools\/words\/(npx\.ts|test\/)/;
/** Comments of all code. */
const COMMENTS = /^(shadow-proxy\/(src|test)|counters|loadtest|dashboards|tools|verification)\/.*\.tsx?$/;
const TITLES = /\.test\.tsx?$/;
/** Names in all code. */
const NAMES = /\.(?:[cm]?[jt]s|tsx|c|h)$/;
const MESSAGES = /^shadow-proxy\/src\/.*\.tsx?$|^dashboards\/src\/.*\.ts$|^dashboards\/prometheus\/rules\/|\.tf$/;

/** Checks every page, every message and every name of the repository. */
export async function findAll(root: string): Promise<Finding[]> {
  const glossary = readGlossary(join(root, GLOSSARY));
  const [refused, refusedNames] = [refusedBy(glossary), namesRefusedBy(glossary)];
  const programs = programsOf(root);
  const findings: Finding[] = [];
  for (const file of filesOf(root)) {
    const text = (): string => readFileSync(join(root, file), 'utf8');
    if (!NO_TEXT.test(file)) findings.push(...lintNpx(file, text(), programs));
    if (EXEMPT.has(file)) continue;
    if (file.endsWith('.md')) findings.push(...(await lintMarkdown(file, text(), refused)));
    if (file.endsWith('.generated.ts')) continue;
    findings.push(...lintFileName(file, refusedNames));
    if (NAMES.test(file)) findings.push(...lintIdentifiers(file, text(), refusedNames));
    if (MESSAGES.test(file)) findings.push(...lintMessages(file, text(), refused));
    if (COMMENTS.test(file)) findings.push(...lintComments(file, text(), refused));
    if (TITLES.test(file)) findings.push(...lintTitles(file, text(), refused));
  }
  return findings;
}

export const readTodo = (root: string): Todo =>
  z
    .strictObject({ terms: z.array(z.string()), sentences: z.array(z.string()) })
    .parse(JSON.parse(readFileSync(join(root, TODO), 'utf8')));

/** The errors, a line each: findings in files that are not listed, and files that are listed and clean. */
export function errorsOf(findings: readonly Finding[], todo: Todo): string[] {
  return [
    ...findings
      .filter(({ check, file }) => check === 'npx' || !todo[check].includes(file))
      .map(({ file, line, message }) => `${file}:${line}: ${message}`),
    ...(['terms', 'sentences'] as const).flatMap((check) =>
      todo[check]
        .filter((listed) => !findings.some(({ check: found, file }) => found === check && file === listed))
        .map((file) => `${TODO}: ${file} is clean: remove it from "${check}" (npm run lint:words -- --shrink does)`),
    ),
  ];
}

/** The list without the files that are clean: it never becomes longer. */
export const shrunk = (findings: readonly Finding[], todo: Todo): Todo => {
  const still = (check: Listed): string[] =>
    todo[check].filter((listed) => findings.some(({ check: found, file }) => found === check && file === listed));
  return { terms: still('terms'), sentences: still('sentences') };
};

/** What git has or would have; what is deleted and not committed yet is left out. */
function filesOf(root: string): string[] {
  const list = (...options: string[]): string[] =>
    execFileSync('git', ['ls-files', '-z', ...options], { cwd: root, encoding: 'utf8' })
      .split('\0')
      .filter(Boolean);
  const deleted = new Set(list('--deleted'));
  return list('--cached', '--others', '--exclude-standard')
    .filter((file) => !deleted.has(file))
    .sort();
}
