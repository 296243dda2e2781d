/** From sampled keys to workloads: what belongs together, what it is for, and in which order a plan has it. */
// cspell:ignore sess joblock
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SampledKey } from '../../../../src/assess/key-sample.js';
import { Sample } from '../../../../src/assess/monitor.js';
import { compose, type Draft } from '../../../../src/assess/workloads/draft-plan.js';
import { Families, patternOf, type Family } from '../../../../src/assess/workloads/family.js';
import { kindOf } from '../../../../src/assess/workloads/kinds.js';
import { propose } from '../../../../src/assess/workloads/propose.js';
import { planFrom } from '../../../../src/plan/load.js';
import { compileGlob } from '../../../../src/route/glob.js';
import { parse } from 'yaml';

interface Keys extends Partial<Omit<SampledKey, 'name'>> {
  /** `#` stands for a number. */
  readonly name: string;
  readonly times?: number;
}

function familiesOf(keys: readonly Keys[], lines: readonly string[] = []): Families {
  const families = new Families({ bytes: 1 << 20, elements: 10_000 });
  for (const { name, times = 1, ...rest } of keys)
    for (let i = 0; i < times; i++)
      families.add({
        db: 0,
        type: 'string',
        encoding: 'embstr',
        bytes: 100,
        elements: null,
        ttlMs: null,
        ...rest,
        name: Buffer.from(name.replaceAll('#', String(i))),
      });
  const sample = new Sample((sighting) => families.see(sighting));
  for (const line of lines) sample.add(`+1700000000.123456 [0 10.0.0.1:5000] ${line}`);
  return families;
}

const seen = (command: string, times: number): string[] => Array.from({ length: times }, () => command);

test('a pattern is what a name begins with, a hash tag apart, and it matches its keys', () => {
  const patterns: Record<string, string> = {
    'session:17': 'session:*',
    'rl:user:17:minute': 'rl:user:*',
    config: 'config',
    '17': '*',
    '{user:17}:cart': '{user:*}:cart',
    '{17}:cart': '{*}:cart',
    '{17}:cart:items:9': '{*}:cart:items:*',
    '{cart}:17': '{cart}:*',
    '{user1}': '{user*}',
    '{}x:1': '*',
  };
  for (const [key, pattern] of Object.entries(patterns)) {
    assert.equal(patternOf(key), pattern, key);
    assert.ok(compileGlob(pattern)(Buffer.from(key), 0, key.length), `${pattern} matches ${key}`);
  }
});

test('what keys are for is judged by their types, TTLs and names where MONITOR did not run', () => {
  const kind = (key: Omit<Keys, 'name' | 'times'>, name = 'x:#', calls: readonly string[] = []): string => {
    const [family] = familiesOf([{ name, times: 50, ...key }]).all;
    const { name: what, class: as } = kindOf(family, new Map(calls.map((each) => [each, 9])));
    return `${what} (${as})`;
  };
  assert.equal(kind({ encoding: 'int' }, 'hits:#', ['incr']), 'counter (counter)');
  assert.equal(kind({ encoding: 'int' }, 'hits:#'), 'kept (critical)', 'numbers alone are no counters');
  assert.equal(kind({ type: 'zset' }), 'leaderboard (leaderboard)');
  assert.equal(kind({ type: 'zset', ttlMs: 5_000 }, 'rl:#', ['zremrangebyscore']), 'rate limit (counter)');
  assert.equal(kind({ type: 'zset', ttlMs: 5_000 }), 'leaderboard (leaderboard)');
  assert.equal(kind({ type: 'list' }), 'queue (critical)');
  assert.equal(kind({ type: 'stream' }), 'stream (critical)');
  assert.equal(kind({ type: 'hash', ttlMs: 1_000 }, 'sess:#'), 'session (read-mostly)');
  assert.equal(kind({ type: 'hash', ttlMs: 1_000 }), 'cache (read-mostly)');
  assert.equal(kind({ type: 'set', ttlMs: 1_000 }), 'expiring (general)');
  assert.equal(kind({ type: 'hash' }), 'kept (critical)');
});

