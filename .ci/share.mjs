/**
 * Prints the files of tests that one part of `.ci/run` has, one in a line: `share.mjs slow | without-keydb | terraform`.
 * Parts of several minutes are run in shares, which the commit chooses: another commit may choose another share.
 * SHARE=0 or SHARE=1 chooses it, and SHARE=all is the whole part.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { testFiles } from '../shadow-proxy/bin/bootstrap.mjs';

const SHARES = 2;
/** Of the tests that need no KeyDB, so many times fewer are run without it. */
const FEWER = 5;

function commit() {
  try {
    return execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  } catch {
    return '0';
  }
}

const { SHARE: asked = String(parseInt(commit().slice(0, 4), 16) % SHARES) } = process.env;
if (!['all', '0', '1'].includes(asked)) throw new Error(`SHARE=${asked}: allowed are 0, 1 and all`);
const isShare = (index, shares = SHARES) => asked === 'all' || index % shares === Number(asked);
const isAboutKeydb = (file) => /(needs|missing|lacking)\([^)]*'keydb'/.test(readFileSync(file, 'utf8'));

const PARTS = {
  slow: () => testFiles(['--slow']).filter((_, index) => isShare(index)),
  /** Each file that has a test of KeyDB itself, and some of the others. */
  'without-keydb': () =>
    [...testFiles([]), ...testFiles(['--slow'])]
      .filter((file) => !file.includes('test/unit/'))
      .filter((file, index) => isShare(index, FEWER) || isAboutKeydb(file)),
  terraform: () =>
    testFiles([
      'terraform/test/lint',
      ...['terraform/test/modules', 'terraform/test/changes'].filter((_, index) => isShare(index)),
    ]),
};

const part = PARTS[process.argv[2]];
if (part === undefined) throw new Error(`${process.argv[2]}: the parts are ${Object.keys(PARTS).join(', ')}`);
process.stderr.write(`Share ${asked}: SHARE=${asked} repeats it, SHARE=all is all of this part.\n`);
process.stdout.write(`${part().join('\n')}\n`);
