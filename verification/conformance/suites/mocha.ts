/** Tests of Mocha in a source tree, against servers that run already. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConformanceError } from '../run/error.js';
import { runLimited } from '../run/program.js';
import type { Outcome } from '../run/result.js';

export interface MochaRun {
  readonly source: string;
  /** Files of the tests, and options of Mocha, from `cwd`. */
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly log: string;
  /** Seconds for all of it. */
  readonly limit: number;
}

/** @throws {ConformanceError} where the packages of the tree are not installed */
export async function runMocha({ source, args, cwd, env, log, limit }: MochaRun): Promise<Outcome> {
  const program = join(source, 'node_modules', 'mocha', 'bin', 'mocha.js');
  if (!existsSync(program))
    throw new ConformanceError('USAGE', `${source} has no Mocha: install the packages of that tree (npm install)`);
  const results = `${log}.json`;
  const { code, timedOut } = await runLimited({
    command: process.execPath,
    args: [program, '--exit', '--reporter', 'json', '--reporter-option', `output=${results}`, ...args],
    cwd,
    env,
    log: `${log}.log`,
    limitMs: limit * 1000,
  });
  if (timedOut) return nothing(`after the limit of ${limit} s`);
  return existsSync(results)
    ? parseMocha(readFileSync(results, 'utf8'))
    : nothing(`it wrote no results, exit code ${code}`);
}

const nothing = (cutShort: string): Outcome => ({ tests: [], aborts: [], cutShort });

interface MochaTest {
  readonly fullTitle: string;
  readonly err: { readonly message?: string };
}

/** Reads what Mocha's `json` reporter wrote. */
export function parseMocha(json: string): Outcome {
  const { tests, pending, failures } = JSON.parse(json) as Record<'tests' | 'pending' | 'failures', MochaTest[]>;
  const names = (some: readonly MochaTest[]): Set<string> => new Set(some.map(({ fullTitle }) => fullTitle));
  const skipped = names(pending);
  const known = names(tests);
  return {
    tests: tests.map(({ fullTitle: name, err }) => {
      if (skipped.has(name)) return { name, status: 'skipped' };
      return Object.keys(err).length === 0
        ? { name, status: 'ok' }
        : { name, status: 'failed', detail: err.message ?? '' };
    }),
    // A hook that failed: no test of the list.
    aborts: failures
      .filter(({ fullTitle }) => !known.has(fullTitle))
      .map(({ fullTitle, err }) => `${fullTitle}: ${err.message}`),
    cutShort: null,
  };
}
