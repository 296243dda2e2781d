/** StrykerJS over the modules that need no server: a small change of them must make a unit test fail. */
import { readdirSync } from 'node:fs';
import type { MutantResult, PartialStrykerOptions } from '@stryker-mutator/api/core';
import { Stryker } from '@stryker-mutator/core';
import { ROOT, testFiles } from '../root.js';
import { compiled } from '../tree.js';
import { GROUPS, type Group } from './modules.js';
import { RUNNER, type RunnerOptions } from './runner.js';

/** Per cent of the mutants that tests must notice. */
export const LEAST_SCORE = 85;

const SRC = 'shadow-proxy/src/';
const UNIT = 'shadow-proxy/test/unit/';

/**
 * @param part the name of a group of modules.ts, or a file of one; all groups without
 * @returns the score of all, in per cent
 * @throws where nothing is chosen
 */
export async function runStryker(part: string, parallel: number, say: (line: string) => void): Promise<number> {
  const results: MutantResult[] = [];
  const chosen = Object.entries(GROUPS).flatMap(([name, group]) => {
    const files = filesOf(group).filter((file) => part === name || file.includes(part));
    return files.length === 0 ? [] : [{ name, files, tests: group.tests }];
  });
  if (chosen.length === 0) {
    throw new Error(
      `${part} is neither a group of verification/mutants/stryker/modules.ts nor a file of one: ${Object.keys(GROUPS).join(', ')}.`,
    );
  }
  for (const { name, files, tests } of chosen) {
    say(`${name}: ${files.length} files`);
    results.push(...(await new Stryker(optionsOf(name, files, tests, parallel)).runMutationTest()));
  }
  say(scores(results));
  return scoreOf(results);
}

const filesOf = ({ mutate }: Group): readonly string[] =>
  mutate.flatMap((path) =>
    path.endsWith('/')
      ? readdirSync(ROOT + SRC + path)
          .filter((name) => name.endsWith('.ts'))
          .map((name) => SRC + path + name)
      : [SRC + path],
  );

function optionsOf(
  name: string,
  mutate: readonly string[],
  tests: readonly string[],
  parallel: number,
): PartialStrykerOptions {
  const files = testFiles().filter((file) => tests.some((part) => file.startsWith(UNIT + part)));
  const runner: RunnerOptions = { files: files.map(compiled) };
  return {
    mutate: [...mutate],
    plugins: [`${ROOT}dist/verification/mutants/stryker/runner.js`],
    testRunner: RUNNER,
    [RUNNER]: runner,
    // Stryker's copies of the repository lie below it: they find its packages.
    symlinkNodeModules: false,
    buildCommand: 'node ../../dist/verification/mutants/stryker/compile.js',
    coverageAnalysis: 'perTest',
    concurrency: parallel,
    // Messages for people: tests that hold every word of them would only be in the way.
    mutator: { excludedMutations: ['StringLiteral'] },
    ignorePatterns: ['dist', 'state', 'ansible', 'terraform', 'docs', 'reports'],
    reporters: ['html', 'json'],
    htmlReporter: { fileName: `reports/mutants/${name}.html` },
    jsonReporter: { fileName: `reports/mutants/${name}.json` },
    timeoutMS: 1_500,
    disableTypeChecks: true,
    logLevel: 'warn',
  } as PartialStrykerOptions;
}

const noticed = ({ status }: MutantResult): boolean => status === 'Killed' || status === 'Timeout';
const missed = ({ status }: MutantResult): boolean => status === 'Survived' || status === 'NoCoverage';

function scoreOf(results: readonly MutantResult[]): number {
  const kept = results.filter(missed).length;
  const killed = results.filter(noticed).length;
  return kept + killed === 0 ? 100 : (100 * killed) / (kept + killed);
}

/** A row for each file, and one for all: mutants, those that no test has noticed, per cent of those noticed. */
function scores(results: readonly MutantResult[]): string {
  const row = (name: string, of: readonly MutantResult[]): string => {
    const figures = [of.filter((each) => noticed(each) || missed(each)).length, of.filter(missed).length].map(String);
    return `${name.padEnd(40)}${figures.map((each) => each.padStart(9)).join('')}${scoreOf(of).toFixed(1).padStart(9)} %`;
  };
  const nameOf = ({ fileName }: MutantResult): string => fileName.slice(fileName.indexOf(SRC) + SRC.length);
  const files = [...new Set(results.map(nameOf))].sort();
  return [
    `${'module'.padEnd(40)}  mutants   missed    score`,
    ...files.map((file) => row(file, results.filter((each) => nameOf(each) === file))), // prettier-ignore
    row('all', results),
  ].join('\n');
}
