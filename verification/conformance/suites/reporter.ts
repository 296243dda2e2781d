/**
 * A reporter for Vitest that writes a line for each test as it ends, so that a file that is cut short is reported as
 * far as it came: `--reporter=…/reporter.js`, with the path of the lines in `CONFORMANCE_RESULTS`. Vitest loads it by
 * its path.
 */
import { appendFileSync } from 'node:fs';
import type { TestResult } from '../run/result.js';

/** Of Vitest's `TestCase` and `TestModule`, what is read here. */
interface TestCase {
  readonly fullName: string;
  result(): { readonly state: string; readonly errors?: readonly { readonly message?: string }[] };
}
interface TestModule {
  errors(): readonly { readonly message?: string }[];
}

/** A line of the file: a test, an error outside of all tests, or the end. */
export type ReportLine = { readonly test: TestResult } | { readonly error: string } | { readonly end: true };

const STATES: Readonly<Record<string, TestResult['status']>> = { passed: 'ok', failed: 'failed' };

export default class LinesReporter {
  onTestCaseResult(test: TestCase): void {
    const { state, errors = [] } = test.result();
    const detail = errors.map(({ message }) => message).join('\n');
    write({ test: { name: test.fullName, status: STATES[state] ?? 'skipped', ...(detail && { detail }) } });
  }

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly { readonly message?: string }[]): void {
    for (const { message } of [...modules.flatMap((module) => [...module.errors()]), ...unhandled])
      write({ error: message ?? 'an error' });
    write({ end: true });
  }
}

const write = (line: ReportLine): void => appendFileSync(process.env.CONFORMANCE_RESULTS!, `${JSON.stringify(line)}\n`);
