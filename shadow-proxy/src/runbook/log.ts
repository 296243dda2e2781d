/**
 * The log of runbooks: one line of JSON for each step that was run, undone or checked, in `runbooks.jsonl` beside the
 * plan's state directory. The position in a runbook is computed from it (place.ts), so that it survives every process.
 */
import { open, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import * as z from 'zod';
import { redactSecrets } from '../plan/endpoint.js';
import type { LogEntry } from './place.js';

const entry = z.object({
  at: z.string(),
  runbook: z.string(),
  stop: z.string().nullable(),
  kind: z.enum(['run', 'undo', 'check', 'again']),
  by: z.string(),
  command: z.string().nullable(),
  exit: z.number().nullable(),
  failed: z.array(z.string()),
});

export class LogError extends Error {
  override readonly name = 'LogError';
}

export const logFile = (stateDirectory: string): string => join(dirname(stateDirectory), 'runbooks.jsonl');

/** Oldest first; empty if there is no log. A last line that a crash has cut is left out. @throws {LogError} */
export async function readLog(file: string): Promise<readonly LogEntry[]> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw new LogError(
      `${file} cannot be read (${error.code}): it records the steps done. Make it readable, or name another file with --log`,
    );
  });
  const lines = text.split('\n');
  const unfinished = lines.pop();
  const entries = lines
    .filter((line) => line !== '')
    .map((line, at) => {
      const parsed = entry.safeParse(fromJson(line));
      if (!parsed.success)
        throw new LogError(
          `${file}:${at + 1} is not a valid entry: correct the line, or move the file away; then every runbook starts from its first step`,
        );
      return parsed.data;
    });
  const last = entry.safeParse(fromJson(unfinished ?? ''));
  return last.success ? [...entries, last.data] : entries;
}

/** Appends a line. It is on the disk when the promise resolves. @throws {LogError} */
export async function appendLog(file: string, line: LogEntry): Promise<void> {
  try {
    const handle = await open(file, 'a+', 0o600);
    try {
      const { size } = await handle.stat();
      const { buffer } =
        size === 0 ? { buffer: Buffer.from('\n') } : await handle.read(Buffer.alloc(1), 0, 1, size - 1);
      // A line that a crash has cut stays a line of its own.
      await handle.writeFile(
        `${buffer.toString() === '\n' ? '' : '\n'}${JSON.stringify({ ...line, command: line.command && redactSecrets(line.command) })}\n`,
      );
      await handle.datasync();
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw new LogError(
      `${file} cannot be written (${(error as NodeJS.ErrnoException).code}): run it as a user who may write it, or name another file with --log`,
    );
  }
}

function fromJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}
