/**
 * Rule 8 at the edge: a write that finds its key on one server and finds it expired on the other, a moment earlier or
 * later, leaves different data behind, and not every reply shows it.
 *
 * Needs real servers: replies of every write to a key that has just expired, on Redis and KeyDB.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { partsOf, until } from '../../support/shard.js';
import { withScene, type Scene } from './scene.js';
import { DERIVED, keyOf, SILENT, type Command } from './silent-writes.js';

/** Ways to give the keys a time to live. */
const TIMED: Readonly<Record<string, (key: string, ms: number) => readonly Command[]>> = {
  PEXPIRE: (key, ms) => [['PEXPIRE', key, ms]],
  PEXPIREAT: (key, ms) => [['PEXPIREAT', key, Date.now() + ms]],
  'PEXPIRE in MULTI': (key, ms) => [['MULTI'], ['INCR', '{k}n'], ['PEXPIRE', key, ms], ['EXEC']],
  'a script': (key, ms) => [['EVAL', "redis.call('PEXPIRE', KEYS[1], ARGV[1]) return 1", 1, key, ms]],
  'a script in the place of a longer one': (key, ms) => [
    ['PEXPIRE', key, 1_000_000],
    ['EVAL', "redis.call('PEXPIRE', KEYS[1], ARGV[1]) return 1", 1, key, ms],
  ],
  'another key by RENAME': (key, ms) => [
    ['RENAME', key, `${key}:old`],
    ['PEXPIRE', `${key}:old`, ms],
    ['RENAME', `${key}:old`, key],
  ],
};

/** Keys live for so long, in ms: longer where a machine needs more time for one pipeline. */
const LIVES_MS = [300, 1_200, 4_800];

class TooLate extends Error {}

/** The keys must still have been there on the source. */
function wasInTime(isSo: boolean): void {
  if (!isSo) throw new TooLate('the keys expired before a pipeline of commands had reached them');
}

/** Runs the test with keys that live for the shortest time in which this machine reaches them. */
async function withLives(body: (scene: Scene, lifeMs: number) => Promise<void>): Promise<void> {
  for (const lifeMs of LIVES_MS) {
    try {
      return await withScene({}, (scene) => body(scene, lifeMs));
    } catch (error) {
      if (!(error instanceof TooLate) || lifeMs === LIVES_MS.at(-1)) throw error;
    }
  }
}

async function untilExpired({ client, source }: Scene, keys: readonly string[]): Promise<void> {
  const direct = client({ of: source });
  await until(async () => (await Promise.all(keys.map((key) => direct.pttl(key)))).every((pttl) => pttl < 0));
}

for (const [way, timed] of Object.entries(TIMED)) {
  test(`a write that reaches the mirror after its key has expired there, with a time to live given by ${way}`, async () => {
    await withLives(async (scene, lifeMs) => {
      const wire = await scene.wire();
      const all = [...SILENT, DERIVED];
      const keys = all.map(({ name }) => keyOf(name));
      await wire.pipeline(all.map(({ setup }, i) => setup(keys[i])));
      await wire.pipeline([['SADD', '{k}c', 'c'], ...keys.flatMap((key) => timed(key, lifeMs))]);
      await scene.shard.settled();
      scene.toTarget.hold('up');
      const replies = await wire.pipeline(all.map(({ write }, i) => write(keys[i], 0)));
      assert.deepEqual(
        replies.filter((reply) => reply.startsWith('-')),
        [],
      );
      const direct = scene.client({ of: scene.source });
      wasInTime((await direct.exists(keys)) === keys.length);
      await untilExpired(scene, keys);
      const behind = scene.client({ of: scene.target });
      await until(async () => (await behind.exists(keys)) === 0);
      scene.toTarget.release();
      await scene.assertEqual();
      assert.equal(await direct.exists(keys), 0);
      assert.deepEqual(scene.shard.snapshot().mismatches, {});
    });
  });
}

