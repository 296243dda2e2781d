/**
 * Rule 13: a target that evicts may lack keys that the source still has; this difference is allowed.
 *
 * Needs real servers: which keys a server evicts, and evicted_keys of INFO.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { renderShard } from '../../../src/cli/status.js';
import { ask, ended, job } from '../../support/jobs.js';
import { withRig } from '../../support/rig.js';
import { until } from '../../support/shard.js';

const KEYS = 12_000;
const EVICTING = { target: { config: { maxmemory: '12mb', 'maxmemory-policy': 'allkeys-lru' } } };

test('a key that the target evicted is an allowed difference: it is counted and repaired', async () => {
  await withRig({ servers: EVICTING }, async ({ wire, target, client, shard }) => {
    const proxy = await wire();
    const behind = client({ of: target });
    for (let from = 0; from < KEYS; from += 1000) {
      await proxy.pipeline(Array.from({ length: 1000 }, (_, i) => ['SET', `k:${from + i}`, 'x'.repeat(1500)]));
    }
    await shard.settled();
    const evicted = Number(/evicted_keys:(\d+)/.exec(await behind.info('stats'))![1]);
    assert.ok(evicted > 1000, `${evicted}`);
    // Many at once, the same one several times, and several in one command.
    const lost: string[] = [];
    for (let i = 0; i < KEYS && lost.length < 100; i++) if (!(await behind.exists(`k:${i}`))) lost.push(`k:${i}`);
    const replies = await proxy.pipeline([...lost.slice(0, 60), ...lost.slice(0, 20)].map((key) => ['GET', key]));
    assert.ok(replies.every((reply) => reply.startsWith('$1500')));
    await proxy.ask('MGET', ...lost.slice(60, 70));
    await proxy.pipeline([
      ['EXISTS', lost[70]],
      ['STRLEN', lost[71]],
      ['TYPE', lost[72]],
      ['PTTL', lost[73]],
    ]);
    await shard.settled(20_000);
    const { allowed, mismatches, inconclusive } = shard.snapshot();
    assert.deepEqual(mismatches, {}, JSON.stringify(shard.findings().slice(0, 3)));
    assert.ok(allowed.evicted >= 60, JSON.stringify({ allowed, inconclusive }));
    // A repair writes the keys that were read to the target again; the target may evict some of them again.
    assert.ok((await behind.exists(...lost.slice(0, 74))) > 50);
  });
});

test('an eviction allows no other loss of a key', async () => {
  await withRig({ servers: EVICTING }, async ({ wire, target, client, shard }) => {
    const proxy = await wire();
    const behind = client({ of: target });
    await proxy.pipeline(Array.from({ length: 20 }, (_, i) => ['SET', `k:${i}`, i]));
    await shard.settled();
    // Nothing was evicted: the key is missing for another reason.
    await behind.del('k:3');
    await proxy.ask('GET', 'k:3');
    await shard.settled();
    assert.deepEqual(shard.snapshot().mismatches, { 'missing-on-mirror': 1 });
    assert.equal(await behind.get('k:3'), '3');
    // And a value that differs is none that was evicted, whatever else was.
    for (let from = 0; from < KEYS; from += 1000) {
      await proxy.pipeline(Array.from({ length: 1000 }, (_, i) => ['SET', `fill:${from + i}`, 'x'.repeat(1500)]));
    }
    await shard.settled();
    await proxy.ask('SET', 'fresh', 'a');
    await shard.settled();
    await behind.set('fresh', 'b');
    await proxy.ask('GET', 'fresh');
    await shard.settled();
    assert.deepEqual(shard.snapshot().mismatches, { 'missing-on-mirror': 1, value: 1 });
  });
});

for (const stage of ['shadow', 'live'] as const) {
  test(`an authority without memory left is still copied, in ${stage}`, async () => {
    await withRig({ default: { stage } }, async ({ wire, source, target, client, shard }) => {
      const proxy = await wire();
      const [authority, mirror] = stage === 'shadow' ? [source, target] : [target, source];
      await proxy.pipeline([
        ['SET', 'k', 'v'],
        ['SET', 'passing', 'v', 'PX', 90_000],
        ['SET', 'gone', 'v'],
      ]);
      await shard.settled();
      await client({ of: authority }).config('SET', 'maxmemory', 1);
      await client({ of: mirror }).del('k', 'passing');
      await client({ of: authority }).del('gone');
      await proxy.pipeline([
        ['GET', 'k'],
        ['GET', 'passing'],
        ['GET', 'gone'],
      ]);
      await shard.settled();
      const copied = client({ of: mirror });
      assert.deepEqual(await copied.mget('k', 'passing', 'gone'), ['v', 'v', null]);
      assert.ok((await copied.pttl('passing')) > 80_000);
    });
  });
}

test('a source that evicts is said to: the target keeps the keys, verify finds them, and its repair deletes them there', async () => {
  await withRig(
    { servers: { source: { config: { maxmemory: '5mb', 'maxmemory-policy': 'allkeys-lru' } } } },
    async (rig) => {
      const { wire, source, target, client, shard } = rig;
      const proxy = await wire();
      await until(() => shard.snapshot().target.version !== null);
      for (let from = 0; from < 6_000; from += 1_000) {
        await proxy.pipeline(Array.from({ length: 1_000 }, (_, i) => ['SET', `k:${from + i}`, 'x'.repeat(1_500)]));
      }
      await shard.settled();
      const [from, to] = [client({ of: source }), client({ of: target })];
      // It evicts no more from here on.
      await from.config('SET', 'maxmemory', 0);
      const lost = (await to.dbsize()) - (await from.dbsize());
      assert.ok(lost > 1_000, `${lost}`);
      await until(
        () => shard.snapshot().source.evicted === lost,
        15_000,
        () => JSON.stringify(shard.snapshot().source),
      );
      const { source: seen, target: kept } = shard.snapshot();
      assert.deepEqual([seen.evicting, kept.evicting, kept.evicted], [true, false, 0]);
      assert.match(
        renderShard(shard.snapshot()).replace(/\s+/g, ' '),
        /EVICTING the source is evicting keys: [\d,]+ keys since the proxy started, the last .* the target keeps them\. verify reports them as differences/,
      );
      const { gates } = await shard.shard.promote({ workload: 'default', dryRun: true });
      assert.match(
        gates.find(({ name }) => name === 'evictions')!.evidence,
        /the source has evicted [\d,]+ keys since the proxy started, and the target still holds them/,
      );
      // A key that is deleted after the source evicted it must be deleted on the target, too.
      let evicted = 0;
      while (await from.exists(`k:${evicted}`)) evicted++;
      assert.equal(await proxy.ask('DEL', `k:${evicted}`), ':0');
      await shard.settled();
      assert.equal(await to.exists(`k:${evicted}`), 0);
      ask(rig, { kind: 'verify', repair: true, deletes: lost });
      await ended(rig);
      assert.deepEqual(job(rig).differences, { extra: lost - 1 });
      assert.equal(await to.dbsize(), await from.dbsize());
    },
  );
});
