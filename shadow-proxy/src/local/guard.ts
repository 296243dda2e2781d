/** What must happen when this process has ended, however it ended. */
import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';

/**
 * Runs a shell script once this process has ended: by itself, by an error, by a signal, SIGKILL too.
 * A shell of its own session waits at a pipe that closes with this process.
 * @param script sees `args` as `$1`, `$2`, …
 * @returns calls it off
 */
export function afterDeath(script: string, ...args: readonly string[]): () => void {
  const shell = spawn('/bin/sh', ['-c', `read -r _ || { ${script}; }`, 'guard', ...args], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  shell.on('error', () => {});
  shell.stdin.on('error', () => {});
  shell.unref();
  (shell.stdin as Socket).unref();
  return () => shell.stdin.end('\n');
}
