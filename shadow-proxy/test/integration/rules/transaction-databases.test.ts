/**
 * Transactions that select databases, move keys between them or empty them: each command has its database, on both
 * servers.
 *
 * Needs real servers: SELECT, MOVE and SWAPDB inside MULTI, on Redis and KeyDB.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClient } from 'redis';
import type { Argument } from '../../../src/resp/encode.js';
import { differences } from '../../support/keyspace.js';
import { until, type TestShardOptions } from '../../support/shard.js';
import { withRig, type Rig } from '../../support/rig.js';
import type { Wire } from '../../support/wire.js';
import { withScene } from './scene.js';

type Commands = (readonly Argument[])[];

const DATABASES = 3;
/** So many random transactions each. */
const TRANSACTIONS = 300;
const any = (below: number): number => Math.floor(Math.random() * below);
const pick = <T>(items: readonly T[]): T => items[any(items.length)];
const OFF = { name: 'quiet', keys: ['off:*'], stage: 'off' as const };

const STAGES: Readonly<Record<string, Pick<TestShardOptions, 'workloads' | 'default'>>> = {
  shadow: { default: { stage: 'shadow' } },
  live: { default: { stage: 'live' } },
  mixed: { workloads: [OFF], default: { stage: 'shadow' } },
};

/** A write that leaves its place in the order in its key. */
const write = (prefix: string): readonly Argument[] =>
  pick<() => readonly Argument[]>([
    () => ['APPEND', `${prefix}k:${any(6)}`, any(10)],
    () => ['RPUSH', `${prefix}l:${any(4)}`, any(1000)],
    () => ['SPOP', `${prefix}s`],
    () => ['SADD', `${prefix}s`, any(1000)],
    () => ['INCR', `${prefix}n:${any(3)}`],
    () => ['RENAME', `${prefix}k:${any(6)}`, `${prefix}k:${any(6)}`],
    () => ['SET', `${prefix}k:${any(6)}`, any(1000), 'KEEPTTL'],
    () => ['EVAL', "return redis.call('APPEND', KEYS[1], ARGV[1])", 1, `${prefix}k:${any(6)}`, any(10)],
    () => ['XADD', `${prefix}x`, 'MAXLEN', '~', 5, '*', 'f', any(1000)],
    () => ['GET', `${prefix}k:${any(6)}`],
    () => ['DBSIZE'],
  ])();

/** Commands between MULTI and EXEC, which begin anywhere and end anywhere. */
function inside(prefixes: readonly string[], flushes: boolean): Commands {
  const commands: Commands = [];
  for (let i = 0; i <= any(6); i++) {
    const prefix = pick(prefixes);
    if (Math.random() < 0.4) commands.push(['SELECT', pick([0, 1, 2, 1000])]);
    commands.push(write(prefix));
    if (Math.random() < 0.05)
      commands.push(
        ['MOVE', `${prefix}k:${any(6)}`, any(DATABASES)],
        ['COPY', `${prefix}k:${any(6)}`, `${prefix}k:${any(6)}`, 'DB', any(DATABASES), 'REPLACE'],
      );
    if (flushes && Math.random() < 0.02) commands.push([pick(['FLUSHDB', 'FLUSHALL'])]);
  }
  return commands;
}

async function load(
  wire: Wire,
  number: number,
  prefixes: readonly string[],
  flushes: boolean,
  goesOn: () => boolean,
): Promise<void> {
  await wire.ask('HELLO', 2 + (number % 2));
  while (goesOn()) {
    const prefix = pick(prefixes);
    const before: Commands = Array.from({ length: any(4) }, () => write(prefix));
    const watched: Commands = Math.random() < 0.2 ? [['WATCH', `${prefix}k:${any(6)}`]] : [];
    const commands = [
      ...before,
      ...watched,
      ['MULTI'],
      ...inside(prefixes, flushes),
      ['EXEC'],
      write(prefix),
      ...(Math.random() < 0.3 ? [['SELECT', any(DATABASES)]] : []),
    ];
    const replies = await wire.pipeline(commands);
    for (const [i, reply] of replies.entries())
      assert.doesNotMatch(reply, /^-(?!ERR no such key|WRONGTYPE|ERR DB index)/, String(commands[i]));
  }
}

