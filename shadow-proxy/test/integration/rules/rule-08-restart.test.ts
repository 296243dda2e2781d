/**
 * Rule 8 after a restart: the proxy does not know which keys have a TTL, and which of them are about to expire. What it
 * does not know it asks.
 *
 * Needs real servers: replies of every write to a key that has expired on one server alone.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../support/shard.js';
import { withScene, type Scene } from './scene.js';
import { DERIVED, keyOf, SILENT, type Command } from './silent-writes.js';

const ALL = [...SILENT, DERIVED];
const LONG_MS = 1_000_000;

/** Ways to send the write, so that what comes behind it does not hide what it found. */
const WAYS: Readonly<Record<string, (write: Command, key: string) => readonly Command[]>> = {
  'by itself': (write) => [write],
  'before a new TTL': (write, key) => [write, ['PEXPIRE', key, LONG_MS]],
  'in a transaction that gives a new TTL': (write, key) => [['MULTI'], write, ['PEXPIRE', key, LONG_MS], ['EXEC']],
};

/** A script that adds to the key, and gives it a new TTL. */
const RENEWS: (typeof ALL)[number] = {
  name: 'renewing script',
  setup: (key) => ['SET', key, 'v'],
  write: (key) => [
    'EVAL',
    "redis.call('APPEND', KEYS[1], 'w') redis.call('PEXPIRE', KEYS[1], ARGV[1]) return 1",
    1,
    key,
    LONG_MS,
  ],
};
const WRITES = [...ALL, RENEWS];

/** What ends the process: it knows nothing of the keys that it has not written itself. */
const ENDS: Readonly<Record<string, (scene: Scene) => Promise<unknown>>> = {
  'a restart': () => Promise.resolve(),
  'a restart, and a crash of the new process': async ({ stopShard, startShard }) => {
    await stopShard('at once');
    await startShard();
  },
};
const LIFE_MS = 300;
/** Within the tolerance. */
const APART_MS = 45;

/**
 * Lets the keys of each list expire on that server, and a moment later on the other one; resolves between the two. The
 * process does not know the keys: as if the TTLs were given before it started.
 */
async function expireApart(
  { client, source, target }: Scene,
  keys: Readonly<Record<'source' | 'target', string[]>>,
): Promise<void> {
  const [here, there] = [client({ of: source }), client({ of: target })];
  const moment = Date.now() + LIFE_MS;
  for (const [each, first] of [
    [here, keys.source],
    [there, keys.target],
  ] as const)
    await Promise.all(
      [...keys.source, ...keys.target].map((key) => each.pexpireat(key, moment + (first.includes(key) ? 0 : APART_MS))),
    );
  await until(async () => (await there.exists(keys.target)) === 0);
}

for (const [end, ended] of Object.entries(ENDS)) {
  for (const [way, sent] of Object.entries(WAYS)) {
    test(`a write ${way} that finds its key expired on one server only, after ${end}`, async () => {
      await withScene({}, async (scene) => {
        const keys = {
          source: WRITES.map(({ name }) => keyOf(name, 0)),
          target: WRITES.map(({ name }) => keyOf(name, 1)),
        };
        const before = await scene.wire();
        await before.pipeline(WRITES.flatMap(({ setup }, i) => [setup(keys.source[i]), setup(keys.target[i])]));
        await before.ask('SADD', '{k}c', 'c');
        await scene.stopShard('drained');
        await scene.startShard();
        await ended(scene);
        await scene.shard.settled();
        const wire = await scene.wire();
        await expireApart(scene, keys);
        const replies = await wire.pipeline(
          WRITES.flatMap(({ write }, i) => [keys.source[i], keys.target[i]].flatMap((key) => sent(write(key, 0), key))),
        );
        assert.deepEqual(
          replies.filter((reply) => reply.startsWith('-')),
          [],
        );
        // The keys end at the second server, too.
        await sleep(2 * APART_MS);
        await scene.assertEqual();
        assert.deepEqual(scene.shard.snapshot().mismatches, {});
      });
    });
  }
}

/** What changes how long a key lives: afterwards nothing shows how long it had lived before. */
const LIVES: readonly ((key: string) => Command)[] = [
  (key) => ['PERSIST', key],
  (key) => ['PEXPIRE', key, LONG_MS],
  (key) => ['EXPIREAT', key, Math.ceil(Date.now() / 1000) + LONG_MS],
  (key) => ['GETEX', key, 'PERSIST'],
  (key) => ['GETEX', key, 'PX', LONG_MS],
];

test('a command that changes the TTL of a key that has expired on one server only is no mismatch after a restart', () =>
  withScene({}, async (scene) => {
    const keys = { source: LIVES.map((_, i) => `s${i}`), target: LIVES.map((_, i) => `t${i}`) };
    await (await scene.wire()).pipeline([...keys.source, ...keys.target].map((key) => ['SET', key, 'v']));
    await scene.stopShard('drained');
    await scene.startShard();
    const wire = await scene.wire();
    await expireApart(scene, keys);
    await wire.pipeline(LIVES.flatMap((change, i) => [change(keys.source[i]), change(keys.target[i])]));
    await scene.assertEqual();
    assert.deepEqual(scene.shard.snapshot().mismatches, {});
  }));

test('a key of which something is known is not asked about again', async () => {
  await withScene({}, async (scene) => {
    const wire = await scene.wire();
    const asked = async (): Promise<number> =>
      Number(/cmdstat_pttl:calls=(\d+)/.exec(await scene.client({ of: scene.source }).info('commandstats'))?.[1] ?? 0);
    // Moments: a time to live that reaches the mirror late makes its key suspect, and the repair asks for it.
    const end = Date.now() + 100_000;
    await wire.pipeline([
      ['SET', 'k', 1],
      ['SET', 'with', 1, 'PXAT', end],
      ['SET', 'ttl', 1, 'EXAT', Math.ceil(end / 1_000)],
    ]);
    await scene.shard.settled();
    assert.equal(await asked(), 0, 'what replaces a key needs no TTL of it');
    for (let round = 0; round < 3; round++) {
      await wire.pipeline(['k', 'with', 'ttl', 'new'].map((key) => ['INCR', key]));
      await scene.shard.settled();
    }
    assert.equal(await asked(), 2, 'the keys whose TTL the proxy has not seen');
    await scene.assertEqual();
  });
});

test('keys of a user who may not ask for a TTL are copied once after a restart', async () => {
  await withScene({}, async (scene) => {
    const rules = ['on', '>pw', '~*', '&*', '+@all', '-pttl'];
    for (const server of [scene.source, scene.target])
      await scene.client({ of: server }).call('ACL', 'SETUSER', 'app', ...rules);
    const wire = await scene.wire();
    await wire.ask('AUTH', 'app', 'pw');
    const keys = Array.from({ length: 20 }, (_, n) => `h${n}`);
    for (let round = 0; round < 2; round++) {
      await wire.pipeline(keys.map((key) => ['HSET', key, `f${round}`, 1]));
      await scene.assertEqual();
    }
    const denied = (await scene.client({ of: scene.source }).call('ACL', 'LOG')) as unknown[];
    assert.equal(denied.length, 1);
    assert.deepEqual(scene.shard.snapshot().mismatches, {});
  });
});
