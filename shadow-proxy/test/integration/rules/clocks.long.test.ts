/**
 * Clocks apart, and one that is set in mid-run: the moment at which a key ends is measured on both servers.
 *
 * Needs real processes: servers whose clocks are set, while they run, by a library that is loaded before libc.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { settableClock } from '../../support/clock.js';
import { until } from '../../support/shard.js';
import { withRig, type Rig } from '../../support/rig.js';

const LEFT_MS = 3_000;
const TOLERANCE_MS = 50;
/** The question is asked so often; its answer may be as late. */
const LOOK_MS = 5;

/** Sets keys that end in LEFT_MS by the authority's clock. @returns them, and when they have to end, on our clock */
async function setKeys(rig: Rig, authorityOffMs: number): Promise<{ names: string[]; at: number }> {
  const client = rig.client();
  await client.ping();
  const now = performance.now();
  const at = Date.now() + authorityOffMs + LEFT_MS;
  await client
    .pipeline()
    .set('px', 'v', 'PX', LEFT_MS)
    .set('pxat', 'v', 'PXAT', at)
    .set('pexpire', 'v')
    .pexpire('pexpire', LEFT_MS)
    .hset('pexpireat', 'f', 'v')
    .pexpireat('pexpireat', at)
    .eval("redis.call('SET', KEYS[1], 'v', 'PX', ARGV[1])", 1, 'script', LEFT_MS)
    .exec();
  // Both have them.
  await rig.shard.settled();
  return { names: ['px', 'pxat', 'pexpire', 'pexpireat', 'script'], at: now + LEFT_MS };
}

/** When each key was there no longer, on our clock. */
async function endsOf({ port }: { port: number }, names: readonly string[]): Promise<Record<string, number>> {
  const client = new Redis(port, '127.0.0.1');
  const ends: Record<string, number> = {};
  while (Object.keys(ends).length < names.length) {
    const there = await Promise.all(names.map((name) => client.exists(name)));
    for (const [i, name] of names.entries()) if (there[i] === 0) ends[name] ??= performance.now();
    await sleep(LOOK_MS);
  }
  client.disconnect();
  return ends;
}

/** Both clocks are off where it is the proxy's that is. */
const OFF = {
  source: (off: number) => ({ source: off, target: 0 }),
  target: (off: number) => ({ source: 0, target: off }),
  proxy: (off: number) => ({ source: -off, target: -off }),
};

for (const [whose, offs] of Object.entries(OFF))
  for (const off of [-300, -5, 5, 300])
    test(`the clock of the ${whose} is ${off} s off: keys end on both sides when they have to`, async (t) => {
      const [sourceClock, targetClock] = [await settableClock(t), await settableClock(t)];
      if (sourceClock === null || targetClock === null) return;
      const { source, target } = offs(off);
      sourceClock.set(source);
      targetClock.set(target);
      const servers = { source: { env: sourceClock.env }, target: { env: targetClock.env } };
      await withRig({ servers }, async (rig) => {
        const ahead = (target - source) * 1000;
        await until(() => Math.abs(rig.shard.snapshot().clockAheadMs - ahead) < 50);
        const { names, at } = await setKeys(rig, source * 1000);
        const [here, there] = await Promise.all([endsOf(rig.source, names), endsOf(rig.target, names)]);
        for (const name of names) {
          const late = `${name} ended ${(here[name] - at).toFixed(0)} ms late at the source, ${(there[name] - at).toFixed(0)} ms at the target`;
          t.diagnostic(late);
          for (const ended of [here[name], there[name]])
            assert.ok(Math.abs(ended - at) <= TOLERANCE_MS + LOOK_MS, late);
        }
        await rig.shard.settled();
        const { mismatches, workloads } = rig.shard.snapshot();
        assert.deepEqual([mismatches, workloads[0].clean], [{}, true], JSON.stringify(rig.shard.findings().slice(-3)));
      });
    });

for (const off of [-300, -5, 5, 300])
  test(`the target's clock is set by ${off} s: the workload is suspect, by name, until keys are as they have to be`, async (t) => {
    const clock = await settableClock(t);
    if (clock === null) return;
    await withRig({ servers: { target: { env: clock.env } } }, async (rig) => {
      const client = rig.client();
      await client.set('key', 'v', 'PX', 1_000_000);
      await rig.shard.settled();
      clock.set(off);
      const why = (): string => JSON.stringify(rig.shard.snapshot().workloads[0].suspect);
      await until(() => !rig.shard.snapshot().workloads[0].clean);
      t.diagnostic(why());
      assert.match(why(), /clock/);
      await until(
        () => rig.shard.snapshot().workloads[0].clean,
        30_000,
        () => JSON.stringify(rig.shard.snapshot().job),
      );
      const [here, there] = await Promise.all([rig.source, rig.target].map((of) => rig.client({ of }).pttl('key')));
      assert.ok(Math.abs(here - there) <= TOLERANCE_MS + 2 * LOOK_MS, `${here} ≠ ${there}`);
    });
  });
