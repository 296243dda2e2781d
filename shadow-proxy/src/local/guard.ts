/** What must happen when this process has ended, however it ended. */
import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { quoted } from '../text/shell.js';

/** Each line is a number and a script, which runs at the end. A number without a script takes its script back. */
const GUARD = `
  while read -r id script; do
    eval "script_$id=\\$script"
    [ -z "$script" ] || ids="$ids $id"
  done
  for id in $ids; do
    eval "script=\\$script_$id"
    [ -z "$script" ] || (eval "$script") &
  done`;

let guard: Socket | null = null;
let last = 0;

/**
 * Runs a shell script once this process has ended: by itself, by an error, by a signal, SIGKILL too.
 * One shell of its own session has the scripts of all callers, and waits at a pipe that closes with this process.
 * @param script in one line; sees `args` as `$1`, `$2`, …
 * @returns calls it off
 */
export function afterDeath(script: string, ...args: readonly string[]): () => void {
  const id = ++last;
  guard ??= start();
  guard.write(`${id} set -- ${args.map(quoted).join(' ')}; ${script}\n`);
  return () => guard?.write(`${id}\n`);
}

function start(): Socket {
  const shell = spawn('/bin/sh', ['-c', GUARD, 'guard'], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  shell.on('error', () => {});
  shell.stdin.on('error', () => {});
  shell.unref();
  const pipe = shell.stdin as Socket;
  pipe.unref();
  return pipe;
}
