/**
 * `--via`: a proxy that only another host reaches, through a real sshd on this machine.
 *
 * Needs real processes: an ssh and an sshd between the program and the admin port.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { delimiter, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { freePort } from '../../../src/local/port.js';
import { needs, toolAt } from '../../support/needs.js';
import { scratch } from '../../support/plans.js';
import { withServers } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { runProgram } from './process.js';
import { planFor, start } from './running.js';

/** An sshd of the test's own; returns the environment in which `ssh bastion` reaches it. */
async function startSshd(t: TestContext): Promise<NodeJS.ProcessEnv> {
  const directory = scratch(t);
  const at = (name: string): string => join(directory, name);
  for (const key of ['host', 'user']) execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', at(key)]);
  copyFileSync(at('user.pub'), at('authorized'));
  // OpenSSH gives its children this directory, and has it from its package.
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true });
  const port = await freePort();
  const settings = {
    AuthorizedKeysFile: at('authorized'),
    HostKey: at('host'),
    ListenAddress: '127.0.0.1',
    PidFile: 'none',
    Port: port,
    StrictModes: 'no',
    UsePAM: 'no',
  };
  writeFileSync(
    at('sshd'),
    Object.entries(settings)
      .map(([name, value]) => `${name} ${value}\n`)
      .join(''),
  );
  let said = '';
  const sshd = spawn(toolAt('sshd')!, ['-D', '-e', '-f', at('sshd')], { stdio: ['ignore', 'ignore', 'pipe'] });
  sshd.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  t.after(() => sshd.kill());
  await until(
    () => said.includes('listening on'),
    10_000,
    () => `sshd listens: ${said}`,
  );
  const client = {
    HostName: '127.0.0.1',
    IdentityFile: at('user'),
    Port: port,
    StrictHostKeyChecking: 'no',
    User: userInfo().username,
    UserKnownHostsFile: '/dev/null',
    LogLevel: 'ERROR',
  };
  writeFileSync(
    at('config'),
    `Host bastion\n${Object.entries(client)
      .map(([name, value]) => `  ${name} ${value}\n`)
      .join('')}`,
  );
  mkdirSync(at('bin'));
  writeFileSync(at('bin/ssh'), `#!/bin/sh\nexec ${toolAt('ssh')!} -F ${at('config')} "$@"\n`);
  chmodSync(at('bin/ssh'), 0o755);
  return { PATH: `${at('bin')}${delimiter}${process.env.PATH ?? ''}` };
}

test('the proxies of a plan are reached through a host, and an ssh that fails says why', async (t) => {
  if (!(await needs(t, 'sshd'))) return;
  const env = await startSshd(t);
  await withServers(async (pair) => {
    const running = await start(t, await planFor(pair));
    const tool = (...args: readonly string[]) =>
      runProgram(t, 'shadow-compare', [...args, '--plan', running.file], env);
    const shown = await tool('status', '--via', 'bastion');
    assert.deepEqual([shown.code, shown.stderr], [0, '']);
    assert.match(shown.stdout, /^shard a$/m);
    const moved = await tool('promote', 'sessions', '--via', 'bastion', '--force', '--reason', 'to see it');
    assert.equal(moved.code, 0, moved.stderr);
    const unknown = await tool('status', '--via', 'nowhere.invalid');
    assert.equal(unknown.code, 3);
    assert.match(unknown.stderr, /no proxy answers at .*\(ssh nowhere\.invalid: ssh: Could not resolve hostname/);
  });
});
