/**
 * Suites are programs: they end in time, and leave nothing behind.
 *
 * Needs real processes: programs that are killed with all that they have started.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../../shadow-proxy/test/support/shard.js';
import { runLimited, type Ended } from '../run/program.js';

/** Runs a shell script that prints the id of a process that it leaves behind. */
async function shell(t: TestContext, script: string, limitMs: number): Promise<Ended & { child: number }> {
  const cwd = mkdtempSync(join(tmpdir(), 'program-'));
  t.after(() => rmSync(cwd, { recursive: true, force: true }));
  const log = join(cwd, 'log');
  const ended = await runLimited({
    command: '/bin/sh',
    args: ['-c', `sleep 60 & echo $!; ${script}`],
    cwd,
    log,
    limitMs,
  });
  return { ...ended, child: Number(readFileSync(log, 'utf8')) };
}

async function hasEnded(pid: number): Promise<boolean> {
  for (let i = 0; i < 100; i++, await sleep(20)) {
    try {
      process.kill(pid, 0);
      if (readFileSync(`/proc/${pid}/stat`, 'latin1').includes(') Z ')) return true;
    } catch {
      return true;
    }
  }
  return false;
}

test('a program that takes too long is killed with its children', async (t) => {
  const { timedOut, code, child } = await shell(t, 'wait', 300);
  assert.deepEqual({ timedOut, code }, { timedOut: true, code: null });
  assert.ok(await hasEnded(child));
});

test('what a program leaves behind is killed when it ends', async (t) => {
  const { timedOut, code, child } = await shell(t, 'exit 3', 10_000);
  assert.deepEqual({ timedOut, code }, { timedOut: false, code: 3 });
  assert.ok(await hasEnded(child));
});

test('a program does not outlive who runs it', async (t) => {
  const cwd = mkdtempSync(join(tmpdir(), 'program-'));
  t.after(() => rmSync(cwd, { recursive: true, force: true }));
  const log = join(cwd, 'log');
  const run = { command: '/bin/sh', args: ['-c', 'sleep 60 & echo $!; wait'], cwd, log, limitMs: 60_000 };
  const script = `import { runLimited } from ${JSON.stringify(new URL('../run/program.js', import.meta.url).href)}; await runLimited(${JSON.stringify(run)});`;
  const runner = spawn(process.execPath, ['--input-type=module', '--eval', script], { stdio: 'ignore' });
  await until(() => existsSync(log) && readFileSync(log, 'utf8').endsWith('\n'));
  const child = Number(readFileSync(log, 'utf8'));
  await sleep(300); // its guard is started behind it
  runner.kill('SIGKILL');
  assert.ok(await hasEnded(child));
});

test('a program that is not there ends without a code', async () => {
  const { timedOut, code } = await runLimited({
    command: '/nonexistent',
    args: [],
    cwd: '/',
    log: '/dev/null',
    limitMs: 1000,
  });
  assert.deepEqual({ timedOut, code }, { timedOut: false, code: null });
});