for (const given of ['before', 'after']) {
  test(`a time to live given ${given} SWAPDB holds in the other database`, async () => {
    await withLives(async (scene, lifeMs) => {
      const wire = await scene.wire();
      const keys = SILENT.map(({ name }) => keyOf(name));
      await wire.pipeline(SILENT.map(({ setup }, i) => setup(keys[i])));
      const expire = (): Promise<unknown> => wire.pipeline(keys.map((key) => ['PEXPIRE', key, 2 * lifeMs]));
      if (given === 'before') await expire();
      assert.equal(await wire.ask('SWAPDB', 0, 1), '+OK');
      await wire.ask('SELECT', 1);
      if (given === 'after') await expire();
      await scene.shard.settled();
      scene.toTarget.hold('up');
      const direct = scene.client({ of: scene.source, db: 1 });
      const replies = await wire.pipeline(SILENT.map(({ write }, i) => write(keys[i], 0)));
      assert.deepEqual(
        replies.filter((reply) => reply.startsWith('-')),
        [],
      );
      wasInTime((await direct.exists(keys)) === keys.length);
      await until(async () => (await Promise.all(keys.map((key) => direct.pttl(key)))).every((pttl) => pttl < 0));
      scene.toTarget.release();
      await scene.assertEqual();
      assert.deepEqual(scene.shard.snapshot().mismatches, {});
    });
  });
}

test('GETSET of a key that has expired on the mirror meanwhile is no mismatch, though both servers have the key afterwards', async () => {
  await withLives(async (scene, lifeMs) => {
    const wire = await scene.wire();
    await wire.ask('SET', 'k', 'old', 'PX', lifeMs);
    await scene.shard.settled();
    scene.toTarget.hold('up');
    wasInTime((await wire.ask('GETSET', 'k', 'new')) === '$3\r\nold');
    const behind = scene.client({ of: scene.target });
    await until(async () => (await behind.exists('k')) === 0);
    scene.toTarget.release();
    await scene.assertEqual();
    assert.deepEqual(scene.shard.snapshot().mismatches, {});
  });
});

/** Commands that do nothing where the key is in database 1 already. */
const INTO_ANOTHER: Readonly<Record<string, Command>> = {
  MOVE: ['MOVE', 'k', 1],
  'COPY … DB': ['COPY', 'k', 'k', 'DB', 1],
};

for (const [name, command] of Object.entries(INTO_ANOTHER)) {
  for (const given of ['through the proxy', 'by another process']) {
    test(`${name} whose key in the other database has expired on the mirror meanwhile is no mismatch, with a TTL given ${given}`, async () => {
      await withLives(async (scene, lifeMs) => {
        const wire = await scene.wire();
        const there = [scene.source, scene.target].map((of) => scene.client({ of, db: 1 }));
        await wire.ask('SET', 'k', 'to be taken');
        if (given === 'through the proxy')
          await wire.pipeline([
            ['SELECT', 1],
            ['SET', 'k', 'in the way', 'PX', lifeMs],
            ['SELECT', 0],
          ]);
        else
          for (const [i, each] of there.entries())
            await each.set('k', 'in the way', 'PX', i === 0 ? 10 * lifeMs : lifeMs);
        await scene.shard.settled();
        scene.toTarget.hold('up');
        wasInTime((await wire.ask(...command)) === ':0');
        await until(async () => (await there[1].exists('k')) === 0);
        if (given === 'by another process') await there[0].pexpire('k', 1);
        await until(async () => (await there[0].exists('k')) === 0);
        scene.toTarget.release();
        await scene.assertEqual();
        assert.deepEqual(scene.shard.snapshot().mismatches, {});
      });
    });
  }
}

test('a read that is refused because of what its key holds is no mismatch, though the key has expired on the mirror meanwhile', async () => {
  await withLives(async (scene, lifeMs) => {
    const wire = await scene.wire();
    await wire.pipeline([
      ['XADD', 'k', '1-1', 'f', 'v'],
      ['PEXPIRE', 'k', lifeMs],
    ]);
    await scene.shard.settled();
    scene.toTarget.hold('up');
    const refused = await wire.pipeline([
      ['XINFO', 'CONSUMERS', 'k', 'g'],
      ['GET', 'k'],
    ]);
    wasInTime(refused[0].startsWith('-NOGROUP') && refused[1].startsWith('-WRONGTYPE'));
    const behind = scene.client({ of: scene.target });
    await until(async () => (await behind.exists('k')) === 0);
    scene.toTarget.release();
    await scene.assertEqual();
    assert.deepEqual(scene.shard.snapshot().mismatches, {});
  });
});

