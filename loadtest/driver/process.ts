/** Runs a load generator's process to its end. It is stopped at the first sign that its figures would be useless. */
import { spawn } from 'node:child_process';
import { LoadtestError } from '../rig/errors.js';
import { cpuSeconds } from '../rig/proc.js';

export interface Ended {
  readonly stdout: string;
  /** CPU seconds at the last look (four per second); null if the system does not show them. */
  readonly cpu: number | null;
}

const LOOK_MS = 250;

export interface Limits {
  /** A line on standard error that ends the process. */
  readonly fatal: RegExp;
  /** After this time the process is killed. */
  readonly limitMs: number;
  readonly stop: AbortSignal;
}

/** Resolves, or rejects, only when the process has ended. @throws {LoadtestError} */
export async function runGenerator(
  file: string,
  args: readonly string[],
  { fatal, limitMs, stop }: Limits,
): Promise<Ended> {
  if (stop.aborted) throw new LoadtestError('MEASUREMENT', 'stopped');
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const kill = (): boolean => child.kill('SIGKILL');
  const stopped = (): void => {
    failure ??= 'stopped';
    kill();
  };
  process.once('exit', kill);
  stop.addEventListener('abort', stopped);
  let [stdout, stderr, failure]: [string, string, string | null] = ['', '', null];
  let cpu: number | null = null;
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    stderr = (stderr + chunk).slice(-4_000);
    const line = stderr.split(/[\r\n]/).find((text) => fatal.test(text));
    if (line === undefined || failure !== null) return;
    failure = line.trim();
    kill();
  });
  const look = setInterval(() => (cpu = cpuOf(child.pid) ?? cpu), LOOK_MS);
  const late = setTimeout(() => {
    failure ??= `it had not ended after ${limitMs / 1000} s`;
    kill();
  }, limitMs);
  const code = await new Promise((resolve) => child.once('error', resolve).once('close', resolve));
  clearInterval(look);
  clearTimeout(late);
  process.off('exit', kill);
  stop.removeEventListener('abort', stopped);
  if (failure === null && code !== 0)
    failure = stderr.trim().split('\n').slice(-3).join(' | ') || `it ended with ${String(code)}`;
  if (failure !== null) throw new LoadtestError('MEASUREMENT', `${file.split('/').at(-1)}: ${failure}`);
  return { stdout, cpu };
}

function cpuOf(pid: number | undefined): number | null {
  try {
    return pid === undefined ? null : cpuSeconds(pid);
  } catch {
    return null; // The process has ended meanwhile, or the system is not Linux.
  }
}
