/**
 * Stryker's way to run tests written for `node:test`: all in one process that loads them once, so that a mutant costs
 * milliseconds. Stryker starts another process where a mutant works at load time, or does not end.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { register } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { CoverageData, MutantCoverage, StrykerOptions } from '@stryker-mutator/api/core';
import { commonTokens, declareClassPlugin, PluginKind, tokens } from '@stryker-mutator/api/plugin';
import {
  determineHitLimitReached,
  DryRunStatus,
  type DryRunResult,
  type MutantRunOptions,
  type MutantRunResult,
  type TestResult,
  type TestRunner,
  TestStatus,
  toMutantRunResult,
} from '@stryker-mutator/api/test-runner';
import type { Registered } from './node-test.js';

/** The name of this runner, and of its options. */
export const RUNNER = 'node-test';
export interface RunnerOptions {
  /** Test files, compiled, from the root. */
  readonly files: readonly string[];
}

/** What instrumented code reads and writes. */
interface Instrumenter {
  activeMutant?: string;
  currentTestId?: string;
  hitCount?: number;
  hitLimit?: number;
  mutantCoverage?: MutantCoverage;
}
type Test = Registered & { readonly id: string };

/** A test that takes longer is stuck: those that are run need a few milliseconds. */
const STUCK_MS = 5_000;

/** Tests that take longer, with all mutants in the code, are about large data or time: they are left out. */
const SLOW_MS = 2_000;
/** Written by the first run, in Stryker's copy: the tests that are run for a mutant, quickest first. */
const ORDER = 'order-of-tests.json';

class NodeTestRunner implements TestRunner {
  static readonly inject = tokens(commonTokens.options);
  readonly #files: readonly string[];
  readonly #instrumenter: Instrumenter = ((globalThis as Record<string, unknown>).__stryker__ ??= {});
  #tests: readonly Test[] | undefined;
  /** An error that no test has caught, which is the running test's. */
  #uncaught: (error: unknown) => void = () => {};

  constructor(options: StrykerOptions) {
    this.#files = (options[RUNNER] as RunnerOptions).files;
    register(new URL('./hooks.js', import.meta.url));
    for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
      process.removeAllListeners(event).on(event, (error: unknown) => this.#uncaught(error));
    }
  }

  capabilities() {
    return { reloadEnvironment: false };
  }

  async dryRun(): Promise<DryRunResult> {
    this.#instrumenter.mutantCoverage = { static: {} as CoverageData, perTest: {} };
    const result = await this.#run(await this.#load(), undefined, false);
    if (result.status !== DryRunStatus.Complete) return result;
    const tests = result.tests.filter(({ timeSpentMs }) => timeSpentMs < SLOW_MS);
    const order = tests.sort((a, b) => a.timeSpentMs - b.timeSpentMs).map(({ id }) => id);
    writeFileSync(ORDER, JSON.stringify(order));
    const { static: atLoad, perTest } = this.#instrumenter.mutantCoverage;
    const kept = Object.fromEntries(order.map((id) => [id, perTest[id] ?? {}]));
    return { ...result, tests, mutantCoverage: { static: atLoad, perTest: kept } };
  }

  async mutantRun(options: MutantRunOptions): Promise<MutantRunResult> {
    const { activeMutant, mutantActivation, testFilter, hitLimit } = options;
    this.#instrumenter.hitCount = hitLimit === undefined ? undefined : 0;
    this.#instrumenter.hitLimit = hitLimit;
    if (mutantActivation === 'static') this.#instrumenter.activeMutant = activeMutant.id;
    let tests: readonly Test[];
    try {
      tests = await this.#load();
    } catch (error) {
      // Without the module that the mutant broke, no test can pass.
      return toMutantRunResult({
        status: DryRunStatus.Complete,
        tests: [failed({ id: 'load', name: 'load', timeSpentMs: 0 }, error)],
      });
    }
    this.#instrumenter.activeMutant = activeMutant.id;
    return toMutantRunResult(await this.#run(tests, testFilter, true));
  }

  async #load(): Promise<readonly Test[]> {
    if (this.#tests !== undefined) return this.#tests;
    const { takeTests } = await import('./node-test.js');
    const tests: Test[] = [];
    for (const file of this.#files) {
      await import(pathToFileURL(join(process.cwd(), file)).href);
      tests.push(...takeTests().map((test) => ({ ...test, id: `${file}: ${test.name}` })));
    }
    const order = existsSync(ORDER) ? (JSON.parse(readFileSync(ORDER, 'utf8')) as readonly string[]) : null;
    const place = new Map(order?.map((id, at) => [id, at]));
    this.#tests = tests.filter(({ skipped, id }) => !skipped && (order === null || place.has(id)));
    if (order !== null) this.#tests = [...this.#tests].sort((a, b) => place.get(a.id)! - place.get(b.id)!);
    return this.#tests;
  }

  async #run(all: readonly Test[], filter: readonly string[] | undefined, bail: boolean): Promise<DryRunResult> {
    const wanted = filter && new Set(filter);
    const results: TestResult[] = [];
    for (const test of all) {
      if (wanted && !wanted.has(test.id)) continue;
      const result = await this.#runOne(test);
      const endless = determineHitLimitReached(this.#instrumenter.hitCount, this.#instrumenter.hitLimit);
      if (endless) return endless;
      results.push(result);
      if (bail && result.status === TestStatus.Failed) break;
    }
    return { status: DryRunStatus.Complete, tests: results };
  }

  async #runOne(test: Test): Promise<TestResult> {
    const { runBody } = await import('./node-test.js');
    const startedAt = performance.now();
    const result = (): { id: string; name: string; timeSpentMs: number } => ({
      id: test.id,
      name: test.name,
      timeSpentMs: performance.now() - startedAt,
    });
    let timer: NodeJS.Timeout | undefined;
    const stuck = new Promise<never>((_, reject) => {
      this.#uncaught = reject;
      timer = setTimeout(() => reject(new Error(`stuck for ${STUCK_MS} ms`)), STUCK_MS);
    });
    this.#instrumenter.currentTestId = test.id;
    try {
      await Promise.race([runBody(test), stuck]);
      return { ...result(), status: TestStatus.Success };
    } catch (error) {
      return failed(result(), error);
    } finally {
      clearTimeout(timer);
      this.#uncaught = () => {};
      this.#instrumenter.currentTestId = undefined;
    }
  }
}

const failed = (result: { id: string; name: string; timeSpentMs: number }, error: unknown): TestResult => ({
  ...result,
  status: TestStatus.Failed,
  failureMessage: error instanceof Error ? (error.stack ?? error.message) : String(error),
});

export const strykerPlugins = [declareClassPlugin(PluginKind.TestRunner, RUNNER, NodeTestRunner)];
export const strykerValidationSchema = { properties: { [RUNNER]: { type: 'object' } } };
