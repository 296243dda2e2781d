/** Commands of the rehearsal: their output goes to one log; where one fails, its last lines are printed. */
import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';

/** A command that did not do what it had to. The message has the end of what it said. */
export class CommandFailed extends Error {
  override readonly name = 'CommandFailed';
  constructor(
    message: string,
    readonly output: string,
    readonly code: number | null,
  ) {
    super(message);
  }
}

export interface RunOptions {
  /** Appended to. */
  readonly log?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  readonly input?: string;
  readonly signal?: AbortSignal;
  /** Exit codes that are no failure; default 0. */
  readonly accept?: readonly number[];
}

export interface Ran {
  readonly stdout: string;
  readonly code: number;
}

const LAST_LINES = 25;

/** @throws {CommandFailed} */
export async function run(
  command: readonly string[],
  { log, env, cwd, input, signal, accept = [0] }: RunOptions = {},
): Promise<Ran> {
  signal?.throwIfAborted();
  const child = spawn(command[0], command.slice(1), {
    env: { ...process.env, ...env },
    cwd,
    signal,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.on('error', () => undefined);
  child.stdin.end(input ?? '');
  let stdout = '';
  let all = '';
  const take = (text: string): void => {
    all += text;
    if (log) appendFileSync(log, text);
  };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    take(text);
  });
  child.stderr.setEncoding('utf8').on('data', take);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  if (code !== null && accept.includes(code)) return { stdout, code };
  const end = all.trimEnd().split('\n').slice(-LAST_LINES).join('\n');
  throw new CommandFailed(`${command.slice(0, 4).join(' ')} … ended with ${code ?? 'a signal'}:\n${end}`, all, code);
}