test('keys that must not be lost are critical by a word of their name, whatever their types and TTLs', () => {
  const kinds: Record<string, readonly string[]> = {
    lock: ['lock:#', 'app:order_lock:#', 'orderLock:#', 'joblock:#', 'mutex:#', 'lease:#', 'semaphore:#', '{leader:#}'],
    'idempotency key': ['idempotency:#', 'idem:#', 'dedupe:#', 'nonce:#', 'processed:#'],
    'one-time code': ['otp:#', 'csrf:#', 'verification:#'],
    access: ['auth:#', 'oauth:#', 'token:#', 'user:permissions:#', 'revoked:#', 'denylist:#'],
    flag: ['flag:#', 'feature-flags', 'settings:#', 'config:#'],
    queue: ['queue:#', 'bull:mail:#', 'celery', 'outbox:#'],
    purchase: ['cart:#', 'order:#', 'payment:#', 'wallet:#', 'stock:#'],
    session: ['session:#', 'sess:#', 'user:sessions:#'],
    cache: ['cache:#', 'clock:#', 'block:#', 'author:#', 'page:#', 'configurator:#'],
  };
  for (const [kind, names] of Object.entries(kinds))
    for (const name of names) {
      const [family] = familiesOf([{ name, times: 50, ttlMs: 30_000 }]).all;
      const guess = kindOf(family, new Map());
      const readMostly = kind === 'session' || kind === 'cache';
      assert.deepEqual([guess.name, guess.class], [kind, readMostly ? 'read-mostly' : 'critical'], name);
    }
  const [semaphore] = familiesOf([{ name: 'semaphore:#', times: 50, type: 'zset', ttlMs: 30_000 }]).all;
  assert.equal(kindOf(semaphore, new Map([['zremrangebyscore', 9]])).class, 'critical');
});

test('keys that clients set only where there is none are critical without a name that says so, however few', () => {
  const kind = (lines: readonly string[]): string => {
    const [family] = familiesOf([{ name: 'x:#', times: 50, ttlMs: 1_000 }], lines).all;
    const { name, class: as } = kindOf(family, new Map());
    return `${name} ${as}`;
  };
  for (const command of [
    '"SETNX" "x:1" "v"',
    '"SET" "x:1" "v" "NX" "PX" "30000"',
    '"set" "x:1" "v" "EX" "30" "nx"',
    '"SET" "x:1" "v" "NX"',
  ])
    for (const times of [1, 30]) assert.equal(kind(seen(command, times)), 'lock critical', command);
  assert.equal(kind(seen('"SET" "x:1" "NX" "EX" "30"', 30)), 'written often general', 'a value is no option');
  assert.equal(
    kind([...seen('"SET" "x:1" "0" "EX" "60" "NX"', 15), ...seen('"INCR" "x:1"', 15)]),
    'counter counter',
    'a window of a rate limit begins so',
  );
  assert.equal(kind([...seen('"GET" "x:1"', 95), ...seen('"SET" "x:1" "v" "EX" "9" "NX"', 5)]), 'cache read-mostly');
});

test('what MONITOR showed goes before what the types say', () => {
  const kind = (lines: readonly string[], key: Omit<Keys, 'name'> = {}): string => {
    const [family] = familiesOf([{ name: 'x:#', times: 50, ...key }], lines).all;
    return kindOf(family, new Map([['incr', 9]])).name;
  };
  const [get, incr, set] = ['"GET" "x:1"', '"INCR" "x:1"', '"SET" "x:1" "v"'];
  assert.equal(kind([...seen(get, 80), ...seen(incr, 20)]), 'counter');
  assert.equal(kind(seen(get, 40), { encoding: 'int' }), 'read often', 'numbers that nobody increments');
  assert.equal(kind(seen(get, 5), { encoding: 'int' }), 'counter', 'too few commands to say');
  assert.equal(kind([...seen(set, 30), ...seen(get, 10)], { ttlMs: 1_000 }), 'written often');
  assert.equal(kind([...seen(set, 10), ...seen(get, 30)], { ttlMs: 1_000 }), 'cache');
  const renewed = ['"HGETALL" "x:1"', '"EXPIRE" "x:1" "60"', '"GETEX" "x:1" "EX" "60"'];
  assert.equal(kind([...renewed.flatMap((each) => seen(each, 20)), ...seen(set, 5)], { ttlMs: 1_000 }), 'cache');
  const window = ['"ZADD" "x:1" "1" "a"', '"ZREMRANGEBYSCORE" "x:1" "0" "1"', '"ZCARD" "x:1"'];
  assert.equal(
    kind(
      window.flatMap((each) => seen(each, 10)),
      { type: 'zset' },
    ),
    'rate limit',
  );
  assert.equal(kind(seen('"ZADD" "x:1" "1" "a"', 30), { type: 'zset' }), 'leaderboard');
});

