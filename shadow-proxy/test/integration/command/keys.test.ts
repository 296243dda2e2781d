/**
 * Where keys are and what happens to them, judged by the server: `COMMAND GETKEYS` and `COMMAND GETKEYSANDFLAGS`.
 *
 * Needs real servers: COMMAND GETKEYS and GETKEYSANDFLAGS, for each command.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { arityHolds, MALFORMED, READS, UNKNOWN_KEYS, WRITES } from '../../../src/command/keys.js';
import { RELEASES } from '../../../src/command/releases.js';
import { CommandTable, type CommandSpec } from '../../../src/command/table.js';
import { startRedis, type LocalServer } from '../../../src/local/servers.js';
import { EVERY_COMMAND, withServers } from '../../support/servers.js';
import { find, keys, reportedKeys } from '../../support/command-frames.js';
import { missing, needs } from '../../support/needs.js';

const BOTH = READS | WRITES;
/** A call that blocks, which none should, is an error that no server gives. */
const PATIENT = { commandTimeout: 3000 };
const REFUSED = { message: /^(ERR|NOSCRIPT|WRONGTYPE)/ };
const table = new CommandTable();
/** Of `GETKEYSANDFLAGS`, which says what happens to the keys. */
const skip = await missing('redis>=7.0');
let server: LocalServer;
let redis: Redis;
before(async () => {
  server = await startRedis();
  redis = new Redis(server.url, PATIENT);
});
after(async () => {
  redis.disconnect();
  await server.stop();
});

type ServerKeys = readonly (readonly [key: string, flags: readonly string[]])[];

/** What the server says; an error, which it gives for a command without keys too, is none. */
async function askServer(args: readonly string[]): Promise<ServerKeys> {
  return (await redis.call('COMMAND', ['GETKEYSANDFLAGS', ...args]).catch(noKeys)) as ServerKeys;
}

const askNames = async (client: Redis, args: readonly string[]): Promise<readonly string[]> =>
  (await client.call('COMMAND', ['GETKEYS', ...args]).catch(noKeys)) as readonly string[];

function noKeys(error: Error): readonly never[] {
  // The last: it wants two words at the least.
  assert.match(
    error.message,
    /no key arguments|Invalid (number of )?arguments specified|number of arguments for '(command\|)?getkeys/,
  );
  return [];
}

/** The access that the server's flags mean; an insert depends on what is there. */
function accessOf(flags: readonly string[]): number {
  if (flags.includes('RO')) return READS;
  return flags.includes('RW') || flags.includes('insert') ? BOTH : WRITES;
}

/** Where the table deliberately says something else than the server; `args` in lower case. */
function accessInstead(name: string, position: number, args: readonly string[]): number | undefined {
  if (name === 'copy' && position === 1) return BOTH;
  if (name === 'restore') return BOTH;
  if (name === 'pfcount') return READS;
  if (name === 'sinterstore' && position === 0) return WRITES;
  if (name === 'xreadgroup') return BOTH;
  if (name === 'set' && args.slice(3).some((arg) => ['nx', 'xx', 'keepttl'].includes(arg))) return BOTH;
  return undefined;
}

const WORDS = (
  'store storedist streams count block group noack limit by get asc desc alpha keys auth auth2 set incrby overflow wrap ' +
  'nx xx keepttl ex withdist any'
).split(' ');
const cased = fc
  .tuple(fc.constantFrom(...WORDS), fc.boolean())
  .map(([word, upper]) => (upper ? word.toUpperCase() : word));
const argument = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 99 }).map((n) => `k${n}`) },
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 4 }).map(String) },
  { weight: 2, arbitrary: cased },
  { weight: 1, arbitrary: fc.constantFrom('-1', '01', '+2', '', '99', '1 ', 'w_*', 'u8', '9223372036854775808') },
);

/** Calls of a command with as many arguments as it takes, and sometimes with another number of them. */
function calls(spec: CommandSpec): fc.Arbitrary<string[]> {
  const name = spec.name.split('|');
  const least = Math.abs(spec.arity) - name.length;
  const right = fc.array(argument, { minLength: least, maxLength: spec.arity < 0 ? least + 8 : least });
  const any = fc.array(argument, { maxLength: least + 2 });
  const arbitrary = fc
    .oneof({ weight: 9, arbitrary: right }, { weight: 1, arbitrary: any })
    .map((args) => [...name, ...args]);
  const counted = spec.keySpecs.find((keySpec) => keySpec.counted);
  if (counted === undefined) return arbitrary;
  const at = counted.begin + counted.last;
  return fc
    .tuple(arbitrary, fc.integer({ min: 0, max: 3 }))
    .map(([args, count]) => (count < 3 && at < args.length ? args.with(at, String(count)) : args));
}

