/** One compiled test file, run until its first failure. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { compiled, type Tree } from './tree.js';

export interface Outcome {
  /** What failed: the first test that did, a time-out, or how the process ended; null where all passed. */
  readonly failure: string | null;
  readonly seconds: number;
}

/** How long a process may clean up after the signal to end. */
const GRACE_MS = 3_000;

/** @param limit seconds, then the file counts as failed */
export async function runTest(tree: Tree, file: string, limit: number, signal: AbortSignal): Promise<Outcome> {
  const startedAt = performance.now();
  const env: NodeJS.ProcessEnv = { ...process.env, FORCE_COLOR: '0' };
  delete env.NODE_TEST_CONTEXT;
  // A process group of its own: what a test has started ends with it.
  const child = spawn(process.execPath, ['--test-reporter=tap', compiled(file)], {
    cwd: tree.root,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let failure: string | null = null;
  let grace: NodeJS.Timeout | undefined;
  const end = (reason: string): void => {
    if (failure !== null) return;
    failure = reason;
    endGroup(child.pid, 'SIGTERM');
    grace = setTimeout(() => endGroup(child.pid, 'SIGKILL'), GRACE_MS);
  };
  const timeout = setTimeout(() => end(`time-out after ${Math.round(limit)} s`), limit * 1_000);
  const abort = (): void => end('aborted');
  signal.addEventListener('abort', abort, { once: true });
  createInterface({ input: child.stdout }).on('line', (line) => {
    const [, name, directive] = /^\s*not ok \d+ - (.*?)( # (?:TODO|SKIP).*)?$/.exec(line) ?? [];
    if (name !== undefined && directive === undefined) end(`"${name}"`);
  });
  const [code, killed] = await new Promise<[number | null, string | null]>((resolve, reject) => {
    child.once('error', reject).once('close', (...ended) => resolve(ended));
  });
  clearTimeout(timeout);
  clearTimeout(grace);
  signal.removeEventListener('abort', abort);
  endGroup(child.pid, 'SIGKILL');
  if (code !== 0) failure ??= killed ?? `exit code ${code}`;
  return { failure, seconds: (performance.now() - startedAt) / 1_000 };
}

function endGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal);
  } catch {
    // Nothing of it is left.
  }
}
