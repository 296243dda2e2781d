/**
 * `shadow-compare local`: starts, serves, refuses a second one, and leaves nothing.
 *
 * Needs real processes: processes and files that `local up` starts and `local down` removes.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { Redis } from 'ioredis';
import { commandOf, type Running } from '../../../src/cli/local/folder.js';
import { runCommand, runProgram } from './process.js';

function folder(t: TestContext): string {
  const home = mkdtempSync(join(tmpdir(), 'local-'));
  t.after(async () => {
    await runCommand('local', 'down', '--directory', join(home, 'it'));
    await rm(home, { recursive: true, force: true });
  });
  return join(home, 'it');
}

test('up serves, a second up is refused, down leaves nothing', async (t) => {
  const directory = folder(t);
  const local = (command: string, ...args: string[]): ReturnType<typeof runCommand> =>
    runCommand('local', command, '--directory', directory, ...args);
  const { code, stdout, stderr } = await runProgram(t, 'shadow-compare', ['local', 'up', '--directory', directory]);
  assert.equal(code, 0, stderr);
  const running = JSON.parse(readFileSync(join(directory, 'running.json'), 'utf8')) as Running;
  for (const said of [`Status page: ${running.admin}/`, 'local traffic', 'runbook week-1', 'local down'])
    assert.ok(stdout.includes(said), `${said}: ${stdout}`);
  const client = new Redis(running.proxy);
  t.after(() => client.disconnect());
  assert.equal(await client.set('greeting', 'a'), 'OK');
  const { stdout: status } = await runCommand('status', '--plan', running.plan);
  assert.match(status, /source +redis\S+ \([\d.]+\)\n/);
  assert.match(status, /target +redis\S+, not used\n/, 'a KeyDB that nobody needs yet is not down');
  const again = await local('up');
  assert.equal(again.code, 1);
  assert.match(again.stderr, /runs in .* already/);
  const worked = await local('traffic', '--for', '5500ms');
  assert.equal(worked.code, 0);
  assert.match(
    worked.stderr,
    /^(Connecting .*\n)*[\d,]+ commands answered, 0 failed; 1 s left\n/,
    'silence over 5 s has a line',
  );
  assert.match(worked.stdout, /^Every read and write of the traffic succeeded\. Not counted: .*CLIENT SETINFO/m);
  client.disconnect();
  assert.match((await local('down')).stdout, /Stopped the migration/);
  assert.ok(!existsSync(directory));
  assert.match((await local('down')).stdout, /No migration runs/);
  for (const { pid } of [running, running.source, running.target]) assert.equal(await commandOf(pid), '');
});

test('a folder with other files in it is neither used nor removed', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'local-other-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  writeFileSync(join(directory, 'mine'), 'kept');
  const { code, stderr } = await runProgram(t, 'shadow-compare', ['local', 'up', '--directory', directory]);
  assert.equal(code, 2);
  assert.match(stderr, /holds other files/);
  await runCommand('local', 'down', '--directory', directory);
  assert.equal(readFileSync(join(directory, 'mine'), 'utf8'), 'kept');
});

test('a server that does not start is reported in one line, and no files are left', async (t) => {
  const directory = folder(t);
  const { code, stderr } = await runProgram(t, 'shadow-compare', ['local', 'up', '--directory', directory], {
    REDIS_SERVER: '/nowhere/redis-server',
  });
  assert.equal(code, 3);
  assert.equal(stderr, 'REDIS_SERVER=/nowhere/redis-server is not an executable file\n');
  assert.ok(!existsSync(directory));
});