/** A call that has a key at the least. */
function callWithKeys(spec: CommandSpec): string[] {
  const name = spec.name.split('|');
  const least = Math.abs(spec.arity);
  const args = Array.from({ length: spec.arity < 0 ? least + 1 : least }, (_, i) => name[i] ?? `k${i}`);
  const counted = spec.keySpecs.find((keySpec) => keySpec.counted);
  return counted === undefined ? args : args.with(counted.begin + counted.last, '1');
}

/** Asserts that table and server agree on one call. Says what `keysOf` said. */
async function agree(spec: CommandSpec, args: readonly string[]): Promise<ReturnType<typeof keys>> {
  const ours = keys(spec, args);
  const theirs = await askServer(args);
  const shown = args.join(' ');
  if (ours === UNKNOWN_KEYS) {
    assert.ok(
      args.some((arg) => arg.includes('*')),
      shown,
    );
    const known = theirs.map(([key, flags]) => [key, accessOf(flags)]);
    assert.deepEqual(reportedKeys(spec, args).keys, known, shown);
  } else if (ours === MALFORMED) {
    const [name, ...rest] = args;
    await assert.rejects(redis.call(name, rest), REFUSED, `${shown} has keys that are said to be malformed`);
  } else {
    assert.ok(typeof ours !== 'number');
    // The server says that this has no keys, and makes one.
    if (spec.name === 'pfmerge' && args.length === 2) return ours;
    if (spec.name.startsWith('georadius')) {
      const stores = args.map((arg) => /^store/i.test(arg));
      // The server says the first of several STOREs, but takes the last: see the test of that.
      if (stores.filter(Boolean).length > 1) return ours;
      // Valkey 9 looks for one in the place of the unit, too; any server refuses the command.
      if (stores[spec.name.includes('member') ? 4 : 5]) return ours;
    }
    assert.deepEqual(
      ours.map(([key]) => key),
      theirs.map(([key]) => key),
      shown,
    );
    const lowered = args.map((arg) => arg.toLowerCase());
    const access = theirs.map(([, flags], i) => accessInstead(spec.name, i, lowered) ?? accessOf(flags));
    assert.deepEqual(
      ours.map(([, of]) => of),
      access,
      shown,
    );
  }
  return ours;
}

/** Commands that newer servers take with more arguments: here they have as many keys, refused or not. */
const wider = new Set(RELEASES.flatMap(({ arities }) => arities.map(([name]) => name)));
const withKeys = table.all.filter(
  (spec) => spec.inSource && !wider.has(spec.name) && (spec.keySpecs.length > 0 || spec.readKeys !== null),
);

test(
  'every command of Redis that has keys for its own COMMAND GETKEYS has the same keys, and access to them, here',
  { skip },
  async () => {
    assert.ok(withKeys.length > 180);
    // MIGRATE mixes two forms, and the server reports its keys even for a call that it would refuse; see below.
    for (const spec of withKeys.filter(({ name }) => name !== 'migrate')) {
      let found = 0;
      await fc.assert(
        fc.asyncProperty(calls(spec), async (args) => {
          const ours = await agree(spec, args);
          if (typeof ours !== 'number') found += ours.length;
        }),
        spec.readKeys === null ? { numRuns: 20, examples: [[callWithKeys(spec)]] } : { numRuns: 150 },
      );
      if (spec.readKeys === null) assert.ok(found > 0, `no call of ${spec.name} had a key`);
    }
  },
);

test('a command that has no keys here has none for the server', { skip }, async () => {
  for (const spec of table.all.filter(
    (spec) => spec.inSource && spec.keySpecs.length === 0 && spec.readKeys === null && spec.subcommands === null,
  )) {
    await fc.assert(
      fc.asyncProperty(calls(spec), async (args) => {
        assert.deepEqual(await askServer(args), []);
      }),
      { numRuns: 5 },
    );
  }
});

/** Options in any order, each as its words; for commands whose keys depend on them. */
const options = (...choices: fc.Arbitrary<string[]>[]): fc.Arbitrary<string[]> =>
  fc.array(fc.oneof(...choices), { maxLength: 5 }).map((list) => list.flat());
const word = (...words: string[]): fc.Arbitrary<string[]> =>
  fc.boolean().map((upper) => words.map((w, i) => (upper && i === 0 ? w.toUpperCase() : w)));
const value = (name: string, of: fc.Arbitrary<string>): fc.Arbitrary<string[]> =>
  fc.tuple(word(name), of).map(([[first], second]) => [first, second]);
