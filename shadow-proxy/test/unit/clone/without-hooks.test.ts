/** What a run of many files preloads: tests, suites and errors that nobody has caught are reported as without it. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../../..', import.meta.url));
const PRELOAD = pathToFileURL(join(ROOT, 'shadow-proxy/build/without-hooks.mjs')).href;
const TESTS = `
import assert from 'node:assert';
import { after, before, describe, test } from 'node:test';
import { setTimeout as rest } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
test('well', () => rest(5));
test('rejects later', async () => { await rest(1); void Promise.reject(new Error('later')); await rest(20); });
test('throws later', async () => { await rest(1); setTimeout(() => { throw new Error('later'); }, 1); await rest(20); });
test('fails', async () => { await rest(1); assert.equal(1, 2); });
test('with a part', async (t) => { await rest(1); await t.test('a part', () => rest(1)); });
test('of a thread', () => new Promise((resolve) => new Worker('', { eval: true }).on('exit', resolve)));
describe('outer', () => {
  let steps = '';
  before(() => (steps += 'outer '));
  after(() => process.stderr.write(steps));
  describe('inner', () => { before(() => (steps += 'inner ')); test('in it', () => (steps += 'test')); });
  test('options of others', () => assert.equal(process.env.NODE_OPTIONS, process.env.OTHERS));
});
`;

/** The lines of the report, without times; and what the suites noted. */
function report(file: string, options: string, others?: string): { lines: string[]; steps: string; status: number } {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--test-reporter=tap', file], {
    encoding: 'utf8',
    env: { ...env, NODE_OPTIONS: options, OTHERS: others },
  });
  return { lines: stdout.split('\n').filter((line) => /^\s*(not )?ok /.test(line)), steps: stderr, status: status! };
}

test('tests, suites, hooks and errors that nobody has caught are as without it', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'hooks-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'some.test.mjs');
  writeFileSync(file, TESTS);
  const plain = report(file, '--no-warnings', '--no-warnings');
  assert.deepEqual(
    plain.lines.filter((line) => line.includes('not ok')).map((line) => line.replace(/.* - /, '')),
    ['rejects later', 'throws later', 'fails'],
  );
  assert.deepEqual([plain.steps, plain.status], ['outer inner test', 1]);
  assert.deepEqual(report(file, `--no-warnings --import ${PRELOAD}`, '--no-warnings'), plain);
  assert.equal(report(file, ` --import ${PRELOAD}`).lines.length, plain.lines.length, 'no options remain');
});