test('a read whose key has expired on the mirror meanwhile is no mismatch, though another client writes the key while the servers are asked', async () => {
  await withLives(async (scene, lifeMs) => {
    const [one, other] = [await scene.wire(), await scene.wire()];
    await one.ask('SET', 'k', 'old', 'PX', lifeMs);
    const before = new Set(scene.toSource.links);
    await other.ask('HELLO', 3);
    await other.ask('GET', 'other');
    const othersLane = scene.toSource.links.filter((link) => !before.has(link));
    await scene.shard.settled();
    scene.toTarget.hold('up');
    wasInTime((await one.ask('GET', 'k')) === '$3\r\nold');
    const [here, there] = [scene.client({ of: scene.source }), scene.client({ of: scene.target })];
    await until(async () => (await here.exists('k')) + (await there.exists('k')) === 0);
    // It has run on the authority, and the proxy does not know yet.
    for (const link of othersLane) link.hold('down');
    const written = other.ask('SET', 'k', 'new');
    await until(async () => (await here.exists('k')) === 1);
    scene.toTarget.release();
    await until(() => scene.shard.snapshot().mirror.queuedEffects === 0);
    // No mismatch may follow before the reply: it would be known by now.
    await sleep(100);
    for (const link of othersLane) link.release();
    assert.equal(await written, '+OK');
    await scene.assertEqual();
    assert.deepEqual(scene.shard.snapshot().mismatches, {});
  });
});

test('a write that reaches the mirror before its key has expired there', async () => {
  await withScene({}, async (scene) => {
    const wire = await scene.wire();
    const direct = scene.client({ of: scene.source });
    for (let round = 0; round < 4; round++) {
      const keys = SILENT.map(({ name }) => keyOf(name, round));
      await wire.pipeline(SILENT.map(({ setup }, i) => setup(keys[i])));
      await scene.shard.settled();
      // The mirror's keys live 35 ms longer, which is within the tolerance.
      scene.toTarget.delayMs = 35;
      await wire.pipeline(keys.map((key) => ['PEXPIRE', key, 100]));
      await until(() => scene.shard.snapshot().mirror.queuedEffects === 0);
      scene.toTarget.delayMs = 0;
      await until(async () => (await direct.exists(keys)) === 0);
      await wire.pipeline(SILENT.map(({ write }, i) => write(keys[i], round)));
      await scene.shard.settled();
    }
    await scene.assertEqual();
    assert.deepEqual(scene.shard.snapshot().mismatches, {});
  });
});

const GIVES_TTL = "redis.call('PEXPIRE', KEYS[1], ARGV[1]) return 1";

/** Ways to run a script that gives a key a TTL. */
const SCRIPTED: Readonly<Record<string, (key: string, ms: number) => readonly Command[]>> = {
  'a script': (key, ms) => [['EVAL', GIVES_TTL, 1, key, ms]],
  'a script in a transaction': (key, ms) => [['MULTI'], ['EVAL', GIVES_TTL, 1, key, ms], ['EXEC']],
};

const SHORT_LIVES = 60;

for (const [way, timed] of Object.entries(SCRIPTED)) {
  test(`writes right behind ${way} that gives a TTL of a few ms`, async () => {
    await withScene({}, async (scene) => {
      const wire = await scene.wire();
      const direct = scene.client({ of: scene.source });
      const keys = (round: number): readonly string[] => SILENT.map(({ name }) => keyOf(name, round));
      let [rounds, left] = [0, 0];
      // Some writes meet a key and some an expired one, however slow the machine is: lives become longer.
      for (let longer = 1; (left === 0 || left === rounds * SILENT.length) && longer <= 64; longer *= 2) {
        for (const until = rounds + SHORT_LIVES; rounds < until; rounds++) {
          scene.toTarget.delayMs = rounds % 4;
          const setups = SILENT.map(({ setup }, i) => setup(keys(rounds)[i]));
          const writes = SILENT.map(({ write }, i) => write(keys(rounds)[i], rounds));
          await wire.pipeline([...setups, ...keys(rounds).flatMap((key) => timed(key, 1 + longer * (rounds % 5)))]);
          await wire.pipeline(writes);
        }
        scene.toTarget.delayMs = 0;
        await sleep(20 * longer);
        await scene.assertEqual();
        left = await direct.exists(Array.from({ length: rounds }, (_, round) => keys(round)).flat());
      }
      assert.ok(left > 0 && left < rounds * SILENT.length, `all writes met the same: ${left} keys are left`);
      assert.deepEqual(scene.shard.snapshot().mismatches, {});
    });
  });
}