test('what scripts do is seen, and EVAL itself says nothing', () => {
  const families = new Families({ bytes: 1, elements: 1 });
  const sample = new Sample((sighting) => families.see(sighting));
  sample.add('+1700000000.1 [0 10.0.0.1:5000] "EVAL" "return redis.call(\'incr\', KEYS[1])" "1" "rl:1"');
  sample.add('+1700000000.2 [0 lua] "incr" "rl:1"');
  assert.deepEqual(
    families.all.map(({ pattern, commands }) => [pattern, [...commands]]),
    [['rl:*', [['incr', 1]]]],
  );
});

const names = (families: readonly Family[], channels: readonly string[] = []): string[] =>
  propose(families, channels, new Map([['incr', 5]])).workloads.map(
    ({ name, family, kind, channels: its }) =>
      `${name} ${family.pattern} ${kind.class}${its.length > 0 ? ` + ${its.join(' ')}` : ''}`,
  );

test('families that are alike and begin alike are one workload; others stay apart, the narrower first', () => {
  assert.deepEqual(
    names(
      familiesOf([
        { name: 'cache:user:#', times: 50, ttlMs: 1_000 },
        { name: 'cache:page:#', times: 50, ttlMs: 1_000 },
        { name: 'rl:#', times: 50, ttlMs: 1_000 },
        { name: 'rl:user:#', times: 50, encoding: 'int' },
        { name: 'board:#', times: 50, type: 'zset' },
        { name: 'job:#', times: 50, type: 'list' },
      ]).all,
    ),
    [
      'cache cache:* read-mostly',
      'rl-user rl:user:* counter',
      'rl rl:* read-mostly',
      'board board:* leaderboard',
      'job job:* critical',
    ],
  );
});

test('names that differ in a word alone are one family', () => {
  const keys = ['user_alice', 'user_bob', 'user_carol', 'feature-flags'].map((name) => ({ name, times: 2 }));
  assert.deepEqual(names(familiesOf(keys).all), ['user user_* critical', 'feature-flags feature-flags critical']);
});

test('small families, and keys whose name says nothing, are left to default', () => {
  const { workloads, uncovered } = propose(
    familiesOf([
      { name: 'cache:#', times: 5_000, ttlMs: 1 },
      { name: '#', times: 30 },
      { name: 'odd:#', times: 2 },
      { name: 'rare:#', times: 1, type: 'hash', elements: 20_000 },
    ]).all,
    [],
    new Map(),
  );
  assert.deepEqual(
    workloads.map(({ name }) => name),
    ['cache', 'rare'],
    'what is large is named, however rare',
  );
  assert.deepEqual(
    uncovered.map(({ pattern, keys }) => [pattern, keys]),
    [
      ['*', 30],
      ['odd:*', 2],
    ],
  );
});

test('a small family that matters is a workload, and what was not looked at is said', () => {
  const observed = (keys: readonly Keys[], lines: readonly string[] = []): string[] => {
    const { workloads } = propose(familiesOf(keys, lines).all, [], new Map());
    return workloads.map(({ name, kind }) => `${name} ${kind.name}`);
  };
  const cache = { name: 'cache:#', times: 5_000, ttlMs: 1 };
  assert.deepEqual(
    observed([cache, { name: 'lock:job:#', ttlMs: 9 }, { name: 'flag:#', times: 2 }, { name: 'odd:#' }]),
    ['cache cache', 'flag flag', 'lock-job lock'],
  );
  assert.deepEqual(observed([cache, { name: 'x:#' }], ['"SET" "x:1" "token" "PX" "9000" "NX"']), [
    'cache cache',
    'x lock',
  ]);
  const invented = [...'abcdefghijklmnopqrstuvwxyz'].map((letter) => ({ name: `q${letter}lock:#` }));
  const many = observed([cache, ...invented]);
  assert.deepEqual([many.length, many[0]], [9, 'cache cache'], 'names that clients invent do not take all the room');

  const text = (changes: Partial<Draft>): string => compose(draft(changes)).replaceAll('\n# ', ' ');
  assert.match(
    text({ monitored: 'MONITOR was not run' }),
    /900 keys were not sampled: prefixes of few keys may be missing \(--sample 1000 reads all\)\. No lock was found, and locks exist only while they are held: --monitor 10s shows them/,
  );
  assert.match(
    text({ sampled: 1_000 }),
    /No lock was found, and locks exist only while they are held\. Ask the owners/,
  );
  const lock = propose(familiesOf([{ name: 'lock:#' }]).all, [], new Map());
  assert.doesNotMatch(text({ sampled: 1_000, proposal: lock }), /Ask the owners/);
});

