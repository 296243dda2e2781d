/** A program of the user's, run by Node. */
import { spawn } from 'node:child_process';

/** A program of the user's. */
export interface Program {
  /** Its path, or a name on the PATH, and its arguments. No shell reads them. */
  readonly command: readonly string[];
  /** Beside those of the proxy. */
  readonly env: Readonly<Record<string, string>>;
  readonly input: string;
  /** Then it and the programs that it has started are killed. */
  readonly deadlineMs: number;
}

export interface ProgramEnd {
  /** Null where it was killed, or could not be started. */
  readonly code: number | null;
  /** What it has written to both outputs: the last 8 KiB. */
  readonly output: string;
  /** Why there is no exit code. */
  readonly problem: string | null;
}

/** Of its output, so many bytes are kept. */
const OUTPUT_BYTES = 8 * 1024;
/** For so long after its end, what is left of its output may come. */
const LAST_OUTPUT_MS = 100;

export function runProgram({ command: [file, ...args], env, input, deadlineMs }: Program): Promise<ProgramEnd> {
  return new Promise((resolve) => {
    let output = Buffer.alloc(0);
    // A group of its own: what it has started ends with it.
    const child = spawn(file, args, { env: { ...process.env, ...env }, detached: true });
    const end = (code: number | null, problem: string | null): void => {
      clearTimeout(deadline);
      resolve({ code, output: output.toString(), problem });
    };
    const deadline = setTimeout(() => {
      try {
        process.kill(-child.pid!, 'SIGKILL');
      } catch {
        // It has just ended.
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
      // Programs that it has left behind may hold its output open.
      const last = setTimeout(ended, LAST_OUTPUT_MS);
      child.once('close', () => {
        clearTimeout(last);
        ended();
      });
    });
  });
}
