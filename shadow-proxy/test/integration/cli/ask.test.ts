/**
 * `shadow-compare ask`: what real servers answer, with the logins of the plan.
 *
 * Needs real servers: CONFIG GET, ACL LIST and the like, as each server answers them to the logins of a plan.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { stringify } from 'yaml';
import { scratch } from '../../support/plans.js';
import { withServers } from '../../support/servers.js';
import { runCommand } from './process.js';

test('each server is asked once, with its login; what changes it is confirmed; none is asked for keys', async (t) => {
  const directory = scratch(t);
  const config = { requirepass: 'a-secret' };
  await withServers(
    async (first) => {
      await withServers(
        async (second) => {
          const shards = [first, second].map(({ source }, i) => ({
            name: `s${i}`,
            listen: `redis://127.0.0.1:${7000 + i}`,
            source: { url: source.url, passwordFile: 'password' },
            target: { url: first.target.url, passwordFile: 'password' },
            owns: [`s${i}:*`],
          }));
          writeFileSync(join(directory, 'password'), 'a-secret\n');
          const plan = join(directory, 'plan.yaml');
          const workloads = [{ name: 'all', keys: ['*'] }];
          writeFileSync(plan, stringify({ version: 1, name: 'asked', shards, workloads }));
          const ask = (...words: readonly string[]): ReturnType<typeof runCommand> =>
            runCommand('ask', ...words, '--plan', plan);

          const sources = await ask('source', 'ping');
          assert.deepEqual(
            [sources.code, sources.stdout.split('\n').toSorted()],
            [0, ['', 's0  PONG', 's1  PONG']],
            sources.stderr,
          );
          const targets = await ask('target', 'config', 'get', 'maxmemory');
          assert.deepEqual(
            [targets.code, targets.stdout],
            [0, 'maxmemory 0\n'],
            'one server, though two shards have it',
          );
          const secret = await ask('target', 'CONFIG', 'GET', 'requirepass');
          assert.equal(secret.stdout, 'requirepass ***\n');
          const one = await ask('source', 'info', 'server', '--shard', 's1');
          assert.match(one.stdout, new RegExp(`^tcp_port:${second.source.port}$`, 'm'));
          const node = await ask(
            'target',
            'info',
            'server',
            '--shard',
            's0',
            '--node',
            `127.0.0.1:${second.source.port}`,
          );
          assert.match(node.stdout, new RegExp(`^tcp_port:${second.source.port}$`, 'm'), node.stderr);

          const unconfirmed = await ask('target', 'config', 'set', 'maxmemory', '1gb');
          assert.deepEqual([unconfirmed.code, /--yes/.test(unconfirmed.stderr)], [2, true], unconfirmed.stderr);
          assert.equal((await ask('target', 'config', 'get', 'maxmemory')).stdout, 'maxmemory 0\n');
          assert.equal((await ask('target', 'config', 'set', 'maxmemory', '1gb', '--yes')).stdout, 'OK\n');
          assert.equal((await ask('target', 'config', 'get', 'maxmemory')).stdout, 'maxmemory 1073741824\n');
          for (const words of [['get', 'k'], ['keys', '*'], ['flushall'], ['config', 'reset'], ['monitor']]) {
            const refused = await ask('target', ...words);
            assert.deepEqual([refused.code, /ask does not take/.test(refused.stderr)], [2, true], refused.stderr);
          }
          const both = await ask('source', 'ping', '--node', `127.0.0.1:${second.source.port}`);
          assert.match(
            both.stderr,
            /--node names a node of one source, and the plan has 2: add --shard, one of s0, s1/,
          );

          await second.source.kill('SIGKILL');
          const silent = await ask('source', 'ping');
          assert.deepEqual([silent.code, silent.stdout], [3, 's0  PONG\n']);
          assert.match(silent.stderr, /^s1 {2}redis:\/\/.* ECONNREFUSED/m);
          const ended = await ask('source', 'shutdown', 'nosave', '--shard', 's0', '--yes');
          assert.deepEqual([ended.code, /has shut down/.test(ended.stdout)], [0, true], ended.stderr);
          writeFileSync(join(directory, 'password'), 'another\n');
          const refused = await ask('target', 'ping');
          assert.deepEqual([refused.code, /refuses AUTH: WRONGPASS/.test(refused.stderr)], [3, true], refused.stderr);
        },
        { source: { config } },
      );
    },
    { source: { config }, target: { config } },
  );
});
