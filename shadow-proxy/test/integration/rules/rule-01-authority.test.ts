/**
 * Rule 1: who is right can change. Nothing is copied from an authority that is not the one that was written to.
 *
 * Needs real servers: run IDs, replication IDs and roles of servers that restart or become replicas.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask, ended, job } from '../../support/jobs.js';
import { startRedis } from '../../../src/local/servers.js';
import { until } from '../../support/shard.js';
import { withScene, type Scene } from './scene.js';

const KEYS = Array.from({ length: 200 }, (_, i) => `k:${i}`);

async function fill({ client, shard }: Scene): Promise<void> {
  const proxy = client();
  await Promise.all(KEYS.map((key) => proxy.set(key, `value of ${key}`)));
  await shard.settled();
}

/** Reads keys that only the mirror has, so that every one of them is suspect. */
async function readAll({ client, shard }: Scene): Promise<void> {
  const proxy = client();
  await Promise.all(KEYS.map((key) => proxy.get(key)));
  await until(
    () => shard.snapshot().suspects.total >= KEYS.length || shard.snapshot().workloads.some(({ clean }) => !clean),
  );
}

/** Gives repairs every chance: the mirror has confirmed many later writes. */
async function passTime({ client, shard }: Scene): Promise<void> {
  const proxy = client();
  for (let i = 0; i < 100; i++) await proxy.set('later', i);
  await until(() => shard.snapshot().mirror.queuedEffects === 0);
}

async function countOn(scene: Scene, side: 'source' | 'target'): Promise<number> {
  return scene.client({ of: scene[side] }).exists(...KEYS);
}

test('an authority that restarts empty freezes repairs, and the mirror keeps its keys', async () => {
  await withScene({}, async (scene) => {
    await fill(scene);
    await scene.source.kill('SIGKILL');
    await scene.source.start();
    await readAll(scene);
    assert.match(scene.shard.snapshot().frozen ?? '', /source restarted or was replaced/);
    await passTime(scene);
    assert.equal(await countOn(scene, 'source'), 0);
    assert.equal(await countOn(scene, 'target'), KEYS.length);
    assert.ok(scene.shard.snapshot().suspects.total >= KEYS.length);
    await assert.rejects(scene.shard.shard.changeStage({ workload: 'default', stage: 'live' }), { code: 'refused' });
  });
});

test('a difference that a freeze would keep is repaired where nothing is frozen', async () => {
  await withScene({}, async (scene) => {
    await fill(scene);
    await scene.client({ of: scene.source }).del(KEYS);
    await Promise.all(KEYS.map((key) => scene.client().get(key)));
    await scene.assertEqual();
    assert.equal(await countOn(scene, 'target'), 0);
    assert.ok(scene.shard.ledger.total >= KEYS.length);
  });
});

for (const how of ['at once', 'drained'] as const) {
  test(`an authority that restarted empty while the proxy was down (stopped ${how}) freezes repairs`, async () => {
    await withScene({}, async (scene) => {
      await fill(scene);
      await scene.stopShard(how);
      await scene.source.restart();
      await scene.startShard();
      assert.match(scene.shard.snapshot().frozen ?? '', /source restarted or was replaced/);
      await readAll(scene);
      await passTime(scene);
      assert.equal(await countOn(scene, 'target'), KEYS.length);
      // It is not forgotten by the next process either.
      await scene.stopShard();
      await scene.startShard();
      assert.match(scene.shard.snapshot().frozen ?? '', /source restarted or was replaced/);
    });
  });
}

test('the target is an authority like any other once it is live', async () => {
  await withScene({}, async (scene) => {
    await fill(scene);
    await scene.shard.shard.changeStage({ workload: 'default', stage: 'live' });
    await scene.client().set('k:0', 'written on the target');
    await scene.shard.settled();
    await scene.stopShard();
    await scene.target.restart();
    await scene.startShard();
    assert.match(scene.shard.snapshot().frozen ?? '', /target restarted or was replaced/);
    await readAll(scene);
    await passTime(scene);
    assert.equal(await countOn(scene, 'target'), 0);
    assert.equal(await countOn(scene, 'source'), KEYS.length);
  });
});