/** Asserts that both servers hold the same, but for the keys that stay on the source. */
async function assertEqual(rig: Rig): Promise<void> {
  await rig.shard.settled();
  await until(() => rig.shard.snapshot().workloads.every(({ suspect }) => suspect === null));
  assert.deepEqual(
    (await differences(rig.source, rig.target)).filter((line) => !/^\d+:off:/.test(line)),
    [],
  );
  assert.deepEqual(rig.shard.snapshot().mismatches, {}, JSON.stringify(rig.shard.findings().slice(0, 3)));
}

for (const [name, stages] of Object.entries(STAGES)) {
  test(`transactions over databases, among others there, leave both servers equal, in ${name}`, async () => {
    await withRig(stages, async (rig) => {
      const prefixes = name === 'mixed' ? ['', 'off:'] : [''];
      const wires = await Promise.all(Array.from({ length: 6 }, () => rig.wire()));
      let left = TRANSACTIONS;
      await Promise.all(wires.map((wire, i) => load(wire, i, prefixes, name !== 'mixed', () => left-- > 0)));
      await assertEqual(rig);
      if (name === 'mixed') assert.deepEqual(await rig.client({ of: rig.target }).keys('off:*'), []);
    });
  });

  test(`each command of a transaction has its database, and those of other clients theirs, in ${name}`, async () => {
    await withRig(stages, async (rig) => {
      const [mine, other] = [await rig.wire(), await rig.wire()];
      await mine.pipeline([
        ['SET', 'k', 'zero'],
        ['SELECT', 1],
        ['SET', 'k', 'one'],
        ['SELECT', 0],
      ]);
      const one: Commands = [
        ['MULTI'],
        ['GET', 'k'],
        ['SELECT', 1],
        ['GET', 'k'],
        ['SET', 'written', 1],
        ['SELECT', 2],
        ['SET', 'written', 2],
        ['GET', 'k'],
        ['EXEC'],
        ['GET', 'written'],
        ['GET', 'k'],
        ['SELECT', 0],
      ];
      for (let i = 0; i < 20; i++) {
        const asked = mine.pipeline(one);
        assert.deepEqual(
          await other.pipeline(Array.from({ length: 30 }, () => ['GET', 'k'])),
          new Array<string>(30).fill('$4\r\nzero'),
        );
        const replies = (await asked).slice(8);
        assert.deepEqual(replies, [
          '*7\r\n$4\r\nzero\r\n+OK\r\n$3\r\none\r\n+OK\r\n+OK\r\n+OK\r\n$-1',
          '$1\r\n2',
          '$-1',
          '+OK',
        ]);
      }
      await assertEqual(rig);
      for (const db of [1, 2]) assert.equal(await rig.client({ of: rig.target, db }).get('written'), String(db));
    });
  });

  test(`clients' libraries select, move and flush in a transaction, in ${name}`, async () => {
    await withRig(stages, async (rig) => {
      const [ioredis, nodeRedis] = [
        rig.client(),
        createClient({ socket: { host: '127.0.0.1', port: rig.shard.port } }),
      ];
      nodeRedis.on('error', () => undefined);
      await nodeRedis.connect();
      try {
        assert.deepEqual(await nodeRedis.multi().set('a', 'zero').select(1).set('a', 'one').get('a').exec(), [
          'OK',
          'OK',
          'OK',
          'one',
        ]);
        assert.equal(await nodeRedis.get('a'), 'one');
        assert.deepEqual(await nodeRedis.multi().select(0).get('a').select(0).exec(), ['OK', 'zero', 'OK']);
        assert.equal(await nodeRedis.get('a'), 'zero');
      } finally {
        nodeRedis.destroy();
      }
      assert.deepEqual(await ioredis.multi().select(2).set('b', 'two').move('b', 3).copy('b', 'c').exec(), [
        [null, 'OK'],
        [null, 'OK'],
        [null, 1],
        [null, 0],
      ]);
      assert.deepEqual(await ioredis.multi().set('d', 1).flushdb().set('e', 1).exec(), [
        [null, 'OK'],
        [null, 'OK'],
        [null, 'OK'],
      ]);
      assert.deepEqual(await ioredis.keys('*'), ['e']);
      await assertEqual(rig);
    });
  });
}

