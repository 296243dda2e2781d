/** Runs the programs as processes: starts them, reads their lines, signals them, and ends them after the test. */
import { fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { patienceMs } from '../../support/patience.js';
import { PROGRAMS } from '../../support/programs.js';
import { until } from '../../support/shard.js';
import type { Answer, Asked, Ended } from './many-commands.js';

const WAIT_MS = 20_000;

export class Program {
  stdout = '';
  stderr = '';
  readonly #child: ChildProcess;
  readonly #exit: Promise<number | null>;

  constructor(t: TestContext, name: keyof typeof PROGRAMS, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    this.#child = spawn(process.execPath, [PROGRAMS[name], ...args], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child.stdout!.on('data', (chunk: Buffer) => (this.stdout += chunk.toString()));
    this.#child.stderr!.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()));
    this.#exit = once(this.#child, 'close').then(([code]) => code as number | null);
    t.after(() => {
      if (this.#child.exitCode === null) this.#child.kill('SIGKILL');
    });
  }

  get pid(): number {
    return this.#child.pid!;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** The exit code. @throws {Error} with what was printed, when it does not end in time */
  async exit(waitMs = WAIT_MS): Promise<number | null> {
    let code: number | null | undefined;
    void this.#exit.then((ended) => (code = ended));
    await until(
      () => code !== undefined,
      waitMs,
      () => `it ends; stdout: ${this.stdout}; stderr: ${this.stderr}`,
    );
    return code!;
  }

  /** The first match in what is printed to stdout. @throws {Error} when it does not come, or the program ends first */
  async prints(pattern: RegExp, waitMs = WAIT_MS): Promise<RegExpExecArray> {
    let found: RegExpExecArray | null = null;
    const isOver = (): boolean => (found = pattern.exec(this.stdout)) !== null || this.#child.exitCode !== null;
    await until(isOver, waitMs, () => `${pattern} is printed; stdout: ${this.stdout}; stderr: ${this.stderr}`);
    if (found !== null) return found;
    throw new Error(`${pattern} was not printed; stdout: ${this.stdout}; stderr: ${this.stderr}`);
  }
}

/** Runs a program to its end. */
export async function runProgram(
  t: TestContext,
  name: keyof typeof PROGRAMS,
  args: readonly string[],
  env?: NodeJS.ProcessEnv,
): Promise<Ended> {
  const program = new Program(t, name, args, env);
  const code = await program.exit();
  return { code, stdout: program.stdout, stderr: program.stderr };
}

/** Processes that wait for a command. */
const idle: ChildProcess[] = [];

/**
 * Runs a command of `shadow-compare` to its end, in a process that runs many of them: to start one takes longer than
 * most commands. What a process of its own is about is for `runProgram`: terminal, signals, its end.
 */
export const runCommand = (...args: readonly string[]): Promise<Ended> => runCommandWith({}, args);

/**
 * The same with other variables of the environment; null: not set. It ends when nothing is left of the command that
 * would keep a process of its own alive.
 *
 * @throws {Error} when it does not end in time
 */
export async function runCommandWith(env: Asked['env'], args: readonly string[], waitMs = WAIT_MS): Promise<Ended> {
  const child = idle.pop() ?? fork(PROGRAMS['many-commands'], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  child.channel!.ref();
  const timer = new AbortController();
  try {
    child.send({ args, env } satisfies Asked);
    const [{ wasLast, ...ended }] = (await Promise.race([
      once(child, 'message', { signal: timer.signal }),
      // What it has sent before comes first.
      once(child, 'disconnect', { signal: timer.signal }).then(() => {
        throw new Error(`${args.join(' ')} ended its process with ${child.exitCode ?? child.signalCode}`);
      }),
      sleep(patienceMs(waitMs), undefined, { signal: timer.signal }).then(() => {
        child.kill('SIGKILL');
        throw new Error(`${args.join(' ')} did not end within ${waitMs} ms`);
      }),
    ])) as [Answer];
    if (!wasLast) idle.push(child);
    return ended;
  } finally {
    timer.abort();
    child.unref();
    child.channel?.unref();
  }
}
