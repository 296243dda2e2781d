/** Runs a suite's program for as long as it may take, and leaves none of its processes behind. */
import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { afterDeath } from '../../../shadow-proxy/src/local/guard.js';

export interface Run {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Takes what the program prints. */
  readonly log: string;
  readonly limitMs: number;
}

export interface Ended {
  /** Null after a signal, and where the program did not start. */
  readonly code: number | null;
  readonly timedOut: boolean;
}

/** The program leads a process group of its own, and what is left of the group is killed when it ends. */
export async function runLimited({ command, args, cwd, env, log, limitMs }: Run): Promise<Ended> {
  const output = openSync(log, 'w');
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', output, output],
    detached: true,
  });
  closeSync(output);
  const callOff = child.pid === undefined ? (): void => {} : afterDeath(`kill -KILL -${child.pid}`);
  const killGroup = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // All of them have ended.
    }
  };
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    killGroup();
  }, limitMs);
  const code = await new Promise<number | null>((resolve) =>
    child.once('error', () => resolve(null)).once('exit', resolve),
  );
  clearTimeout(timer);
  killGroup();
  callOff();
  return { code, timedOut };
}
