/** Runs a step with one server, and counts. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from 'node:test';
import type { Outcome } from './page.js';
import type { ServerProgram } from './servers.js';
import type { Step } from './steps.js';

const DIST = fileURLToPath(new URL('../..', import.meta.url));

/** @param tell is called with each test that fails, and why */
export async function runStep(step: Step, server: ServerProgram, tell: (line: string) => void): Promise<Outcome> {
  const began = performance.now();
  const env = step.env?.(server) ?? { REDIS_SERVER: server.path };
  const tests = typeof step.tests === 'function' ? step.tests(server) : step.tests;
  const counts = { passed: 0, failed: 0, skipped: 0, operations: 0 };
  const failures: string[] = [];
  const before = { ...process.env };
  // The files run in processes of their own, with this environment.
  Object.assign(process.env, env);
  try {
    for (const [file, names] of tests) {
      const stream = run({
        files: [join(DIST, file.replace(/\.ts$/, '.js'))],
        concurrency: 1,
        ...(names !== null && { testNamePatterns: names.map((name) => new RegExp(`^${escaped(name)}$`)) }),
      });
      for await (const { type, data } of stream as AsyncIterable<{ type: string; data: TestData }>) {
        if (type === 'test:diagnostic') counts.operations += operationsIn(data.message ?? '');
        if ((type !== 'test:pass' && type !== 'test:fail') || data.nesting !== 0 || isFile(data)) continue;
        if (data.skip === NOT_CHOSEN) continue;
        if (type === 'test:pass') counts[data.skip ? 'skipped' : 'passed']++;
        else if (!data.todo) {
          counts.failed++;
          failures.push(data.name);
          tell(
            `${data.name}: ${String(data.details?.error?.cause?.message ?? data.details?.error?.message).slice(0, 2_000)}`,
          );
        }
      }
    }
  } finally {
    for (const name of Object.keys(env)) delete process.env[name];
    Object.assign(process.env, before);
  }
  const seconds = Math.round((performance.now() - began) / 1000);
  return { ...counts, seconds, failures, on: new Date().toISOString().slice(0, 10) };
}

interface TestData {
  readonly name: string;
  readonly nesting: number;
  readonly message?: string;
  readonly skip?: boolean | string;
  readonly todo?: boolean | string;
  readonly details?: { readonly error?: { readonly message?: string; readonly cause?: { readonly message?: string } } };
}

/** What the runner says of a test that its pattern leaves out. */
const NOT_CHOSEN = 'test name does not match pattern';

/** The runner shows a file that has no test, or that failed as such, as a test of its name. */
const isFile = ({ name }: TestData): boolean => name.endsWith('.js');

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** The random trial shows `"operations":…`, a rehearsal `acknowledged …`. */
export const operationsIn = (message: string): number =>
  Number(/"operations":(\d+)/.exec(message)?.[1] ?? /\backnowledged (\d+)/.exec(message)?.[1] ?? 0);
