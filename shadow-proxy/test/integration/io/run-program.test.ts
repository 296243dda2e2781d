/**
 * Programs of the user's: exit codes, output and input, and that they end in time with what they have started.
 *
 * Needs real processes: programs of users: exit codes, signals, long output, children that are left.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { lastLine, runProgram, type Program, type ProgramEnd } from '../../../src/io/programs.js';

const shell = (script: string, more: Partial<Program> = {}): Promise<ProgramEnd> =>
  runProgram({ command: ['sh', '-c', script], env: {}, input: '', deadlineMs: 60_000, ...more });

test('a program gets arguments, variables and input, and its exit code and outputs are known', async () => {
  const command = ['sh', '-c', 'cat; echo "$1 $STAGE" >&2; exit 3', 'sh', "a 'b' $HOME"];
  const ended = await runProgram({ command, env: { STAGE: 'live' }, input: 'given\n', deadlineMs: 60_000 });
  assert.equal(ended.code, 3);
  assert.equal(ended.problem, null);
  assert.deepEqual(ended.output.trim().split('\n').sort(), ["a 'b' $HOME live", 'given']);
});

test('of a long output the end is kept', async () => {
  const { output } = await shell('i=0; while [ $i -lt 3000 ]; do echo "line $i"; i=$((i+1)); done');
  assert.ok(output.length <= 8 * 1024, `${output.length}`);
  assert.equal(lastLine(output), 'line 2999');
});

test('a program that does not end is killed, and so is what it has started', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'program-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const child = join(folder, 'child');
  const ended = await shell(`sleep 600 & echo $! > ${child}; wait`, { deadlineMs: 1_000 });
  assert.deepEqual([ended.code, ended.problem], [null, 'no end within 1000 ms']);
  assert.ok(existsSync(child), 'it had started one');
  const pid = Number(readFileSync(child, 'utf8'));
  // What was killed stays as a zombie until it is reaped.
  const hasEnded = (): boolean => {
    try {
      return readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
    } catch {
      return true;
    }
  };
  while (!hasEnded()) await new Promise((resolve) => setTimeout(resolve, 10));
});

test('a program that leaves another one behind has ended', async () => {
  const { code, output } = await shell('sleep 2 & echo left');
  assert.deepEqual([code, output], [0, 'left\n']);
});

test('what cannot be started is said', async () => {
  const nothing = await runProgram({ command: ['/nowhere/at-all'], env: {}, input: 'x', deadlineMs: 60_000 });
  assert.equal(nothing.code, null);
  assert.match(nothing.problem!, /ENOENT/);
  const nul = await runProgram({ command: ['true'], env: { A: 'a\0b' }, input: '', deadlineMs: 60_000 });
  assert.equal(nul.code, null);
  assert.match(nul.problem!, /null bytes/);
});
