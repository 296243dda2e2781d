/** Go or no-go: decisions over made-up facts, so that each reason can be had. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceFacts } from '../../../src/assess/instance-facts.js';
import type { Finding, Question } from '../../../src/assess/finding.js';
import { concludeFrom, findingsOf } from '../../../src/assess/findings.js';
import { sizingOf } from '../../../src/assess/sizing.js';
import { facts } from '../../support/instance-facts.js';

const judge = (
  sources: readonly Partial<InstanceFacts>[],
  question: Partial<Question> = {},
): { findings: Finding[]; conclusion: string } => {
  const findings = findingsOf({
    sources: sources.map(facts),
    cluster: null,
    target: null,
    requires: [],
    proxyOps: 60_000,
    ...question,
  });
  return { findings, conclusion: concludeFrom(findings).conclusion };
};
const weights = (findings: readonly Finding[], about: string): string[] =>
  findings.filter((finding) => finding.about === about).map(({ weight }) => weight);

test('what speaks for it: CPU, connections, queueing', () => {
  const busy = judge(Array.from({ length: 12 }, () => ({ cpu: 0.85 })));
  assert.equal(busy.conclusion, 'go');
  assert.match(busy.findings.find(({ about }) => about === 'CPU')!.what, /^12 of 12 instances use over 70 %/);
  assert.deepEqual([judge([{ cpu: 0.71 }]).conclusion, judge([{ cpu: 0.69 }]).conclusion], ['go', 'no-go']);
  for (const reason of [
    { clients: { connected: 8_000, max: 10_000, rejected: 0 } },
    { clients: { connected: 10, max: 10_000, rejected: 3 } },
    { ping: { p50: 0.4, p99: 9, count: 500 } },
  ])
    assert.equal(judge([reason]).conclusion, 'go', JSON.stringify(reason));
  // A host that stutters is no server with a queue.
  assert.equal(judge([{ cpu: 0.01, ping: { p50: 0.4, p99: 9, count: 500 } }]).conclusion, 'no-go');
});

test('options that the target refuses are found by MONITOR, and only by MONITOR', () => {
  const calls = new Map([
    ['expire', 5],
    ['set', 9],
    ['acl|getuser', 1],
    ['command|docs', 2],
  ]);
  const of = (forms: readonly (readonly [string, number])[] | null, commands = 100): Finding[] =>
    judge([{ cpu: 0.9, calls, monitored: forms && { ms: 2_000, commands, forms: new Map(forms) } }]).findings;
  assert.deepEqual(weights(of(null), 'options'), ['note']);
  assert.match(of(null).find(({ about }) => about === 'options')!.what, /expire \(GT, LT, NX, XX\); set \(NX GET\)$/);
  assert.deepEqual(weights(of(null), 'commands'), []);
  const seen = of([
    ['expire NX', 3],
    ['command docs', 1],
  ]);
  assert.deepEqual(weights(seen, 'options'), ['no-go']);
  assert.match(
    seen.find(({ about }) => about === 'options')!.what,
    /: expire NX \(3 calls\); 100 commands seen in 2\.0 s$/,
  );
  assert.deepEqual([weights(of([]), 'options'), weights(of([], 0), 'options')], [['note'], ['unknown']]);
});

test('what speaks against it outweighs what speaks for it', () => {
  for (const [about, reason] of [
    ['memory', { cpu: 0.2, memory: { used: 95, peak: 95, dataset: 90, max: 100, policy: 'allkeys-lru' } }],
    ['modules', { cpu: 0.9, modules: ['search'] }],
    [
      'commands',
      {
        cpu: 0.9,
        calls: new Map([
          ['get', 1],
          ['lmpop', 1_234],
        ]),
      },
    ],
    ['functions', { cpu: 0.9, functions: 2 }],
    ['proxy', { cpu: 0.9, opsPerSecond: 36_001 }],
  ] as const) {
    const { findings, conclusion } = judge([reason]);
    assert.deepEqual([conclusion, weights(findings, about)], ['no-go', ['no-go']], about);
  }
  assert.equal(judge([{ cpu: 0.9 }], { requires: ['sla'] }).conclusion, 'no-go');
  assert.equal(judge([{ cpu: 0.1 }, { cpu: 0.1 }, { cpu: 0.1 }]).findings[0].weight, 'no-go');
  assert.equal(judge([{ cpu: 0.1 }, { cpu: 0.1 }, { cpu: 0.1 }, { cpu: 0.1 }]).findings[0].weight, 'note');
});

test('commands are named with how often they were called, by what the target says of itself', () => {
  const calls = new Map([
    ['lmpop', 1_234],
    ['object|freq', 7],
    ['latency|histogram', 2],
    ['quit', 5],
    ['get', 9],
  ]);
  const { findings } = judge([{ calls }, { calls }]);
  assert.match(
    findings.find(({ about }) => about === 'commands')!.what,
    /: lmpop \(2,468 calls\), latency histogram \(4 calls\)$/,
  );
  const target = facts({ commands: new Set(['get', 'lmpop', 'object', 'client']), isKeydb: true });
  assert.match(
    judge([{ calls }], { target }).findings.find(({ about }) => about === 'commands')!.what,
    /: latency histogram \(2 calls\)$/,
  );
});

test('a server that has run no command on a key for a client does not tell which ones it needs', () => {
  const { findings, conclusion } = judge([
    {
      cpu: 0.5,
      calls: new Map([
        ['info', 9],
        ['client|list', 1],
        ['get', 0],
      ]),
    },
  ]);
  assert.deepEqual([weights(findings, 'commands'), conclusion], [['unknown'], 'unknown']);
  assert.deepEqual(weights(judge([{ cpu: 0.5 }]).findings, 'commands'), []);
});

test('a missing figure is unknown, and decides where nothing else does', () => {
  assert.equal(judge([{ cpu: null }]).conclusion, 'unknown');
  assert.equal(judge([{ cpu: null, modules: ['search'] }]).conclusion, 'no-go');
  assert.equal(judge([{ connections: null }]).conclusion, 'unknown');
});

test('what has to be done first', () => {
  const { findings } = judge(
    [
      {
        clock: { offsetMs: -900, errorMs: 2 },
        replicas: [
          { address: '10.0.0.2:6379', reads: 77 },
          { address: '10.0.0.3:6379', reads: 0 },
          { address: '10.0.0.4:6379', reads: null },
        ],
        connections: [
          { host: '10.1.0.1', name: 'api', library: 'ioredis 5.4.1', user: 'default' },
          { host: '10.1.0.1', name: 'api', library: 'ioredis 5.4.1', user: 'default' },
        ],
        users: 3,
        scansWatched: 4,
        calls: new Map([
          ['scan', 1_200],
          ['swapdb', 3],
          ['get', 5],
        ]),
        settings: new Map([
          ['maxmemory-policy', 'allkeys-lru'],
          ['databases', '64'],
          ['maxclients', '100'],
          ['appendonly', 'yes'],
          ['maxmemory-clients', '5%'],
          ['appenddirname', 'appendonlydir'],
        ]),
      },
    ],
    {
      target: facts({
        isKeydb: true,
        commands: new Set(['get', 'scan', 'client']),
        settings: new Map([
          ['maxmemory-policy', 'noeviction'],
          ['databases', '16'],
          ['maxclients', '10000'],
          ['appendonly', 'no'],
        ]),
      }),
    },
  );
  const first = (about: string): string =>
    findings
      .filter((finding) => finding.about === about && finding.weight === 'first')
      .map(({ what }) => what)
      .join('; ');
  assert.match(first('clocks'), /by -900 ms/);
  assert.match(first('replicas'), /10\.0\.0\.2:6379 .* 77 reads; .*10\.0\.0\.4:6379 .* cannot be queried/);
  assert.match(first('clients'), /2 clients .*: 10\.1\.0\.1 api ioredis 5\.4\.1 \(2\)$/);
  assert.equal(first('users'), '');
  assert.match(first('keyspace-scans'), /^SCAN was called 1,200 times$/);
  assert.match(first('database-swaps'), /^SWAPDB was called 3 times$/);
  assert.equal(
    first('settings'),
    'settings that clients can see differ: databases (source "64", target "16"), maxmemory-policy (source "allkeys-lru", target "noeviction")',
  );
  assert.deepEqual(
    findings.filter(({ about, weight }) => about === 'settings' && weight === 'note').map(({ what }) => what),
    [
      'settings without a counterpart: maxmemory-clients ("5%")',
      'settings that differ, without effect on replies: appendonly (source "yes", target "no")',
    ],
  );
});

test('nodes by memory and by commands, and what they cost', () => {
  const sources = Array.from({ length: 12 }, () =>
    facts({ memory: { used: 2 ** 30, peak: 2 * 2 ** 30, dataset: null, max: null, policy: null } }),
  );
  const sizing = sizingOf(sources, { nodeMemory: 16 * 2 ** 30, nodeOps: 200_000, sourcePrice: 100, targetPrice: 250 });
  assert.deepEqual(
    [sizing.byMemory, sizing.byOps, sizing.nodes, sizing.costNow, sizing.costThen],
    [3, 2, 3, 1200, 750],
  );
  const unmeasured = sizingOf(sources, { nodeMemory: 16 * 2 ** 30, nodeOps: null, sourcePrice: 100, targetPrice: 250 });
  assert.deepEqual([unmeasured.nodes, unmeasured.costThen], [null, null]);
});

test('users that differ have to be made alike first, and no digest of a password is shown', () => {
  const acl = (...lines: string[]): InstanceFacts['acl'] => ({ ...facts({}).acl, lines });
  const open = 'user default on nopass ~* &* +@all';
  const users = (source: InstanceFacts['acl'], target: InstanceFacts['acl'] | null): [string, string][] =>
    judge([{ users: 2, acl: source }], { target: target && facts({ acl: target }) }).findings.flatMap(
      ({ about, weight, what }) =>
        about === 'users' ? [[weight, what.replace(/^\S+: /, '')] as [string, string]] : [],
    );
  assert.deepEqual(users(acl(open, 'user a on #abc ~* &* +@all'), null), [['first', '2 ACL users']]);
  assert.deepEqual(users(acl(open, 'user a on #abc ~* &* +@all'), acl(open, 'user a on #abc ~* &* +@all')), []);
  assert.deepEqual(users(acl('user default on #abc ~* &* +@all'), acl(open)), [
    ['first', 'default needs a password on the source only: any client may log in on the target'],
  ]);
  assert.deepEqual(
    users({ ...acl(), lines: null }, acl(open)).map(([weight]) => weight),
    ['unknown'],
  );
});

test('what KeyDB cannot hold is named and counted: keys of other types, modules in use, hashes whose fields expire', () => {
  const keySample = { keys: 100, largest: [], foreignTypes: new Map([['vectorset', 3]]) };
  const { findings, conclusion } = judge([
    { cpu: 0.9, version: '8.0.2', modules: ['vectorset', 'bf'], keySample, fieldTtls: 12 },
  ]);
  assert.equal(conclusion, 'no-go');
  const relevant = findings.filter(({ about }) => ['types', 'modules', 'field TTLs'].includes(about));
  assert.deepEqual(
    relevant.map(({ weight, what }) => [weight, what.replace(/^.*? (?=has|are|brings)|in a source/g, '')]),
    [
      ['no-go', 'has keys of types that KeyDB does not have: vectorset (3 of 100 sampled keys)'],
      ['no-go', relevant[1].what.replace(/^.*? (?=are)/, '')],
      ['note', relevant[2].what.replace(/^.*? (?=brings)/, '')],
      ['no-go', 'has 12 hashes with fields that have a TTL'],
    ],
  );
  assert.match(relevant[1].what, /: vectorset$/);
  assert.match(relevant[2].what, /: bf; no call/);
});

test('a module that a Redis 8 brings is no reason against it while nobody uses it; an older source is refused', () => {
  assert.deepEqual(weights(judge([{ cpu: 0.9, version: '8.0.2', modules: ['vectorset'] }]).findings, 'modules'), [
    'note',
  ]);
  const calls = new Map([['vadd', 2]]);
  assert.equal(judge([{ cpu: 0.9, version: '8.0.2', modules: ['vectorset'], calls }]).conclusion, 'no-go');
  const valkey = { cpu: 0.9, software: { name: 'valkey', version: '9.1.2' }, modules: ['lua'] } as const;
  assert.deepEqual(weights(judge([valkey]).findings, 'modules'), []);
  assert.deepEqual(weights(judge([{ ...valkey, modules: ['lua', 'search'] }]).findings, 'modules'), ['no-go']);
  assert.deepEqual(weights(judge([{ cpu: 0.9, version: '6.0.16' }]).findings, 'version'), ['no-go']);
  assert.deepEqual(weights(judge([{ cpu: 0.9, version: '6.2.14' }]).findings, 'version'), []);
});

test('calls that the kit itself makes are no reason to change an application: SCAN, COMMAND INFO, ACL GETUSER', () => {
  const calls = new Map([
    ['scan', 12],
    ['command|info', 3],
    ['acl|getuser', 2],
    ['get', 5],
  ]);
  const scans = (changes: Partial<InstanceFacts>): Finding | undefined =>
    judge([{ cpu: 0.9, calls, ...changes }]).findings.find(({ about }) => about === 'keyspace-scans');
  assert.deepEqual(
    judge([{ cpu: 0.9, calls }])
      .findings.filter(({ weight }) => weight === 'first')
      .map(({ what }) => what),
    [],
  );
  assert.match(scans({})!.what, /^SCAN was called 12 times; none while this ran: the kit itself sends SCAN/);
  assert.equal(scans({ scansWatched: 1 })!.weight, 'first');
  assert.equal(scans({ calls: new Map([['keys', 1]]) })!.weight, 'first');
});

test('a source whose payloads this release cannot read is a no-go; one that it can read is work before the start', () => {
  const newer = (rdbVersion: number | null) => ({
    newer: { name: 'Redis 99.0', rdbVersion, evidence: 'Redis 99.0: …' },
  });
  const found = (rdbVersion: number | null) =>
    judge([{ cpu: 0.9, ...newer(rdbVersion) }]).findings.find(({ what }) => /Redis 99/.test(what))!;
  assert.equal(found(4_000).weight, 'no-go');
  assert.match(found(4_000).means, /release of the kit that reads it/);
  for (const readable of [12, null]) {
    assert.equal(found(readable).weight, 'first');
    assert.match(found(readable).means, /promote with --accept-version/);
  }
  const target = judge([{ cpu: 0.9 }], { target: facts(newer(12)) }).findings;
  assert.equal(target.filter(({ what }) => /Redis 99/.test(what)).length, 1);
});
