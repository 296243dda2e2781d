/**
 * What the programs say of wrong usage, and their exit codes.
 *
 * Needs real processes: exit codes, help and errors of both programs.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { join } from 'node:path';
import { duration, percentage } from '../../../src/cli/exit.js';
import { scratch } from '../../support/plans.js';
import { runCommand, runProgram } from './process.js';

const SERVERS = ['--source', 'redis://127.0.0.1:1', '--target', 'redis://127.0.0.1:2'];

describe('wrong usage exits with 2, names the option and says what is allowed:', () => {
  const programs: [program: 'shadow-compare' | 'shadow-proxy', args: string[], expected: RegExp][] = [
    ['shadow-compare', ['run'], /required option '--source <url>' not specified\nSee shadow-compare run --help/],
    [
      'shadow-compare',
      ['run', ...SERVERS, '--for', '60'],
      /option '--for <duration>' argument '60' is invalid\. Give a number with a unit, such as 500ms, 60s/,
    ],
    [
      'shadow-compare',
      ['run', ...SERVERS, '--stage', 'shadwo'],
      /'--stage <stage>' argument 'shadwo' is invalid\. Allowed choices are off, dualwrite, shadow/,
    ],
    ['shadow-compare', ['run', ...SERVERS, '--sorce', 'x'], /unknown option '--sorce'\n\(Did you mean --source\?\)/],
    [
      'shadow-compare',
      ['run', '--source', 'redis://u:hunter2@h:1x', '--target', 'redis://h'],
      /^shadow-compare run: --source has an invalid host: write host:port/,
    ],
    ['shadow-compare', ['run', '--source', 'redis://h', '--target', 'redis://h'], /--target is the source itself/],
    [
      'shadow-compare',
      ['run', ...SERVERS, '--listen', '6400'],
      /'--listen <address>' argument '6400' is invalid\. Give an address, such as 127\.0\.0\.1:6400/,
    ],
    [
      'shadow-compare',
      ['run', '--source', 'rediss://h', '--target', 'redis://g', '--ca', '/nowhere/ca'],
      /--ca is \/nowhere\/ca, which cannot be read/,
    ],
    ['shadow-compare', ['rum'], /unknown command 'rum'\n\(Did you mean run\?\)/],
    [
      'shadow-compare',
      ['promote', 'sessions', '--to', 'lives'],
      /option '--to <stage>' argument 'lives' is invalid\. Allowed choices are off/,
    ],
    ['shadow-compare', ['promote', 'sessions', '--percent', '500'], /Give a number from 0 to 100/],
    ['shadow-compare', ['stage', 'sessions', 'live'], /unknown command 'stage'/],
    [
      'shadow-compare',
      ['status', '--token-file', '/nowhere/token'],
      /--token-file \/nowhere\/token cannot be read \(ENOENT\)/,
    ],
    ['shadow-compare', ['redis://u:hunter2@h'], /unknown command 'redis:\/\/u:\*\*\*@h'/],
    [
      'shadow-compare',
      ['promote', 'sessions', '--to', 'redis://u:hunter2@h'],
      /argument 'redis:\/\/u:\*\*\*@h' is invalid/,
    ],
    [
      'shadow-compare',
      ['status', '--admin', 'http://u:hunter2@127.0.0.1:1'],
      /--admin must not hold a user or password. Write http:\/\/host:port/,
    ],
    ['shadow-compare', ['status', '--admin', 'u:hunter2@h:x'], /--admin must not hold a user or password/],
    ['shadow-compare', ['report', '--format', 'pdf'], /Allowed choices are html, md, json/],
    ['shadow-compare', ['assess'], /^no source is given: add the URL of each source, or --plan$/m],
    ['shadow-compare', ['assess', 'redis://h', '--plan', 'p.yaml'], /give either the URLs of the sources or --plan/],
    ['shadow-compare', ['verify', '--sample', '0'], /'0' is invalid\. Give a number above 0, up to 100/],
    ['shadow-compare', ['status', '--token-file', '/dev/null'], /^--token-file \/dev\/null is empty: give the token/],
    ['shadow-compare', ['status', '--token-file', '/dev/zero'], /\/dev\/zero cannot be read \(TOO_LARGE: over 4 MiB\)/],
    ['shadow-compare', ['status', '--admin', 'ftp://h'], /--admin ftp:\/\/h is not an address: write http:/],
    ['shadow-compare', ['assess', 'http://u:hunter2@h'], /<source> is not the URL of a server: write redis:/],
    [
      'shadow-compare',
      ['assess', 'redis://h', '--requires', 'magic'],
      /Allowed choices are sla, patching, global-datastore, serverless/,
    ],
    ['shadow-compare', ['assess', 'redis://h', '--masters', '7'], /'7' is invalid\. Give a number from 1 to 6/],
    ['shadow-compare', ['assess', 'redis://u:hunter2@h,i', '--layout', 'flat'], /Allowed choices are aligned, even/],
    ['shadow-compare', ['assess', 'redis://u:hunter2@h,i/3'], /<source> has a database: a cluster has only database 0/],
    ['shadow-compare', ['plan', 'init'], /required option '--from <url>' not specified/],
    [
      'shadow-compare',
      ['plan', 'init', '--from', 'redis://h', '--sample', '0'],
      /'--sample <number>' argument '0' is invalid\. Give a whole number of keys/,
    ],
    ['shadow-proxy', [], /required option '--plan <file>' not specified\nSee shadow-proxy --help/],
    ['shadow-proxy', ['--plan', '/nowhere/plan.yaml'], /^\/nowhere\/plan\.yaml: cannot be read \(ENOENT\)/],
  ];
  for (const [program, args, expected] of programs) {
    test(`${program} ${args.join(' ')}`, async (t) => {
      const { code, stdout, stderr } = await (program === 'shadow-proxy'
        ? runProgram(t, program, args)
        : runCommand(...args));
      assert.match(stderr, expected);
      assert.deepEqual([code, stdout], [2, '']);
      assert.doesNotMatch(stderr, /hunter2| {4}at /, 'neither a secret nor a stack');
    });
  }
});

test('--version prints the version of the package', async (t) => {
  const { version } = JSON.parse(readFileSync(new URL('../../../../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  const { code, stdout } = await runProgram(t, 'shadow-compare', ['--version']);
  assert.deepEqual([code, stdout], [0, `${version}\n`]);
});

test('help is no error', async () => {
  const { code, stdout } = await runCommand('run', '--help');
  assert.equal(code, 0);
  assert.match(stdout, /--source <url>/);
});

test('a proxy that does not answer leaves it open', async () => {
  const { code, stderr } = await runCommand('status', '--admin', 'http://127.0.0.1:1');
  assert.equal(code, 3);
  assert.match(stderr, /no proxy answers at http:\/\/127\.0\.0\.1:1\/api\/status .*--admin or --plan/);
});

test('a server that does not answer is named, without a stack', async (t) => {
  const { code, stderr } = await runProgram(t, 'shadow-compare', [
    'run',
    ...SERVERS,
    '--listen',
    '127.0.0.1:0',
    '--for',
    '1s',
    '--log-level',
    'silent',
  ]);
  assert.equal(code, 3);
  assert.match(
    stderr,
    /^shard run cannot start: .*ECONNREFUSED 127\.0\.0\.1:1 \(source redis:\/\/127\.0\.0\.1:1, target .*check that they run/,
  );
  assert.doesNotMatch(stderr, / {4}at /);
});

const PLAN = `version: 1
name: test
shards:
  - { name: a, listen: "redis://127.0.0.1:0", source: "redis://127.0.0.1:1", target: "redis://127.0.0.1:2" }
`;

test('--check says whether a plan is right, and starts nothing', async (t) => {
  const directory = scratch(t, { 'good.yaml': PLAN, 'bad.yaml': `${PLAN}stat: x\n` });
  const good = await runProgram(t, 'shadow-proxy', ['--plan', join(directory, 'good.yaml'), '--check']);
  assert.deepEqual([good.code, good.stdout], [0, 'test: the plan is valid (1 shard, 0 workloads)\n']);
  const bad = await runProgram(t, 'shadow-proxy', ['--plan', join(directory, 'bad.yaml'), '--check']);
  assert.equal(bad.code, 2);
  assert.match(bad.stderr, /bad\.yaml:5:1: stat is not known here: did you mean state\?/);
});

test('the error for a shard that the plan does not have lists the shards that it has', async (t) => {
  const directory = scratch(t, { 'plan.yaml': PLAN });
  const { code, stderr } = await runProgram(t, 'shadow-proxy', [
    '--plan',
    join(directory, 'plan.yaml'),
    '--shard',
    'z',
    '--log-level',
    'silent',
  ]);
  assert.deepEqual([code, stderr], [2, '--shard: there is no shard z in the plan. The shards: a\n']);
});

test('durations and percentages are read with their units', () => {
  assert.deepEqual(['500ms', '60s', '5m', '1h'].map(duration), [500, 60_000, 300_000, 3_600_000]);
  for (const wrong of ['', '0s', '-1s', '1.5s', '60', '1d', 's']) assert.throws(() => duration(wrong), /Give a/, wrong);
  assert.deepEqual(['0', '12.5', '100'].map(percentage), [0, 12.5, 100]);
  for (const wrong of ['', '-1', '100.1', 'x', '1e1']) assert.throws(() => percentage(wrong), /Give a/, wrong);
});
