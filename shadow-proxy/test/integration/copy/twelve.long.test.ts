/**
 * Twelve Redis into three KeyDB, under writes: each key is on the target that it belongs to, and unowned keys are
 * reported.
 *
 * Needs real servers: twelve Redis and three KeyDB with many keys, under writes.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keyspace } from '../../support/keyspace.js';
import { direct, withSharedTarget, type Shared } from '../../support/shared.js';
import { until } from '../../support/shard.js';

const [SHARDS, TARGETS, KEYS] = [12, 3, 600];
const all = Array.from({ length: SHARDS }, (_, i) => i);

/** Of every type, from before anybody wrote twice. */
const existing = (shard: number): (string | number)[][] =>
  Array.from({ length: KEYS }, (_, n): (string | number)[] => {
    const key = `s${shard}:old:${n}`;
    return [
      ['SET', key, n],
      ['RPUSH', key, n, n + 1],
      ['SADD', key, n, 'x'],
      ['HSET', key, 'f', n],
      ['ZADD', key, n, 'm'],
      ['XADD', key, '1-1', 'f', n],
    ][n % 6];
  });

/** Writers of every shard, on old keys and new ones, until it is over. */
function write(shared: Shared): { end(): Promise<void> } {
  let over = false;
  const writing = all.map(async (i) => {
    for (let n = 0; !over; n++) {
      const [key, fresh] = [`s${i}:old:${(n * 6) % KEYS}`, `s${i}:new:${n % 50}`];
      await shared.wire(i).pipeline([
        ['INCR', key],
        ['HINCRBY', `${fresh}:h`, 'f', 1],
        ['SET', fresh, n, 'PX', 40],
        ['DEL', `s${i}:new:${(n + 7) % 50}:h`],
        ['SPOP', `s${i}:old:${((n * 6) % KEYS) + 2}`],
      ]);
    }
  });
  return {
    async end() {
      over = true;
      await Promise.all(writing);
    },
  };
}

/** What shard by shard the sources hold is what the targets hold, and nothing else. */
async function assertEqual(shared: Shared, besides: readonly string[]): Promise<void> {
  await shared.settled();
  // Each server ends a key at a moment of its own.
  for (const server of [...shared.sources, ...shared.targets])
    await until(async () => !/expires=[1-9]/.test(String((await direct(server, ['INFO', 'keyspace']))[0])));
  for (const [t, target] of shared.targets.entries()) {
    const there = await keyspace(target);
    const mine = await Promise.all(all.filter((i) => i % TARGETS === t).map((i) => keyspace(shared.sources[i])));
    for (const [key, { type, value }] of mine.flatMap((keys) => [...keys])) {
      const { type: otherType, value: otherValue } = there.get(key) ?? {};
      assert.deepEqual([key, otherType, otherValue], [key, type, value]);
      there.delete(key);
    }
    assert.deepEqual(
      [...there.keys()].filter((key) => !besides.includes(key)),
      [],
      `target ${t}`,
    );
  }
}

test('twelve shards into three targets', async () => {
  await withSharedTarget({ owns: all.map((i) => [`s${i}:*`]), targets: TARGETS, stage: 'off' }, async (shared) => {
    for (const i of all) await direct(shared.sources[i], ...existing(i));
    await direct(shared.targets[1], ['SET', 'stray', 1], ['SET', 's4:stray', 1]);
    // Left over from when it was another's.
    await direct(shared.sources[0], ['SET', 's3:old:0', 'outdated']);
    await assert.rejects(shared.shards[4].shard.changeStage({ workload: 'default', stage: 'dualwrite' }), {
      code: 'gates-closed',
      message: /1 are foreign keys/,
    });
    const consent = { overwrite: false, deleteForeign: true, confirm: 1 };
    for (const { shard } of shared.shards)
      await shard.changeStage({ workload: 'default', stage: 'dualwrite', consent });
    const writers = write(shared);
    const backfills = await Promise.all(all.map((i) => shared.job(i, { kind: 'backfill' })));
    assert.deepEqual(
      backfills.map(({ state, failed, listed }) => [state, failed, listed]),
      all.map((i) => ['done', 0, i === 0 ? { 'other-shard': 1 } : {}]),
    );
    await shared.moveAll('shadow');
    const verified = await Promise.all(all.map((i) => shared.job(i, { kind: 'verify', repair: true })));
    assert.deepEqual(
      verified.map(({ state, differences }) => [state, differences]),
      all.map((i) => ['done', i % TARGETS === 1 ? { unowned: 1 } : {}]),
    );
    await direct(shared.sources[0], ['DEL', 's3:old:0']);
    await shared.moveAll('live');
    const live = await Promise.all(all.map((i) => shared.job(i, { kind: 'verify' })));
    assert.deepEqual(
      live.map(({ differences }) => differences),
      verified.map(({ differences }) => differences),
    );
    await writers.end();
    await assertEqual(shared, ['0:stray']);
    // A source counts what has expired until it is removed.
    for (const i of all)
      await until(
        async () => (await shared.wire(i).ask('DBSIZE')) === (await direct(shared.sources[i], ['DBSIZE']))[0],
      );
    assert.deepEqual(
      shared.shards.map(({ shard }) => [shard.snapshot().mismatches, shard.snapshot().otherShardCommands]),
      all.map(() => [{}, 0]),
    );
  });
});