const LOAD_MS = 4_000;
/** Writes that met a key which was about to expire. */
const EDGES = 100;

/** A command on one of a few keys that expire all the time. */
function edgeCommand(random: () => number): Command {
  const type = Math.floor(random() * 6);
  const n = Math.floor(random() * 6);
  const key = `{k}${type}:${n}`;
  const ms = 5 + Math.floor(random() * 60);
  const field = `f${Math.floor(random() * 30)}`;
  const dice = random();
  if (dice < 0.2) return ['PEXPIRE', key, ms];
  if (dice < 0.22) return ['PERSIST', key];
  if (dice < 0.24) return ['DEL', key];
  if (dice < 0.28) return ['PTTL', key];
  switch (type) {
    case 0:
      return dice < 0.4
        ? ['SET', key, '0', 'PX', ms]
        : dice < 0.5
          ? ['SET', key, '0', 'PX', ms, 'NX']
          : dice < 0.8
            ? ['INCR', key]
            : ['GET', key];
    case 1:
      return dice < 0.5
        ? ['APPEND', key, 'x']
        : dice < 0.6
          ? ['SETRANGE', key, 5, 'yy']
          : dice < 0.7
            ? ['SETBIT', key, n * 8 + 1, 1]
            : dice < 0.8
              ? ['SET', key, 'v', 'KEEPTTL']
              : ['GET', key];
    case 2:
      return dice < 0.6
        ? ['HSET', key, field, 1]
        : dice < 0.7
          ? ['HINCRBY', key, field, 1]
          : dice < 0.75
            ? ['HDEL', key, field]
            : ['HGETALL', key];
    case 3:
      return dice < 0.6
        ? ['SADD', key, field]
        : dice < 0.7
          ? ['SREM', key, field]
          : dice < 0.75
            ? ['SUNIONSTORE', '{k}3:union', key, '{k}3:0']
            : ['SMEMBERS', key];
    case 4:
      return dice < 0.6
        ? ['ZADD', key, n, field]
        : dice < 0.7
          ? ['ZINCRBY', key, 1, field]
          : dice < 0.75
            ? ['RENAME', key, '{k}4:0']
            : ['ZRANGE', key, 0, -1, 'WITHSCORES'];
    default:
      return dice < 0.5
        ? ['RPUSH', key, field]
        : dice < 0.6
          ? ['LPOP', key]
          : dice < 0.7
            ? ['LMOVE', key, '{k}5:0', 'LEFT', 'RIGHT']
            : ['LRANGE', key, 0, -1];
  }
}

test('keys that expire all the time under load: nothing differs in the end, and nothing is unexplained', async (t) => {
  await withScene({}, async (scene) => {
    const until = performance.now() + LOAD_MS;
    let [sent, edges] = [0, 0];
    const { suspects } = partsOf(scene.shard.shard).sequencer;
    const { command } = suspects;
    suspects.command = (db, at, reason) => {
      if (reason === 'expiry-edge') edges++;
      command.call(suspects, db, at, reason);
    };
    const drive = async (id: number): Promise<void> => {
      const wire = await scene.wire();
      await wire.ask('HELLO', 2 + (id % 2));
      while (performance.now() < until || edges < EDGES) {
        const commands = Array.from({ length: 1 + Math.floor(Math.random() * 10) }, () => edgeCommand(Math.random));
        const asTransaction = Math.random() < 0.2;
        await wire.pipeline(asTransaction ? [['MULTI'], ...commands, ['EXEC']] : commands, 20_000);
        sent += commands.length;
        // The mirror is now near, now far.
        scene.toTarget.delayMs = Math.random() < 0.5 ? 0 : Math.floor(Math.random() * 8);
        await sleep(Math.random() * 4);
      }
    };
    await Promise.all(Array.from({ length: 8 }, (_, id) => drive(id)));
    scene.toTarget.delayMs = 0;
    await scene.shard.settled(20_000);
    const { allowed, mismatches, inconclusive, matched } = scene.shard.snapshot();
    t.diagnostic(JSON.stringify({ sent, edges, matched, allowed, inconclusive, mismatches }));
    assert.deepEqual(mismatches, {}, JSON.stringify(scene.shard.findings().slice(0, 3)));
    // The last times to live are short: they must have run out, or two looks at two servers would find edges of their
    // own.
    await sleep(100);
    await scene.assertEqual();
  });
});