test('after the operator forces the change away from a lost authority, keys are repaired from the new one', async () => {
  await withScene({}, async (scene) => {
    await fill(scene);
    await scene.source.restart();
    await readAll(scene);
    await scene.shard.shard.changeStage({ workload: 'default', stage: 'live', force: true });
    assert.equal(scene.shard.snapshot().frozen, null);
    await until(() => scene.shard.snapshot().suspects.total === 0);
    assert.equal(await countOn(scene, 'source'), KEYS.length);
    assert.equal(await countOn(scene, 'target'), KEYS.length);
    // Keys that no client has read were lost, too: the proxy verifies them by itself, perhaps by now.
    const { workloads, job } = scene.shard.snapshot();
    assert.ok(!workloads[0].clean || job?.automatic === true, JSON.stringify({ workloads, job }));
  });
});

test('a mirror that restarts empty makes the whole shard suspect, blocks live until every key is verified, and is repaired', async () => {
  const workloads = [{ name: 'a', keys: ['k:*'], stage: 'shadow' as const }];
  await withScene({ workloads }, async (scene) => {
    await fill(scene);
    const before = scene.shard.snapshot().target.runId;
    await scene.target.restart();
    await until(() => ![before, null].includes(scene.shard.snapshot().target.runId));
    assert.deepEqual(
      scene.shard.snapshot().workloads.map(({ clean }) => clean),
      [false, false],
    );
    assert.equal(scene.shard.snapshot().frozen, null);
    // A restart of the proxy does not make it clean.
    await scene.stopShard();
    await scene.startShard();
    assert.deepEqual(
      scene.shard.snapshot().workloads.map(({ clean }) => clean),
      [false, false],
    );
    for (const workload of ['a', 'default']) {
      await assert.rejects(scene.shard.shard.changeStage({ workload, stage: 'live' }), {
        code: 'not-clean',
        message: /restarted or was replaced/,
      });
    }
    // The authority is as it was: the repair begins without an operator.
    await Promise.all(KEYS.slice(0, 5).map((key) => scene.client().append(key, '!')));
    await until(() => scene.shard.snapshot().workloads.every(({ clean }) => clean), 20_000);
    await scene.assertEqual();
    assert.equal(await scene.client({ of: scene.target }).get(KEYS[2]), `value of ${KEYS[2]}!`);
  });
});

/** The source has restarted empty; since then one key was written again, and some were read. */
async function loseAll(scene: Scene): Promise<void> {
  await fill(scene);
  await scene.source.kill('SIGKILL');
  await scene.source.start();
  const proxy = scene.client();
  await proxy.set('k:0', 'written since');
  await proxy.append('k:1', 'written since');
  await Promise.all(KEYS.slice(2, 20).map((key) => proxy.get(key)));
  await until(() => scene.shard.snapshot().frozen !== null && scene.shard.snapshot().mirror.queuedEffects === 0);
}

test('keys that an authority has lost are listed while repairs are frozen, also keys that were read since', async () => {
  await withScene({}, async (scene) => {
    await loseAll(scene);
    ask(scene, { kind: 'verify' });
    await ended(scene);
    const { state, differences, examples } = job(scene);
    assert.deepEqual([state, differences], ['done', { extra: KEYS.length - 2, value: 1 }]);
    assert.equal(examples.length, 20);
    assert.ok(examples.some(({ kind, key }) => kind === 'value' && key === 'k:1'));
    assert.throws(() => ask(scene, { kind: 'verify', repair: true }), { code: 'frozen' });
    assert.equal(await countOn(scene, 'target'), KEYS.length);
  });
});

