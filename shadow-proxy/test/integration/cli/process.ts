/** The programs as processes of their own: started, read line by line, signalled, and gone after the test. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { TestContext } from 'node:test';
import { PROGRAMS } from '../../support/programs.js';

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
    const timer = new Promise<'late'>((resolve) => setTimeout(resolve, waitMs, 'late').unref());
    const code = await Promise.race([this.#exit, timer]);
    if (code === 'late') throw new Error(`no end within ${waitMs} ms; stdout: ${this.stdout}; stderr: ${this.stderr}`);
    return code;
  }

  /** The first match in what is printed to stdout. @throws {Error} when it does not come, or the program ends first */
  async prints(pattern: RegExp, waitMs = WAIT_MS): Promise<RegExpExecArray> {
    for (
      const deadline = Date.now() + waitMs;
      Date.now() < deadline;
      await new Promise((resolve) => setTimeout(resolve, 20))
    ) {
      const found = pattern.exec(this.stdout);
      if (found) return found;
      if (this.#child.exitCode !== null) break;
    }
    throw new Error(`${pattern} was not printed; stdout: ${this.stdout}; stderr: ${this.stderr}`);
  }
}

/** Runs a program to its end. */
export async function runProgram(
  t: TestContext,
  name: keyof typeof PROGRAMS,
  args: readonly string[],
  env?: NodeJS.ProcessEnv,
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const program = new Program(t, name, args, env);
  const code = await program.exit();
  return { code, stdout: program.stdout, stderr: program.stderr };
}
