/**
 * Prints the files of tests that are run a second time, as on a machine without KeyDB: each file that has a test of
 * KeyDB itself, and a fifth of the others, which the commit chooses: another commit may choose another fifth.
 * SHARE=0 to 4 chooses the fifth.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { testFiles } from '../shadow-proxy/bin/bootstrap.mjs';

const SHARES = 5;

function commit() {
  try {
    return execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  } catch {
    return '0';
  }
}

const share = Number(process.env.SHARE ?? parseInt(commit().slice(0, 4), 16) % SHARES);
const files = [...testFiles([]), ...testFiles(['--slow'])].filter((file) => !file.includes('test/unit/'));
const isChosen = (file, index) =>
  index % SHARES === share || /(needs|missing|lacking)\([^)]*'keydb'/.test(readFileSync(file, 'utf8'));
process.stderr.write(`Share ${share} of ${SHARES}: SHARE=${share} repeats it.\n`);
process.stdout.write(`${files.filter(isChosen).join('\n')}\n`);
