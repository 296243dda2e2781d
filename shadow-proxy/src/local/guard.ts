/** Runs cleanup scripts when this process has ended, for whatever reason. */
import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { quoted } from '../text/shell.js';

/** Each input line is a number and a script, which runs at the end. A number without a script cancels its script. */
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
 * Runs a shell script once this process has ended: normally, by an error, or by a signal, including SIGKILL. One shell
 * in its own session has the scripts of all callers, and waits at a pipe that closes with this process.
 * @param script in one line; it sees `args` as `$1`, `$2`, …
 * @returns a function that cancels the script
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