test('an authority that is accepted as it is, is what the mirror becomes', async () => {
  await withScene({}, async (scene) => {
    const { shard } = scene.shard;
    await assert.rejects(shard.acceptAuthority(null), { code: 'not-frozen' });
    await loseAll(scene);
    await assert.rejects(shard.acceptAuthority(['the process before that']), { code: 'changed' });
    assert.equal(await countOn(scene, 'target'), KEYS.length);
    assert.deepEqual(await shard.acceptAuthority([scene.shard.snapshot().source.runId!]), ['source']);
    await until(() => scene.shard.snapshot().workloads.every(({ clean }) => clean), 20_000);
    assert.equal(scene.shard.snapshot().frozen, null);
    await scene.assertEqual();
    assert.equal(await countOn(scene, 'target'), 2);
    await shard.changeStage({ workload: 'default', stage: 'live' });
    await scene.stopShard('drained');
    await scene.startShard();
    assert.equal(scene.shard.snapshot().frozen, null);
  });
});

for (const running of [true, false]) {
  test(`a plan may accept it beforehand, ${running ? 'while the proxy runs' : 'when the proxy starts'}`, async () => {
    await withScene({ onAuthorityChange: 'accept' }, async (scene) => {
      await fill(scene);
      if (!running) await scene.stopShard('drained');
      await scene.source.restart();
      if (!running) await scene.startShard();
      await scene.client().set('k:0', 'written since');
      await until(() => scene.shard.snapshot().workloads.every(({ clean }) => clean), 20_000);
      assert.equal(scene.shard.snapshot().frozen, null);
      await scene.assertEqual();
      assert.equal(await countOn(scene, 'target'), 1);
    });
  });
}

test('what an authority has lost is given back from the mirror, exactly, while clients write', async () => {
  await withScene({}, async (scene) => {
    const COUNTERS = 200;
    const counters = Array.from({ length: COUNTERS }, (_, i) => `n:${i}`);
    const before = scene.client();
    await before.mset(Object.fromEntries(counters.map((key) => [key, 1_000])));
    await before.hset('hash', 'a', 1, 'b', 2);
    await before.rpush('list', 1, 2, 3);
    await before.zadd('zset', 1.5, 'a');
    await before.set('timed', 'v', 'EX', 1_000);
    await before.set('gone', 'v');
    await loseAll(scene);
    await before.del('gone');
    // Polled in vain: nothing is written.
    assert.deepEqual(
      [await before.lpop('list'), await before.zpopmin('zset'), await before.getdel('timed')],
      [null, [], null],
    );

    // Half of the counters, in the middle of it.
    const replies = new Map<string, number>();
    const client = scene.client();
    const writer = (async () => {
      for (const key of counters.filter((_, i) => i % 2 === 0)) replies.set(key, await client.incr(key));
    })();
    ask(scene, { kind: 'restore' });
    await ended(scene);
    await writer;
    const { state, repaired, unsure, failed } = job(scene);
    assert.deepEqual([state, failed], ['done', 0]);
    assert.ok(repaired >= KEYS.length - 2 + COUNTERS / 2 + 4 && unsure >= 2, JSON.stringify(job(scene)));
    const source = scene.client({ of: scene.source });
    assert.deepEqual(
      [await source.get('k:0'), await source.get('k:1'), await source.get('k:2'), await source.exists('gone')],
      ['written since', 'written since', 'value of k:2', 0],
    );
    assert.deepEqual(
      [await source.hgetall('hash'), await source.lrange('list', 0, -1), await source.zscore('zset', 'a')],
      [{ a: '1', b: '2' }, ['1', '2', '3'], '1.5'],
    );
    const left = await source.pttl('timed');
    assert.ok(left > 900_000 && left <= 1_000_000, String(left));
    for (const key of counters) assert.equal(Number(await source.get(key)), replies.get(key) ?? 1_000, key);

    await scene.shard.shard.acceptAuthority(null);
    await until(() => scene.shard.snapshot().workloads.every(({ clean }) => clean), 20_000);
    await scene.assertEqual();
    assert.equal(await countOn(scene, 'target'), KEYS.length);
  });
});