test('a transaction whose reply is lost leaves suspects in the databases that it wrote to', async () => {
  for (const commands of [
    [
      ['SELECT', 2],
      ['SET', 'k', 'two'],
    ],
    [
      ['SET', 'k', 'zero'],
      ['SELECT', 2],
      ['SET', 'k', 'two'],
      ['SELECT', 3],
      ['MOVE', 'm', 4],
    ],
  ] satisfies Commands[]) {
    await withScene({}, async (scene) => {
      const wire = await scene.wire();
      await wire.pipeline([['SELECT', 3], ['SET', 'm', 1], ['SELECT', 2], ['PING'], ['SELECT', 0], ['PING']]);
      await scene.shard.settled();
      // The answer to MULTI comes: the rest of a transaction with SELECT waits for it.
      scene.toSource.holdLater('down');
      for (const link of scene.toSource.links) void link.holdAfter('down', '+OK\r\n'.length);
      const source = scene.client({ of: scene.source });
      const execs = async (): Promise<number> =>
        Number(/cmdstat_exec:calls=(\d+)/.exec(await source.info('commandstats'))?.[1] ?? 0);
      const before = await execs();
      for (const command of [['MULTI'], ...commands, ['EXEC']]) wire.send(...command);
      await until(async () => (await execs()) > before);
      scene.toSource.cut();
      scene.toSource.release();
      await wire.closed;
      await scene.assertEqual();
      assert.equal(await scene.client({ of: scene.target, db: 2 }).get('k'), 'two');
    });
  }
});

test('what the mirror has not confirmed when the process ends is suspect in its database', async () => {
  await withScene({}, async (scene) => {
    const wire = await scene.wire();
    await wire.ask('PING');
    await scene.target.kill('SIGSTOP');
    const replies = await wire.pipeline([
      ['MULTI'],
      ['SELECT', 2],
      ['SET', 'k', 'two'],
      ['EXEC'],
      ['MULTI'],
      ['SET', 'j', 'two'],
      ['SELECT', 1],
      ['SET', 'k', 'one'],
      ['EXEC'],
    ]);
    assert.deepEqual([replies[3], replies[8]], ['*2\r\n+OK\r\n+OK', '*3\r\n+OK\r\n+OK\r\n+OK']);
    await scene.stopShard();
    scene.toTarget.cut();
    await scene.target.kill('SIGCONT');
    await scene.startShard();
    await scene.assertEqual();
    assert.equal(await scene.client({ of: scene.target, db: 1 }).get('k'), 'one');
  });
});

test('a difference in another database is found there, and repaired', async () => {
  await withRig({}, async (rig) => {
    const wire = await rig.wire();
    await wire.pipeline([['MULTI'], ['SET', 'k', 'v'], ['SELECT', 1], ['SET', 'k', 'v'], ['EXEC']]);
    await rig.shard.settled();
    await rig.client({ of: rig.target, db: 1 }).set('k', 'other');
    await wire.pipeline([['SELECT', 0], ['MULTI'], ['GET', 'k'], ['SELECT', 1], ['GET', 'k'], ['EXEC']]);
    await until(() => rig.shard.findings().length > 0);
    assert.deepEqual(
      rig.shard.findings().map(({ db, key }) => [db, key?.text]),
      [[1, 'k']],
    );
    await rig.shard.settled();
    assert.deepEqual(await differences(rig.source, rig.target), []);
    assert.equal(await rig.client({ of: rig.target, db: 0 }).get('k'), 'v');
    // An absence is asked about in its database, where the key is there.
    await rig.client({ of: rig.target, db: 1 }).del('k');
    await wire.pipeline([['MULTI'], ['SELECT', 0], ['SET', 'j', 1], ['SELECT', 1], ['GET', 'k'], ['EXEC']]);
    await until(() => rig.shard.findings().length > 1);
    assert.deepEqual(
      rig.shard.findings().map(({ db, key }) => [db, key?.text]),
      [
        [1, 'k'],
        [1, 'k'],
      ],
    );
    await rig.shard.settled();
    assert.deepEqual(await differences(rig.source, rig.target), []);
  });
});

