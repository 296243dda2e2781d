/** `npm run loadtest` in a process of its own, as people run it. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Redis } from 'ioredis';
import { readResults, type Results } from '../figures/results.js';
import { withClient as withClientAt } from '../sides/client.js';

const MAIN = fileURLToPath(new URL('../cli/main.js', import.meta.url));

export interface Said {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export function loadtest(args: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<Said> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [MAIN, ...args], { env, maxBuffer: 2 ** 26 }, (_, stdout, stderr) =>
      resolve({ code: child.exitCode ?? -1, stdout, stderr }),
    );
  });
}

/** A folder that is removed after the tests of the file. */
export function newFolder(): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'redis-to-keydb-loadtest-test-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A connection to a server on loopback that does not outlive `body`, however it ends. */
export const withClient = <T>(port: number, body: (client: Redis) => Promise<T>): Promise<T> =>
  withClientAt({ host: '127.0.0.1', port, db: 0, username: null, password: null, tls: null }, body);

/** Runs with `--out`, and reads what it left. @throws where it left nothing, with what it said */
export async function measured(
  args: readonly string[],
): Promise<Said & { readonly results: Results; readonly out: string }> {
  const out = newFolder();
  const said = await loadtest([...args, '--out', out]);
  try {
    return { ...said, results: readResults(out), out };
  } catch {
    throw new Error(`exit code ${said.code}: ${said.stderr}`);
  }
}
