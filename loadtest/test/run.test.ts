/**
 * The runner against real servers: what it leaves on them, what it refuses, what it says.
 *
 * Needs real servers: a load test against Redis and KeyDB, and the keys that it leaves.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { stringify } from 'yaml';
import { withServers } from '../../shadow-proxy/test/support/servers.js';
import { refuseExpiring } from '../rounds/run.js';
import { refuseUnconfirmed } from '../sides/given.js';
import { loadProfile } from '../workload/load.js';
import { loadtest, measured, newFolder, withClient } from './cli.js';
import { needs } from '../../shadow-proxy/test/support/needs.js';

/** All that the kit's rate-limits has, and a hash and a sorted set, with few keys. */
function smallProfile(): string {
  const file = path.join(newFolder(), 'small.yaml');
  const commands = ['INCR __key__', 'HINCRBY __prefix__h n 2', 'ZINCRBY __prefix__z 5 __key__', 'GET __key__'].map(
    (command) => ({ command, ratio: 1 }),
  );
  const rest = {
    description: 'For tests',
    value: { bytes: 8 },
    connections: 4,
    pipeline: 2,
    prefill: ['INCRBY __key__ 7'],
    commands,
  };
  writeFileSync(file, stringify({ name: 'small', keys: { count: 50, distribution: 'zipf', exponent: 1 }, ...rest }));
  return file;
}

test('given servers are measured in turns, every increment is found, and afterwards they hold what they held before', async (t) => {
  if (!(await needs(t, 'memtier_benchmark', 'keydb'))) return;
  await withServers(async ({ source, target }) => {
    const keys = (port: number): Promise<string[]> => withClient(port, (client) => client.keys('*'));
    for (const { port } of [source, target])
      await withClient(port, (client) => client.set('loadtest:of-somebody-else', 'kept'));
    const args = [
      '--profile',
      smallProfile(),
      '--source',
      source.url,
      '--target',
      target.url,
      '--rounds',
      '2',
      '--seconds',
      '1',
      '--warm-up',
      '0',
    ];
    const { code, results, stdout, stderr, out } = await measured(args);
    assert.equal(code, 0, stderr);
    for (const { port } of [source, target]) assert.deepEqual(await keys(port), ['loadtest:of-somebody-else']);

    assert.deepEqual(
      results.counters.map(({ side }) => side),
      ['source', 'target'],
    );
    for (const { expected, found } of results.counters)
      assert.ok(expected > 50 * 7 && expected === found, `${expected} ${found}`);
    assert.deepEqual(
      results.samples.map(({ side, round }) => `${side} ${round}`),
      ['source 0', 'target 0', 'target 1', 'source 1'],
    );
    const rounds = [...stderr.matchAll(/^round (\d+)\/(\d+), (\w+): [\d,]+ commands\/s$/gm)];
    assert.deepEqual(
      rounds.map(([, round, of, side]) => `${side} ${round} of ${of}`),
      ['source 1 of 2', 'target 1 of 2', 'target 2 of 2', 'source 2 of 2'],
    );
    for (const sample of results.samples) {
      assert.equal(
        Object.values(sample.counts).reduce((a, b) => a + b, 0),
        sample.operations,
      );
      assert.ok(sample.work[sample.side] > 0 && sample.series.length > 0 && sample.histogram !== null);
    }
    assert.match(
      stdout,
      /Inconclusive: (\d+\.\d\d times the throughput by the median of 2 rounds|the machine was contended)/,
    );
    assert.match(readFileSync(path.join(out, 'report.md'), 'utf8'), /- rounds: 2 for each side, 1 s each, in turns/);
    assert.match(readFileSync(path.join(out, 'report.md'), 'utf8'), /KeyDB 6\S*, server-threads 2, redis:/);
    const page = readFileSync(path.join(out, 'report.html'), 'utf8');
    assert.match(page, /<plot-view/);
    assert.doesNotMatch(page, /(src|href)="http/);
  });
});

test('a server that is not loopback is loaded only if its host is confirmed by name', async (t) => {
  if (!(await needs(t, 'memtier_benchmark'))) return;
  const at = (host: string) => ({ host, port: 1, db: 0, username: null, password: null, tls: null });
  assert.throws(
    () => refuseUnconfirmed([at('127.0.0.1'), at('10.0.0.1')], ['10.0.0.2']),
    /10\.0\.0\.1 is not on loopback[^]*add --confirm 10\.0\.0\.1$/,
  );
  refuseUnconfirmed([at('127.0.0.1'), at('localhost'), at('::1'), at('10.0.0.1')], ['10.0.0.1']);
  const { code, stderr } = await loadtest([
    '--profile',
    'flags',
    '--against',
    'source',
    '--source',
    'redis://u:secret@192.0.2.1:6379',
  ]);
  assert.equal(code, 2);
  assert.match(stderr, /192\.0\.2\.1 is not on loopback/);
  assert.doesNotMatch(stderr, /secret/);
});

test('counters that would expire before they are summed up are refused', () => {
  const turns = Array.from({ length: 22 }, () => ({ seconds: 200 }));
  assert.throws(
    () => refuseExpiring(loadProfile('rate-limits'), turns),
    /counters expire after 3600 s, but this run takes up to 4586 s/,
  );
  refuseExpiring(loadProfile('sessions'), turns);
});

test('without memtier_benchmark, the error says how to install it and what can be measured without it', async () => {
  const env = { ...process.env, PATH: '/nonexistent' };
  const { code, stderr } = await loadtest(['--profile', 'rate-limits'], env);
  assert.equal(code, 3);
  assert.match(
    stderr,
    /memtier_benchmark is not on the PATH[^]*apt install[^]*--driver redis-benchmark measures one command of this profile \(INCR __key__\)/,
  );
  const mixed = await loadtest(['--profile', 'cache'], env);
  assert.doesNotMatch(mixed.stderr, /--driver redis-benchmark/);
});

test('wrong usage exits with code 2 and names the allowed values; a server that does not answer gives exit code 3', async (t) => {
  if (!(await needs(t, 'memtier_benchmark'))) return;
  const wrong: [string[], RegExp][] = [
    [['--profile', 'flags', '--against', 'both'], /"both" is none of source, target, proxy/],
    [['--profile', 'flags', '--rounds', '-1'], /--rounds/],
    [['--profile', 'auth', '--against', 'source', '--source', 'redis://127.0.0.1:1'], /127\.0\.0\.1:1 does not answer/],
    [['--profile', 'flags', '--start-at', '2020-01-01T00:00:00Z'], /--start-at is over/],
    [['--profile', 'cache', '--driver', 'redis-benchmark'], /mixes commands and names no fallback/],
    [
      ['soak', '--profile', 'flags', '--against', 'source', '--restart', 'target'],
      /--restart target does not touch --against source/,
    ],
    [['report', '/nonexistent'], /results\.json cannot be read/],
  ];
  const all = await Promise.all(wrong.map(([args]) => loadtest(args)));
  for (const [i, { code, stderr }] of all.entries()) {
    const [args, message] = wrong[i];
    assert.match(stderr, message);
    assert.equal(code, args.includes('redis://127.0.0.1:1') ? 3 : 2, stderr);
  }
});
