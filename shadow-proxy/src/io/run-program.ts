/** Runs a program of the user with Node. */
import { spawn } from 'node:child_process';

/** A program of the user: a check or a hook. */
export interface Program {
  /** The program's path, or a name on the PATH, and its arguments. No shell is involved. */
  readonly command: readonly string[];
  /** Environment variables besides those of the proxy. */
  readonly env: Readonly<Record<string, string>>;
  readonly input: string;
  /** After this time, the program and the programs that it started are killed. */
  readonly deadlineMs: number;
}

export interface ProgramEnd {
  /** Null if the program was killed, or could not be started. */
  readonly code: number | null;
  /** The last 8 KiB that the program wrote to both outputs. */
  readonly output: string;
  /** Why there is no exit code; null if there is one. */
  readonly problem: string | null;
}

/** Number of bytes of output that are kept. */
const OUTPUT_BYTES = 8 * 1024;
/** How long after its end the rest of a program's output may arrive. */
const LAST_OUTPUT_MS = 100;

export function runProgram({ command: [file, ...args], env, input, deadlineMs }: Program): Promise<ProgramEnd> {
  return new Promise((resolve) => {
    let output = Buffer.alloc(0);
    // A process group of its own, so that programs that it started end with it.
    const child = spawn(file, args, { env: { ...process.env, ...env }, detached: true });
    const end = (code: number | null, problem: string | null): void => {
      clearTimeout(deadline);
      resolve({ code, output: output.toString(), problem });
    };
    const deadline = setTimeout(() => {
      try {
        process.kill(-child.pid!, 'SIGKILL');
      } catch {
        // The group has just ended.
      }
      end(null, `no end within ${deadlineMs} ms`);
    }, deadlineMs);
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (bytes: Buffer) => (output = Buffer.concat([output, bytes]).subarray(-OUTPUT_BYTES)));
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
    child.once('error', (problem) => end(null, problem.message));
    child.once('exit', (code, signal) => {
      const ended = (): void => end(code, code === null ? `killed by ${signal}` : null);
      // Programs that it left running may keep its output open.
      const last = setTimeout(ended, LAST_OUTPUT_MS);
      child.once('close', () => {
        clearTimeout(last);
        ended();
      });
    });
  });
}