const key = fc.integer({ min: 0, max: 9 }).map((n) => `k${n}`);
const pattern = fc.constantFrom('nosort', '#', 'w_*', 'w_*->f', 'store', 'get', 'plain');
const afterOptions = (middle: fc.Arbitrary<string[]>, end: fc.Arbitrary<string[]>): fc.Arbitrary<string[]> =>
  fc.tuple(middle, end).map((parts) => parts.flat());
const streamsAndIds = fc
  .integer({ min: 1, max: 4 })
  .chain((n) =>
    fc
      .tuple(
        word('streams'),
        fc.array(key, { minLength: n, maxLength: n }),
        fc.constant(new Array<string>(n).fill('0')),
      )
      .map((parts) => parts.flat()),
  );

const CALLS: readonly (readonly [name: string, fixed: readonly string[], rest: fc.Arbitrary<string[]>])[] = [
  [
    'sort',
    ['s'],
    options(
      word('asc'),
      word('alpha'),
      word('limit', '0', '1'),
      value('by', pattern),
      value('get', pattern),
      value('store', key),
    ),
  ],
  ['sort_ro', ['s'], options(word('desc'), word('limit', '0', '1'), value('by', pattern), value('get', pattern))],
  [
    'georadius',
    ['g', '1', '2', '3', 'km'],
    options(word('asc'), word('withdist'), word('count', '1'), value('store', key), value('storedist', key)),
  ],
  [
    'georadiusbymember',
    ['g', 'm', '3', 'km'],
    options(word('desc'), word('count', '1'), value('store', key), value('storedist', key)),
  ],
  ['xread', [], afterOptions(options(word('count', '1'), word('block', '1')), streamsAndIds)],
  [
    'xreadgroup',
    ['GROUP', 'streams', 'block'],
    afterOptions(options(word('count', '1'), word('noack')), streamsAndIds),
  ],
  ['set', ['k', 'get'], options(word('get'), word('nx'), word('keepttl'), word('ex', '1'))],
  [
    'bitfield',
    ['k'],
    options(
      word('get', 'u8', '0'),
      word('set', 'u8', '0', '1'),
      word('overflow', 'wrap'),
      word('incrby', 'u8', '0', '1'),
    ),
  ],
  [
    'eval',
    ['return 1'],
    fc.constantFrom(
      ['0'],
      ['1', 'k1'],
      ['2', 'k1', 'k2', 'argument'],
      ['3', 'k1', 'k2'],
      ['-1', 'k1'],
      ['x'],
      ['0', 'argument'],
    ),
  ],
  [
    'zunionstore',
    ['d'],
    fc.constantFrom(['1', 'k1'], ['2', 'k1', 'k2', 'weights', '1', '1'], ['3', 'k1'], ['2', 'k1', 'k2']),
  ],
  [
    'migrate',
    ['127.0.0.1', '1', ''],
    afterOptions(
      fc.constant(['0', '100']),
      afterOptions(options(word('copy'), value('auth', key)), fc.constant(['KEYS', 'k1', 'k2'])),
    ),
  ],
];

for (const [name, fixed, rest] of CALLS) {
  test(`keys of ${name.toUpperCase()} are found among its options`, { skip }, async () => {
    const spec = table.byName(name)!;
    const seen = new Set<string>();
    await fc.assert(
      fc.asyncProperty(rest, async (options) => {
        const ours = await agree(spec, [name, ...fixed, ...options]);
        seen.add(typeof ours === 'number' ? String(ours) : 'keys');
      }),
      { numRuns: 300 },
    );
    assert.ok(seen.has('keys'));
    if (name.startsWith('sort')) assert.ok(seen.has(String(UNKNOWN_KEYS)));
  });
}

test('a pattern of SORT hides keys exactly when the sort reads another key through it', async () => {
  await redis.call('DEL', 's', 'w_1', 'd');
  await redis.call('RPUSH', 's', '1');
  await redis.call('SET', 'w_1', 'found');
  const spec = table.byName('sort')!;
  for (const pattern of ['#', 'w_1', 'w_*', '*', 'nosort', 'w_', 'w_*->f', '->*']) {
    const args = ['sort', 's', 'by', 'nosort', 'get', pattern];
    const read = ((await redis.call(args[0], args.slice(1))) as (string | null)[])[0];
    if (pattern === 'w_*') assert.equal(read, 'found');
    if (read === 'found') assert.equal(keys(spec, args), UNKNOWN_KEYS);
    if (!pattern.includes('*')) assert.deepEqual(keys(spec, args), [['s', READS]]);
  }
  assert.deepEqual(keys(spec, ['SORT', 's', 'BY', 'nosort', 'STORE', 'd']), [
    ['s', READS],
    ['d', WRITES],
  ]);
});

