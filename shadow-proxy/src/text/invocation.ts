/**
 * How the kit's programs are typed where this process was started. npx is never used without `--no-install`: outside a
 * folder that has the kit, npx installs and runs any package of that name from the registry.
 */
import { existsSync, realpathSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { quoted } from './shell.js';

export type ProgramName = 'shadow-compare' | 'shadow-proxy';

/** Determines how a program is typed. */
export interface Start {
  /** The installation that runs: the folder with its package.json. */
  readonly root: string;
  /** The current directory; null if it no longer exists. */
  readonly directory: string | null;
  /** The variable `PATH`. */
  readonly path: string;
}

/** The command for a checkout, and for a project that has the kit in node_modules. The repository's pages use it. */
export const CHECKOUT = 'npx --no-install';

/**
 * @returns the plain name if the PATH leads to this installation (Debian package, image, Ansible, global npm), else
 *   `npx --no-install …` if npx finds this installation in the current directory, else the path of the program's file
 */
export function invocationAt(name: ProgramName, { root, directory, path }: Start): string {
  const file = join(root, 'shadow-proxy', 'bin', `${name}.mjs`);
  const own = real(file);
  const isOwn = (candidate: string): boolean => own !== null && real(candidate) === own;
  // npm and npx add these folders to the PATH of the programs that they start; the operator's shell does not have them.
  const folders = path
    .split(delimiter)
    .filter((folder) => folder !== '' && !/[/\\]node_modules[/\\]\.bin[/\\]?$/.test(folder));
  const first = folders.map((folder) => join(folder, name)).find((candidate) => existsSync(candidate));
  if (first !== undefined && isOwn(first)) return name;
  return directory !== null && npxFinds(name, root, directory, isOwn) ? `${CHECKOUT} ${name}` : quoted(file);
}

/** Searches as npm does: the nearest package itself, then node_modules/.bin of each folder above it. */
function npxFinds(name: string, root: string, directory: string, isOwn: (candidate: string) => boolean): boolean {
  const above: string[] = [];
  for (let folder = directory; above.at(-1) !== folder; folder = dirname(folder)) above.push(folder);
  const at = above.findIndex((folder) =>
    ['package.json', 'node_modules'].some((each) => existsSync(join(folder, each))),
  );
  if (at < 0) return false;
  if (real(above[at]) === real(root)) return true;
  const linked = above
    .slice(at)
    .map((folder) => join(folder, 'node_modules', '.bin', name))
    .find((candidate) => existsSync(candidate));
  return linked !== undefined && isOwn(linked);
}

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));
const known = new Map<ProgramName, string>();

/** How the program is typed where this process was started. */
export function invocation(name: ProgramName): string {
  const found =
    known.get(name) ?? invocationAt(name, { root: ROOT, directory: current(), path: process.env.PATH ?? '' });
  known.set(name, found);
  return found;
}

/** A command line of the kit, such as `shadow-compare status`, as it is typed here. */
export const typed = (line: string): string => asTypedIn(line, /^(shadow-compare|shadow-proxy)\b/);

/** A text of the repository, whose commands are written for a checkout, with each command as it is typed here. */
export const retyped = (text: string): string => asTypedIn(text, /\bnpx --no-install (shadow-compare|shadow-proxy)\b/g);

const asTypedIn = (text: string, pattern: RegExp): string =>
  text.replace(pattern, (_, name: ProgramName) => invocation(name));

function real(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}

function current(): string | null {
  try {
    return process.cwd();
  } catch {
    return null;
  }
}
