/** Plans for tests: a small right one, and ways to make it wrong. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { PlanError, type PlanProblem } from '../../src/plan/errors.js';
import { planFrom } from '../../src/plan/load.js';
import type { Plan } from '../../src/plan/plan.js';

/** A plan as a file would hold it; tests change it freely. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type PlanObject = Record<string, any>;

export function smallPlan(): PlanObject {
  return {
    version: 1,
    name: 'test',
    shards: [
      {
        name: 'a',
        listen: 'redis://127.0.0.1:6400',
        source: 'redis://127.0.0.1:6379',
        target: 'redis://127.0.0.1:6390',
      },
    ],
    workloads: [{ name: 'sessions', keys: ['session:*'] }],
  };
}

/** A second shard for `smallPlan`, on servers and an address of its own. */
export const otherShard = (): PlanObject => ({
  name: 'b',
  listen: 'redis://127.0.0.1:6401',
  source: 'redis://127.0.0.1:6380',
  target: 'redis://127.0.0.1:6391',
});

export const toPlan = (plan: PlanObject, env: NodeJS.ProcessEnv = {}, directory = '/nowhere'): Plan =>
  planFrom(plan, 'test', { directory, env });

/** What is wrong with the small plan after `change`; empty where nothing is. */
export function problemsOf(
  change: (plan: PlanObject) => void,
  env: NodeJS.ProcessEnv = {},
  directory = '/nowhere',
): readonly PlanProblem[] {
  const plan = smallPlan();
  change(plan);
  try {
    toPlan(plan, env, directory);
    return [];
  } catch (error) {
    if (error instanceof PlanError) return error.problems;
    throw error;
  }
}

/** The problems as lines: `path: message`. */
export const printProblems = (problems: readonly PlanProblem[]): string =>
  problems.map(({ path, message }) => `${path.join('.')}: ${message}`).join('\n');

/** Directories that could not be removed after their test. */
const left: string[] = [];
process.once('exit', () => {
  for (const directory of left) rmSync(directory, { recursive: true, force: true, maxRetries: 10 });
});

/** A directory that is removed after the test. */
export function scratch(t: TestContext, files: Readonly<Record<string, string>> = {}): string {
  const directory = mkdtempSync(join(tmpdir(), 'plan-test-'));
  t.after(() => {
    try {
      rmSync(directory, { recursive: true, force: true });
    } catch {
      // A program of the test, which is ended after this, has written there meanwhile. What is thrown here would leave
      // it running.
      left.push(directory);
    }
  });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  return directory;
}
