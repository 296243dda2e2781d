/** Loads profiles: by name (those of the kit), or by the path of a file. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { LoadtestError } from '../rig/errors.js';
import { profileSchema, type Profile } from './profile.js';

/** The YAML files stay with the sources, because this file runs in `dist/loadtest/workload`. */
const FOLDER = fileURLToPath(new URL('../../../loadtest/profiles/', import.meta.url));

/** The names of the kit's profiles. */
export const profileNames = (): string[] =>
  readdirSync(FOLDER)
    .filter((file) => file.endsWith('.yaml'))
    .map((file) => path.basename(file, '.yaml'))
    .sort();

/**
 * @param nameOrFile a name such as `sessions`, or a path with a slash or an extension
 * @throws {LoadtestError} that names the file, each problem in it, and what is allowed
 */
export function loadProfile(nameOrFile: string): Profile {
  const isFile = /[/\\]|\.ya?ml$/.test(nameOrFile);
  if (!isFile && !profileNames().includes(nameOrFile)) {
    throw new LoadtestError(
      'USAGE',
      `--profile ${nameOrFile}: there is ${profileNames().join(', ')}; or give the path of a YAML file`,
    );
  }
  const file = isFile ? nameOrFile : path.join(FOLDER, `${nameOrFile}.yaml`);
  return parseProfile(read(file), file);
}

/** @throws {LoadtestError} */
export function parseProfile(text: string, origin: string): Profile {
  let value: unknown;
  try {
    value = parse(text);
  } catch (error) {
    throw new LoadtestError('USAGE', `${origin} is no YAML: ${(error as Error).message}`);
  }
  const { data, error } = profileSchema.safeParse(value);
  if (data) return data;
  const problems = error.issues.map(({ path: at, message }) => `  ${at.join('.') || 'profile'}: ${message}`);
  throw new LoadtestError('USAGE', `${origin} is no profile:\n${problems.join('\n')}`);
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new LoadtestError('USAGE', `--profile ${file} cannot be read: ${(error as Error).message}`);
  }
}