test('nothing is given back where it is not known what was written since', async () => {
  await withScene({}, async (scene) => {
    await fill(scene);
    assert.throws(() => ask(scene, { kind: 'restore' }), { code: 'nothing-to-do' });
    await scene.stopShard('drained');
    await scene.source.restart();
    await scene.startShard();
    assert.throws(() => ask(scene, { kind: 'restore' }), {
      code: 'nothing-to-do',
      message: /the writes since then are unknown/,
    });
    assert.equal(await countOn(scene, 'source'), 0);
  });
});

test('an authority that was a replica for a moment, and is empty under the same run ID, freezes repairs (rule 21)', async () => {
  const empty = await startRedis({ config: { 'repl-diskless-sync-delay': 0 } });
  try {
    await withScene({}, async (scene) => {
      await fill(scene);
      const source = scene.client({ of: scene.source });
      const before = scene.shard.snapshot().source;
      await source.replicaof('127.0.0.1', empty.port);
      await until(async () => (await source.info('replication')).includes('master_link_status:up'), 20_000);
      await source.call('REPLICAOF', 'NO', 'ONE');
      await readAll(scene);
      await until(() => scene.shard.snapshot().frozen !== null, 5_000);
      assert.match(scene.shard.snapshot().frozen!, /^the source (was|is) a replica of /);
      await passTime(scene);
      assert.equal(await countOn(scene, 'source'), 0);
      assert.equal(await countOn(scene, 'target'), KEYS.length, 'no read deletes anything on the mirror');
      const after = scene.shard.snapshot().source;
      assert.equal(after.runId, before.runId);
      assert.notEqual(after.replId, before.replId);
      // The next process knows of it, too.
      await scene.stopShard();
      await scene.startShard();
      assert.match(scene.shard.snapshot().frozen ?? '', /^the source was a replica of another server meanwhile/);
      // The previous ID is not accepted: an operator who gives it has not seen what the source holds now.
      await assert.rejects(scene.shard.shard.acceptAuthority([`${before.runId}/${before.replId}`]), {
        code: 'changed',
      });
      await scene.shard.shard.acceptAuthority([`${after.runId}/${after.replId}`]);
      await until(() => scene.shard.snapshot().workloads.every(({ clean }) => clean), 20_000);
      await scene.assertEqual();
      assert.equal(await countOn(scene, 'target'), 0);
    });
  } finally {
    await empty.stop();
  }
});

test('an authority that is a replica freezes repairs, and is not accepted as long as it is one', async () => {
  await withScene({}, async (scene) => {
    await fill(scene);
    const source = scene.client({ of: scene.source });
    // Of a server that is not there: it keeps what it has.
    await source.replicaof('127.0.0.1', 1);
    await until(() => scene.shard.snapshot().frozen !== null, 5_000);
    assert.equal(
      scene.shard.snapshot().frozen,
      'the source is a replica of 127.0.0.1:1, and is an authority: repairs would delete on the mirror what the replica lost',
    );
    await assert.rejects(scene.shard.shard.acceptAuthority(null), { code: 'replica', message: /promote it first/ });
    await source.call('REPLICAOF', 'NO', 'ONE');
    await scene.shard.shard.acceptAuthority(null);
    await until(() => scene.shard.snapshot().workloads.every(({ clean }) => clean), 20_000);
    await scene.assertEqual();
  });
});

test('a replication ID that changes with the data untouched freezes nothing: a first replica, and a promotion without a synchronization', async () => {
  const replica = await startRedis();
  try {
    await withScene({}, async (scene) => {
      await fill(scene);
      const source = scene.client({ of: scene.source });
      const replId = (): string | null => scene.shard.snapshot().source.replId;
      const first = replId();
      await scene.client({ of: replica }).replicaof('127.0.0.1', scene.source.port);
      await until(() => replId() !== first, 10_000);
      const second = replId();
      await source.multi().replicaof('127.0.0.1', 1).call('REPLICAOF', 'NO', 'ONE').exec();
      await until(() => replId() !== second, 10_000);
      assert.equal(scene.shard.snapshot().frozen, null);
      await scene.assertEqual();
      assert.deepEqual(
        scene.shard.snapshot().workloads.map(({ suspect }) => suspect),
        [null],
      );
    });
  } finally {
    await replica.stop();
  }
});