test('after SWAPDB in live, a transaction that selects is in the databases that it names, and so is who comes next', async () => {
  await withRig({ default: { stage: 'live' } }, async (rig) => {
    const [wire, other] = [await rig.wire(), await rig.wire()];
    const transaction: Commands = [
      ['MULTI'],
      ['SELECT', 2],
      ['GET', 'name'],
      ['SELECT', 3],
      ['APPEND', 'name', '!'],
      ['SELECT', 0],
      ['EXEC'],
    ];
    for (const db of [2, 3])
      await wire.pipeline([
        ['SELECT', db],
        ['SET', 'name', db],
      ]);
    await wire.ask('SELECT', 0);
    assert.equal((await wire.pipeline(transaction))[6], '*5\r\n+OK\r\n$1\r\n2\r\n+OK\r\n:2\r\n+OK');
    assert.equal(await other.ask('SWAPDB', 2, 3), '+OK');
    assert.equal((await wire.pipeline(transaction))[6], '*5\r\n+OK\r\n$2\r\n3!\r\n+OK\r\n:2\r\n+OK');
    assert.equal(
      (
        await wire.pipeline([
          ['MULTI'],
          ['SELECT', 3],
          ['GET', 'name'],
          ['EXEC'],
          ['GET', 'name'],
          ['SELECT', 2],
          ['GET', 'name'],
        ])
      )[6],
      '$2\r\n3!',
    );
    assert.equal(await other.ask('PING'), '+PONG');
    await rig.assertEqual();
  });
});

test('a client that waits for a list in another database gets what a transaction pushes or moves there', async () => {
  for (const stage of ['shadow', 'live'] as const) {
    await withRig({ default: { stage } }, async (rig) => {
      const [wire, waiter] = [await rig.wire(), await rig.wire()];
      await waiter.ask('SELECT', 2);
      for (const commands of [
        [
          ['SELECT', 2],
          ['RPUSH', 'q', 'a', 'b'],
        ],
        [
          ['SET', 'k', 1],
          ['SELECT', 2],
          ['RPUSH', 'q', 'a', 'b'],
        ],
        [
          ['RPUSH', 'q', 'a', 'b'],
          ['MOVE', 'q', 2],
        ],
      ] satisfies Commands[]) {
        waiter.send('BLPOP', 'q', 0);
        const authority = rig.client({ of: stage === 'live' ? rig.target : rig.source });
        await until(async () => /blocked_clients:1\r/.test(await authority.info('clients')));
        await wire.pipeline([['SELECT', 0], ['MULTI'], ...commands, ['EXEC']]);
        assert.equal(await waiter.frame(), '*2\r\n$1\r\nq\r\n$1\r\na');
        await rig.assertEqual();
        await waiter.ask('DEL', 'q');
      }
    });
  }
});

test('FLUSHDB in a transaction reaches no key of the target that the shard did not write', async () => {
  await withRig(
    { workloads: [{ name: 'users', keys: ['user:*'], stage: 'shadow' }], default: { stage: 'off' } },
    async (rig) => {
      await rig.client({ of: rig.target }).set('other', 'foreign');
      const proxy = await rig.wire();
      await proxy.ask('SET', 'user:1', 'mine');
      assert.equal(
        (await proxy.pipeline([['MULTI'], ['FLUSHDB'], ['SET', 'user:after', 'mine'], ['EXEC']]))[3],
        '*2\r\n+OK\r\n+OK',
      );
      await until(() => rig.shard.snapshot().workloads.every(({ suspect }) => suspect === null));
      await rig.shard.settled();
      assert.deepEqual((await rig.client({ of: rig.target }).keys('*')).sort(), ['other', 'user:after']);
    },
  );
});
