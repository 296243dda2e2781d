/**
 * What takes longer: all three sides over TLS, a sweep, the fallback, several load hosts, a plan, an interruption.
 *
 * Needs real processes: load hosts as processes, TLS, and Ctrl-C.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { withServers } from '../../shadow-proxy/test/support/servers.js';
import { merge } from '../figures/histogram.js';
import { readResults } from '../figures/results.js';
import { profileNames } from '../workload/load.js';
import { loadtest, measured, newFolder, withClient } from './cli.js';
import { needs } from '../../shadow-proxy/test/support/needs.js';

const SHORT = ['--rounds', '1', '--seconds', '1', '--warm-up', '0'];

test('every profile runs against Redis, KeyDB and the proxy, and all counters add up on both servers', async (t) => {
  if (!(await needs(t, 'memtier_benchmark', 'keydb'))) return;
  for (const profile of profileNames()) {
    const { code, results, stderr } = await measured([
      '--profile',
      profile,
      '--against',
      'source,target,proxy',
      ...SHORT,
    ]);
    assert.equal(code, 0, stderr);
    assert.deepEqual(
      results.samples.map(({ side }) => side),
      ['source', 'target', 'proxy'],
    );
    assert.ok(results.sides.every(({ where }) => where.startsWith(profile === 'auth' ? 'rediss://' : 'redis://')));
    assert.deepEqual(Object.keys(results.samples[2].work), ['proxy', 'source', 'target']);
    const counted = ['rate-limits', 'leaderboards'].includes(profile);
    assert.deepEqual(
      results.counters.map(({ side, server }) => `${side} ${server}`),
      counted ? ['source source', 'target target', 'proxy source', 'proxy target'] : [],
    );
    for (const { expected, found } of results.counters) assert.equal(found, expected);
  }
});

test('a sweep measures every KeyDB at every point', async (t) => {
  if (!(await needs(t, 'memtier_benchmark', 'keydb'))) return;
  const { code, results, stdout } = await measured([
    '--profile',
    'flags',
    '--server-threads',
    '1,2',
    '--clients',
    '5,10',
    '--pipeline',
    '1,8',
    ...SHORT,
  ]);
  assert.equal(code, 0);
  assert.deepEqual(
    results.sides.map(({ id, title }) => `${id} ${title.split(', ')[1]}`),
    ['source io-threads 1', 'target/1 server-threads 1', 'target/2 server-threads 2'],
  );
  assert.equal(results.samples.length, 3 * 4);
  assert.match(
    stdout.replaceAll('\n', ' '),
    /Is KeyDB \S+ with server-threads 2 faster than Redis \S+ for flags at 10 connections, pipeline 8,/,
  );
});

test('redis-benchmark measures the one command that the profile names, and its increments are found', async () => {
  const { code, results, stdout } = await measured([
    '--profile',
    'rate-limits',
    '--driver',
    'redis-benchmark',
    '--against',
    'source',
    ...SHORT,
  ]);
  assert.equal(code, 0);
  assert.equal(results.samples[0].histogram, null);
  assert.ok(results.counters[0].expected > 20_000 && results.counters[0].expected === results.counters[0].found);
  assert.match(stdout, /measured with redis-benchmark: one command/);
});

test('two load hosts with one timetable become one report', async (t) => {
  if (!(await needs(t, 'memtier_benchmark', 'keydb'))) return;
  await withServers(async ({ source, target }) => {
    const at = new Date(Date.now() + 15_000).toISOString();
    const args = [
      '--profile',
      'rate-limits',
      '--source',
      source.url,
      '--target',
      target.url,
      '--start-at',
      at,
      '--clients',
      '10',
      '--rounds',
      '2',
      '--seconds',
      '3',
      '--warm-up',
      '1',
    ];
    const hosts = await Promise.all([measured(args), measured(args)]);
    for (const { code, stderr } of hosts) assert.equal(code, 0, stderr);
    const out = newFolder();
    const { code, stderr } = await loadtest(['merge', ...hosts.map((host) => host.out), '--out', out]);
    assert.equal(code, 0, stderr);
    const merged = readResults(out);
    const each = hosts.map(({ results }) => results.samples[0]);
    assert.equal(
      merge([merged.samples[0].histogram!])!.totalCount,
      each.reduce((sum, { histogram }) => sum + merge([histogram!])!.totalCount, 0),
    );
    assert.equal(
      merged.counters[0].found,
      hosts.reduce((sum, { results }) => sum + results.counters[0].found, 0),
    );
  });
});

test('a run that is interrupted removes its keys, and says that it was interrupted', async (t) => {
  if (!(await needs(t, 'memtier_benchmark', 'keydb'))) return;
  await withServers(async ({ source }) => {
    const main = fileURLToPath(new URL('../cli/main.js', import.meta.url));
    const child = spawn(
      process.execPath,
      [
        main,
        '--profile',
        'flags',
        '--against',
        'source',
        '--source',
        source.url,
        '--seconds',
        '60',
        '--out',
        newFolder(),
      ],
      { stdio: 'ignore' },
    );
    await withClient(source.port, async (client) => {
      // In the middle of the load, not of the prefill.
      while (!/cmdstat_get:calls=\d{4}/.test(await client.info('commandstats'))) await sleep(20);
      child.kill('SIGINT');
      const [code] = await once(child, 'exit');
      assert.equal(code, 130);
      assert.equal(await client.dbsize(), 0);
    });
  });
});

test('what a killed run left is removed by clean, and nothing else', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  await withServers(async ({ source }) => {
    await withClient(source.port, async (client) => {
      for (const key of ['x:source:1', 'x:source:20000', 'x:source:20001', 'x:1']) await client.set(key, 'v');
      const { code, stderr } = await loadtest([
        'clean',
        '--profile',
        'rate-limits',
        '--prefix',
        'x:',
        '--against',
        'source',
        '--source',
        source.url,
      ]);
      assert.equal(code, 0, stderr);
      assert.deepEqual((await client.keys('*')).sort(), ['x:1', 'x:source:20001']);
    });
  });
});

test('a plan names the servers, with their password', async (t) => {
  if (!(await needs(t, 'memtier_benchmark', 'keydb'))) return;
  const config = { requirepass: 'secret' };
  await withServers(
    async ({ source, target }) => {
      const plan = path.join(newFolder(), 'migration.yaml');
      const url = (port: number): string => `redis://:secret@127.0.0.1:${port}`;
      writeFileSync(
        plan,
        stringify({
          version: 1,
          name: 'p',
          shards: [{ name: 's', listen: 'redis://127.0.0.1:6400', source: url(source.port), target: url(target.port) }],
        }),
      );
      const { code, results, stdout, stderr } = await measured(['--profile', 'flags', '--plan', plan, ...SHORT]);
      assert.equal(code, 0, stderr);
      assert.equal(results.samples.length, 2);
      assert.doesNotMatch(`${stdout}${stderr}${JSON.stringify(results)}`, /secret/);
    },
    { source: { config }, target: { config } },
  );
});
