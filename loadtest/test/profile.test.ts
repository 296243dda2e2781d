/** Profiles of the load test: which are valid, and which keys they may touch. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stringify } from 'yaml';
import { loadArguments } from '../driver/memtier.js';
import { LoadtestError } from '../rig/errors.js';
import { counterOf } from '../workload/command.js';
import { keyNames } from '../workload/keys.js';
import { loadProfile, parseProfile, profileNames } from '../workload/load.js';

const PLAIN = {
  name: 'plain',
  description: 'For tests',
  keys: { count: 10, distribution: 'uniform' },
  value: { bytes: 8 },
  connections: 2,
  prefill: [],
  commands: [{ command: 'GET __key__', ratio: 1 }],
};

const refusal = (change: object): string => {
  try {
    parseProfile(stringify({ ...PLAIN, ...change }), 'plain.yaml');
  } catch (error) {
    assert.ok(error instanceof LoadtestError && error.exitCode === 2, `${String(error)}`);
    return error.message;
  }
  return 'taken';
};

const commands = (...texts: string[]): object => ({ commands: texts.map((command) => ({ command, ratio: 1 })) });

test('every profile of the kit is valid, and there is one for each workload', () => {
  assert.deepEqual(profileNames(), ['auth', 'cache', 'flags', 'leaderboards', 'rate-limits', 'sessions']);
  for (const name of profileNames()) assert.equal(loadProfile(name).name, name);
});

test('a profile that is not there is named with those that are', () => {
  assert.throws(() => loadProfile('session'), /--profile session: there is auth, cache/);
  assert.throws(() => loadProfile('./nosuch.yaml'), /nosuch\.yaml cannot be read/);
});

test('no command of a profile can touch a key outside the prefix of its run', () => {
  assert.match(refusal(commands('SET session:1 __data__')), /commands\.0\.command: would touch the key "session:1"/);
  assert.match(refusal(commands('MGET __key__ other')), /would touch the key "other"/);
  assert.match(refusal(commands('ZUNIONSTORE __key__ 2 __prefix__a b')), /would touch the key "b"/);
  assert.match(refusal(commands('FLUSHALL')), /FLUSHALL names no keys here/);
  assert.match(refusal({ prefill: ['CONFIG SET maxmemory 1'] }), /prefill\.0: CONFIG names no keys/);
  assert.match(refusal({ fallback: 'DEL a' }), /fallback: would touch the key "a"/);
  assert.match(refusal(commands('EVAL return 0')), /names no keys/);
  assert.equal(refusal(commands('ZADD __prefix__board 1 __key__')), 'taken');
});

test('commands that only one server knows, duplicates and misspelt commands are refused, with their place in the profile', () => {
  assert.match(refusal(commands('EXPIRETIME __key__')), /known to Redis alone/);
  assert.match(refusal(commands('GETT __key__')), /GETT is no command/);
  assert.match(refusal(commands('GET __key__', 'get __key__')), /commands\.1: GET is there twice/);
  assert.match(refusal(commands('SET __key__ 1 EX __expiry__')), /has __expiry__, but the profile gives no expiry/);
  assert.match(refusal(commands('INCRBY __key__ __data__')), /counts by no whole number/);
  assert.match(refusal({ pipelines: 2 }), /pipelines/);
  assert.match(refusal({ threads: 2, connections: 3 }), /connections: must be a multiple of threads \(2\)/);
});

test('what a command adds to which counter is read from it', () => {
  assert.deepEqual(counterOf('INCR __key__'), { amount: 1, in: 'string', key: '__key__' });
  assert.deepEqual(counterOf('decrby __key__ 3'), { amount: -3, in: 'string', key: '__key__' });
  assert.deepEqual(counterOf('HINCRBY __key__ n 2'), { amount: 2, in: 'hash', key: '__key__', field: 'n' });
  assert.deepEqual(counterOf('ZINCRBY __prefix__b 5 __key__'), { amount: 5, in: 'zset', key: '__prefix__b' });
  assert.equal(counterOf('GET __key__'), null);
});

test('the keys to remove are those that the commands name, and no others', () => {
  const naming = (prefix: string, i: number): string => `${prefix}${i}`;
  const board = parseProfile(stringify({ ...PLAIN, ...commands('ZINCRBY __prefix__board 1 __key__') }), 'board.yaml');
  assert.deepEqual(keyNames(board, 'p:', naming), ['p:board']);
  const plain = parseProfile(stringify(PLAIN), 'plain.yaml');
  assert.deepEqual(
    keyNames(plain, 'p:', naming),
    Array.from({ length: 10 }, (_, i) => `p:${i + 1}`),
  );
});

test('a profile becomes the arguments of memtier_benchmark', () => {
  const profile = loadProfile('sessions');
  const args = loadArguments({ profile, prefix: 'p:', connections: 20, pipeline: 3, seconds: 7, rate: 1000 });
  for (const wanted of [
    '--clients=20',
    '--pipeline=3',
    '--test-time=7',
    '--key-prefix=p:',
    '--key-maximum=100000',
    '--key-zipf-exp=0.9',
    '--rate-limiting=50',
    '--command=SET __key__ __data__ EX 1800',
    '--data-size-list=400:6,1200:3,4000:1',
  ]) {
    assert.ok(args.includes(wanted), `${wanted} is not in ${args.join(' ')}`);
  }
});