test('GROUP makes XREADGROUP, and nothing else', { skip }, async () => {
  for (const args of [
    ['XREADGROUP', 'STREAMS', 'a', 'b', 'c', '0', '0', '0'],
    ['XREAD', 'GROUP', 'g', 'c', 'STREAMS', 'a', '0'],
  ]) {
    assert.equal(await agree(find(table, args)!, args), MALFORMED);
  }
});

test('of several STOREs, GEORADIUS takes the last', async () => {
  await redis.geoadd('g', 13.361389, 38.115556, 'm');
  for (const [first, last] of [
    ['STORE', 'STOREDIST'],
    ['STOREDIST', 'STORE'],
    ['STORE', 'STORE'],
  ]) {
    for (const args of [
      ['GEORADIUS', 'g', '15', '37', '200', 'km'],
      ['GEORADIUSBYMEMBER', 'g', 'm', '200', 'km'],
    ]) {
      await redis.del('d1', 'd2');
      const call = [...args, first, 'd1', last, 'd2'];
      assert.equal(await redis.call(call[0], call.slice(1)), 1);
      assert.deepEqual([await redis.exists('d1'), await redis.exists('d2')], [0, 1]);
      assert.deepEqual(keys(find(table, call)!, call), [
        ['g', READS],
        ['d2', WRITES],
      ]);
    }
  }
});

test('a command that does not write a key, for the table, leaves it as it was', async () => {
  // Only commands with one key and no options: what the server stores afterwards shows whether they write.
  const reads = withKeys.filter(
    (spec) =>
      spec.handling === 'keyed' &&
      spec.keySpecs.some(({ access }) => access === READS) &&
      !spec.write &&
      spec.name !== 'pfcount',
  );
  for (const [type, make] of MAKERS) {
    for (const spec of reads) {
      await redis.call('FLUSHALL');
      await redis.call(make[0], make.slice(1));
      const before = await redis.dump('k');
      const words = spec.name.split('|');
      const args = [...words, ...new Array<string>(Math.abs(spec.arity) - words.length).fill('1')];
      for (const { begin, counted, first } of spec.keySpecs) args[counted ? begin + first : begin] = 'k';
      await redis.call(args[0], args.slice(1)).catch((error: Error) => error);
      assert.deepEqual(await redis.dump('k'), before, `${args.join(' ')} on a ${type}`);
    }
  }
});

const MAKERS: readonly (readonly [type: string, command: readonly string[]])[] = [
  ['string', ['SET', 'k', '1']],
  ['list', ['RPUSH', 'k', '1', '2']],
  ['set', ['SADD', 'k', '1', '2']],
  ['hash', ['HSET', 'k', '1', '2']],
  ['sorted set', ['ZADD', 'k', '1', '2']],
  ['stream', ['XADD', 'k', '1-1', 'f', 'v']],
];

test('a single key is where singleKey says, and nowhere else', () => {
  for (const spec of table.all.filter(({ singleKey }) => singleKey !== 0)) {
    const args = [...spec.name.split('|'), 'a', 'b', 'c', 'd', 'e', 'f'].slice(0, Math.max(Math.abs(spec.arity), 3));
    if (spec.arity > 0) args.length = spec.arity;
    if (spec.name === 'bitfield') args.length = 2;
    const found = keys(spec, args);
    assert.ok(typeof found !== 'number', `${args.join(' ')}`);
    assert.deepEqual(
      found.map(([name]) => name),
      [args[spec.singleKey]],
    );
  }
  assert.deepEqual(
    ['get', 'hset', 'memory|usage', 'mget', 'smove', 'sort'].map((name) => table.byName(name)!.singleKey),
    [1, 1, 2, 0, 0, 0],
  );
});

test('both servers find the same keys in what both know', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  await withServers(
    async ({ target }) => {
      const keydb = new Redis(target.url, PATIENT);
      try {
        for (const spec of table.all.filter(
          (spec) => spec.inTarget && (spec.keySpecs.length > 0 || spec.readKeys !== null),
        )) {
          await fc.assert(
            fc.asyncProperty(calls(spec), async (args) => {
              const ours = keys(spec, args);
              if (typeof ours === 'number' || !arityHolds(spec.targetArity, args.length)) return;
              const names = ours.map(([name]) => name).sort();
              const theirs = [...(await askNames(keydb, args))].sort();
              // It may be mistaken about a call that it refuses.
              if (!isDeepStrictEqual(names, theirs))
                await assert.rejects(keydb.call(args[0], args.slice(1)), REFUSED, args.join(' '));
            }),
            { numRuns: 15 },
          );
        }
      } finally {
        keydb.disconnect();
      }
    },
    { target: EVERY_COMMAND },
  );
});
