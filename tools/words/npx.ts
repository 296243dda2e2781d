/**
 * The commands of npx in all text of the repository. Without `--no-install`, npx installs and runs whatever package of
 * the registry has the name: people paste these commands with rights on production.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Finding } from './finding.js';

interface Manifest {
  readonly name?: string;
  readonly bin?: string | Readonly<Record<string, string>>;
}

/** The programs that this package and the packages of its lock file have. */
export function programsOf(root: string): ReadonlySet<string> {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Readonly<Record<string, Manifest>>;
  };
  return new Set(
    Object.entries(lock.packages).flatMap(([path, { bin }]) =>
      typeof bin === 'string' ? [path.slice(path.lastIndexOf('/') + 1)] : Object.keys(bin ?? {}),
    ),
  );
}

/** What stands before a command, and never before the word `npx` in a sentence. */
const COMMAND = String.raw`(?<command>(?:^|\n)[ \t]*(?:\$ |#[ \t]+|- )?|[\x60'"(=]|&&[ ]*|\|[ ]*|(?:run|undo|cmd): +)?`;
const SHELL = new RegExp(
  String.raw`${COMMAND}\b(?:npx|npm exec|npm x|pnpm dlx|yarn dlx)(?<options>(?:\s+-[-\w=]+)*)\s+(?<name>[@\w][\w@/.-]*)`,
  'g',
);
const ARRAY = /(?<command>['"])npx\1(?<options>(?:,\s*['"]-[-\w=]+['"])*),\s*['"](?<name>[^'"-][^'"]*)['"]/g;

/** @param programs that may be named */
export function lintNpx(file: string, text: string, programs: ReadonlySet<string>): Finding[] {
  return [...text.matchAll(SHELL), ...text.matchAll(ARRAY)].flatMap((found) => {
    const { command, options, name } = found.groups as { command?: string; options: string; name: string };
    const known = programs.has(name);
    // `npx finds its package`, in a sentence.
    if (!known && (command === undefined || (/^\s*(?:# +)?$/.test(command) && options === ''))) return [];
    const message = !known
      ? `npx ${name}: no package of package-lock.json has this program`
      : /--no-install\b/.test(options)
        ? null
        : `npx ${name}: write npx --no-install ${name}, or npx may run another package of this name from the registry`;
    const line = text.slice(0, found.index).split('\n').length + (found[0].startsWith('\n') ? 1 : 0);
    return message === null ? [] : [{ check: 'npx' as const, file, line, message }];
  });
}
