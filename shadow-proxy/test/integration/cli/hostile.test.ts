/**
 * Each command of the CLI beside servers that refuse, hang or answer nonsense.
 *
 * Needs real sockets: peers that refuse, hang or answer nonsense, readers that leave, ports that are taken.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { freePort } from '../../../src/local/port.js';
import { stringify } from 'yaml';
import { startRedis } from '../../../src/local/servers.js';
import { HostilePeer, QUICK, SLOW } from '../../support/hostile.js';
import { patienceMs } from '../../support/patience.js';
import { scratch } from '../../support/plans.js';
import { PROGRAMS } from '../../support/programs.js';
import { casesOf, nameOf, testAgainst } from './commands.js';
import { runCommand, runCommandWith } from './process.js';

const cases = await casesOf();

test('every command that takes a server or a proxy is tried', () => {
  const names = new Set(cases.map(({ words }) => words.join(' ')));
  for (const name of ['assess', 'plan init', 'run', 'guard', 'status', 'verify', 'report'])
    assert.ok(names.has(name), name);
});

const { 'refuses every command': refuses, 'closes in the middle of an answer': closes, 'answers HTML': html } = QUICK;
const { 'answers with control characters': controls, 'answers with entries that have only their names': names } = QUICK;
const { 'hangs after it has accepted': hangs } = SLOW;
// Those that hang need time, the others CPU: side by side, the file takes as long as the slowest of them.
describe('every command ends well:', { concurrency: 3 }, () => {
  // The other ways through the commands, and the other peers: hostile.long.test.ts.
  testAgainst(
    {
      'hangs after it has accepted': hangs,
      'refuses every command': refuses,
      'closes in the middle of an answer': closes,
      'answers HTML': html,
      'answers with control characters': controls,
      'answers with entries that have only their names': names,
    },
    cases.filter(({ more, only }) => only === undefined && more.length === 0),
  );

  describe('a server that refuses the password', () => {
    const commands: readonly (readonly [name: string, args: (url: string, plan: string) => readonly string[]])[] = [
      ['plan init', (url) => ['plan', 'init', '--from', url, '--out', '/nowhere/plan.yaml']],
      ['assess', (url) => ['assess', url]],
      ['assess, beside a server that takes its own', (url) => ['assess', url, '--for', '1h']],
      ['guard', (_, plan) => ['guard', '--plan', plan, '--no-proxy']],
    ];
    for (const [name, args] of commands)
      test(name, async (t) => {
        const server = await startRedis({ config: { requirepass: 'right' } });
        t.after(() => server.stop());
        const url = `redis://:wrong@127.0.0.1:${server.port}`;
        const shard = { name: 'a', listen: 'redis://127.0.0.1:0', source: 'redis://127.0.0.1:1', target: url };
        const plan = scratch(t, { 'plan.yaml': stringify({ version: 1, name: 'test', shards: [shard] }) });
        const began = performance.now();
        const { code, stdout, stderr } = await runCommand(...args(url, join(plan, 'plan.yaml')));
        assert.equal(code, 3, stdout + stderr);
        assert.match(stdout + stderr, /WRONGPASS/);
        assert.ok(stderr.split('redis://').length <= 2, `the server is named once: ${stderr}`);
        assert.ok(performance.now() - began < patienceMs(15_000));
      });
  });

  describe('a reader of the output that leaves', () => {
    /** Runs it, and closes its standard output after the first bytes. */
    const leave = async (t: TestContext, args: readonly string[]): Promise<{ code: number | null; stderr: string }> => {
      const child = spawn(process.execPath, [PROGRAMS['shadow-compare'], ...args], {
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      t.after(() => child.kill('SIGKILL'));
      let stderr = '';
      child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
      child.stdout.once('data', () => child.stdout.destroy());
      const [code] = (await once(child, 'close')) as [number | null];
      return { code, stderr };
    };

    test('ends what repeats, with no error', async (t) => {
      const server = createServer((_, response) => response.end('{"shards":[]}')).listen(0, '127.0.0.1');
      await once(server, 'listening');
      t.after(() => server.close());
      const { port } = server.address() as { port: number };
      assert.deepEqual(await leave(t, ['status', '--watch', '--admin', `127.0.0.1:${port}`]), { code: 0, stderr: '' });
    });

    test('leaves the exit code of a proxy that does not answer', async (t) => {
      assert.deepEqual(await leave(t, ['status', '--watch', '--admin', '127.0.0.1:1']), { code: 3, stderr: '' });
    });

    test('does not matter to what prints once', async (t) => {
      assert.deepEqual(await leave(t, ['runbook']), { code: 0, stderr: '' });
    });
  });

  test('an output that cannot be written is an error', async (t) => {
    const child = spawn('sh', ['-c', `"$0" "$1" runbook > /dev/full`, process.execPath, PROGRAMS['shadow-compare']]);
    t.after(() => child.kill());
    let stderr = '';
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    const [code] = (await once(child, 'close')) as [number];
    assert.deepEqual([code, stderr], [3, 'the output cannot be written (ENOSPC)\n']);
  });

  describe('the token', () => {
    /** A proxy that takes no token at all, and a plan that names it. */
    const proxy = async (t: TestContext): Promise<{ admin: string; plan: string; directory: string }> => {
      const peer = await HostilePeer.start(refuses);
      t.after(() => peer.stop());
      const directory = scratch(t, { token: 'planned' });
      const shard = {
        name: 'a',
        listen: 'redis://127.0.0.1:0',
        source: 'redis://127.0.0.1:1',
        target: 'redis://127.0.0.1:2',
      };
      const admin = { listen: `127.0.0.1:${peer.port}`, tokenFile: 'token' };
      const plan = join(directory, 'plan.yaml');
      writeFileSync(plan, stringify({ version: 1, name: 'test', shards: [shard], admin }));
      return { admin: admin.listen, plan, directory };
    };
    const status = async (args: readonly string[], token: string | null = null): Promise<string> => {
      const { code, stderr } = await runCommandWith({ SHADOW_PROXY_TOKEN: token }, ['status', ...args]);
      return `${code} ${stderr}`;
    };

    test('is asked for where there is none', async (t) => {
      const { admin } = await proxy(t);
      assert.match(
        await status(['--admin', admin]),
        /^2 the proxy at \S+ requires its admin token: set SHADOW_PROXY_TOKEN/,
      );
    });

    test('is named by where it comes from, and what it hides', async (t) => {
      const { plan, directory } = await proxy(t);
      assert.match(await status(['--plan', plan]), /^2 .* refuses the token from the plan: /);
      assert.match(
        await status(['--plan', plan], 'other'),
        /refuses the token from SHADOW_PROXY_TOKEN: .*\. The plan has another token: unset SHADOW_PROXY_TOKEN to use it/,
      );
      assert.doesNotMatch(await status(['--plan', plan], 'planned'), /another token/);
      writeFileSync(join(directory, 'own'), 'own\n');
      assert.match(
        await status(['--plan', plan, '--token-file', join(directory, 'own')], 'other'),
        /refuses the token from --token-file \S+\/own: /,
      );
    });

    test('is one word', async (t) => {
      const { admin } = await proxy(t);
      for (const token of ['two words', 'two\nlines', 'café', ''])
        assert.match(
          await status(['--admin', admin], token),
          /^2 SHADOW_PROXY_TOKEN (has a character|is empty)/,
          token,
        );
    });
  });

  describe('a port that another process has is named by its option, before anything starts:', () => {
    for (const option of ['--redis-port', '--keydb-port', '--proxy-port', '--admin-port'])
      test(option, async (t) => {
        const directory = join(scratch(t), 'practice');
        const peer = await HostilePeer.start(hangs);
        t.after(() => peer.stop());
        const args = ['local', 'up', '--directory', directory, option, String(peer.port)];
        const { code, stderr } = await runCommand(...args);
        assert.deepEqual(
          [code, stderr],
          [2, `${option} ${peer.port} is in use: choose another port, or leave ${option} out\n`],
        );
      });

    test('one port twice', async (t) => {
      const port = String(await freePort());
      const args = [
        'local',
        'up',
        '--directory',
        join(scratch(t), 'practice'),
        '--redis-port',
        port,
        '--admin-port',
        port,
      ];
      const { code, stderr } = await runCommand(...args);
      assert.deepEqual([code, stderr.includes('is that of --redis-port, too')], [2, true], stderr);
    });
  });

  test('traffic ends where the proxy does not answer', async (t) => {
    const peer = await HostilePeer.start(hangs);
    t.after(() => peer.stop());
    const directory = scratch(t, { '.redis-to-keydb': '' });
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', directory], { stdio: 'ignore' });
    t.after(() => child.kill());
    const running = { id: 'x', pid: child.pid, proxy: `redis://127.0.0.1:${peer.port}` };
    writeFileSync(join(directory, 'running.json'), JSON.stringify(running));
    const { code, stderr } = await runCommand('local', 'traffic', '--directory', directory);
    assert.equal(code, 1, stderr);
    assert.match(stderr, /^(Connecting to the proxy at .*\n)+the proxy at \S+: no answer within 10 s\n$/);
  });
});

test('a name is for each of them', () => {
  assert.equal(new Set(cases.map(nameOf)).size, cases.length);
});