test('channels go to the workload whose name begins alike, and the others are named', () => {
  const { workloads, channels } = propose(
    familiesOf([{ name: 'flag:#', times: 9 }]).all,
    ['flag.*', 'news.*'],
    new Map(),
  );
  assert.deepEqual([workloads[0].channels, channels], [['flag.*'], ['news.*']]);
});

test('there is room for 24 workloads, and each has its own name', () => {
  const letters = [...'abcdefghijklmnopqrstuvwxyz'];
  const { workloads, uncovered } = propose(
    familiesOf([
      ...letters.map((letter, i) => ({ name: `w${letter}:#`, times: 100 + i })),
      { name: 'x.a:#', times: 500 },
      { name: 'x/a:#', times: 400, type: 'list' },
    ]).all,
    [],
    new Map(),
  );
  assert.equal(workloads.length, 24);
  assert.equal(new Set(workloads.map(({ name }) => name)).size, 24);
  assert.deepEqual(
    uncovered.map(({ pattern }) => pattern),
    ['wd:*', 'wc:*', 'wb:*', 'wa:*'],
  );
});

const draft = (changes: Partial<Draft> = {}): Draft => ({
  name: 'cache',
  servers: {
    shards: [{ name: 'cache-0', listen: 'redis://127.0.0.1:1', source: 'redis://a:1', target: 'redis://b:1' }],
  },
  origin: 'redis://a:1 (Redis 7.0.15)',
  readAt: new Date(0),
  keys: 1_000,
  sampled: 100,
  monitored: { ms: 2_000, commands: 50 },
  proposal: propose([], [], new Map()),
  notes: ['scripts ran 5 times: read docs/.'],
  serverNotes: ['Replace b.'],
  file: 'migration.yaml',
  ...changes,
});

test('the text is a plan, says why each workload is there, and fits 80 columns', () => {
  const lines = seen('"HGETALL" "session:1"', 45).concat(seen('"HSET" "session:1" "a" "b"', 5));
  const families = familiesOf(
    [
      { name: 'session:#', times: 80, type: 'hash', ttlMs: 90_000 },
      { name: 'session:#', times: 10, type: 'hash', bytes: 3 << 20, elements: 12_345 },
      { name: '#', times: 10 },
    ],
    lines,
  );
  const text = compose(draft({ proposal: propose(families.all, ['news.*'], new Map()) }));
  const plan = planFrom(parse(text), 'test', { directory: '/', env: {} });
  assert.deepEqual(
    plan.workloads.map(({ name, keys, class: as, stage }) => [name, keys, as, stage]),
    [['session', ['session:*'], 'read-mostly', 'off']],
  );
  const flat = text.replace(/\n *# /g, ' ');
  assert.match(flat, /100 of 1,000 keys were sampled \(10 %\)\. MONITOR ran for 2 s and showed 50 commands\./);
  assert.match(
    flat,
    /Week 2: .* Guess: session, so class read-mostly\. Sessions: strings or hashes with a TTL, by their name\./,
  );
  assert.match(
    flat,
    /90 keys of the sample \(90 %, about 900 in all\): 90 hash; a TTL on 89 %, the median 1 min 30 s from expiring; /,
  );
  assert.match(flat, /MONITOR: 90 % reads; 45 hgetall, 5 hset\./);
  assert.match(flat, /Large: 10 keys of the sample, the largest a hash \(3,072 KiB, 12,345 elements\)\./);
  assert.match(
    flat,
    /Keys that no workload names: 10 % of the sample: \* \(10\)\. .* they stay on Redis, and are not copied\./,
  );
  assert.match(flat, /Channels without a workload: news\.\*\./);
  assert.match(flat, /Replace b\./);
  assert.deepEqual(
    text.split('\n').filter((line) => line.length > 80),
    [],
  );
});

test('a source without keys gives a plan without workloads', () => {
  const text = compose(draft({ keys: 0, sampled: 0, monitored: 'MONITOR was not run.' }));
  assert.deepEqual(planFrom(parse(text), 'test', { directory: '/', env: {} }).workloads, []);
});
