/** A cluster client of redis-py, where Python has it; `PYTHON` names another one than `python3`. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const PYTHON = process.env.PYTHON ?? 'python3';
const SCRIPT = fileURLToPath(new URL('../../../../shadow-proxy/test/support/redis_py.py', import.meta.url));

/** `ended` resolves to what it printed; to a line that says so where there is no redis-py. */
export async function startRedisPy(
  port: number,
  durationMs: number,
  seed: number,
  t: TestContext,
): Promise<{ readonly ended: Promise<string> }> {
  const there = await promisify(execFile)(PYTHON, ['-c', 'import redis.cluster']).then(
    () => true,
    () => false,
  );
  if (!there) {
    const missing = `NOT TESTED WITH REDIS-PY: "${t.name}" needs the Python package redis (set PYTHON)`;
    process.stderr.write(`${missing}\n`);
    return { ended: Promise.resolve(missing) };
  }
  const child = spawn(PYTHON, [SCRIPT, String(port), String(durationMs / 1000), String(seed)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  return { ended: once(child, 'close').then(() => printed.trim()) };
}
