/**
 * What a chunked copy costs the servers' other clients.
 *
 * Needs real servers: how long 100 MiB in one key hold up other clients of each server.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { CHUNK } from '../../../src/copy/large/large.js';
import { assertCopied, DIRECTIONS, KEY, wayOf, withScene, type Scene } from './large.js';
import { probing, type Pings } from './prober.js';

/**
 * No server may be away for longer: 99 of 100 times here, for a thread of KeyDB that waits for another spins, which
 * looks like work.
 */
const STALL_MS = 20;
const ONE_THREAD = { target: { config: { 'server-threads': 1 } } };
const say = ({ count, median, p99, max, busy99, busy }: Pings): string =>
  `${count} PINGs, median ${median.toFixed(2)} ms, 99 % ${p99.toFixed(2)} ms, longest ${max.toFixed(1)} ms, at work meanwhile 99 % ${busy99.toFixed(1)} ms, longest ${busy.toFixed(1)} ms`;

async function measured(t: TestContext, scene: Scene): Promise<void> {
  const servers = [scene.authority, scene.mirror];
  const probes = await Promise.all(servers.map(probing));
  const memory = process.memoryUsage.rss();
  const begun = performance.now();
  const copied = await scene.copy({ limits: CHUNK });
  const ms = performance.now() - begun;
  const grown = process.memoryUsage.rss() - memory;
  const pings = await Promise.all(probes.map((probe) => probe.stop()));
  t.diagnostic(
    `${copied.elements} elements, ${(copied.bytes / 2 ** 20).toFixed(1)} MiB in ${ms.toFixed(0)} ms, the process grew by ${(grown / 2 ** 20).toFixed(0)} MiB`,
  );
  for (const [i, of] of servers.entries()) t.diagnostic(`${of.label}: ${say(pings[i])}`);
  assert.deepEqual([copied.outcome, copied.restarts], ['copied', 0]);
  for (const [i, of] of servers.entries())
    assert.ok(pings[i].busy99 < STALL_MS && pings[i].busy < 3 * STALL_MS, `${of.label}: ${say(pings[i])}`);
  await assertCopied(scene);
}

for (const stage of DIRECTIONS) {
  test(`a hash of 200,000 fields stalls neither server, ${wayOf(stage)}`, async (t) => {
    await withScene(
      stage,
      async (scene) => {
        for (let at = 0; at < 200_000; at += 2000)
          await scene.before.hset(
            KEY,
            ...Array.from({ length: 2000 }, (_, i) => [`field:${at + i}`, `the value of ${at + i}`]).flat(),
          );
        await measured(t, scene);
      },
      ONE_THREAD,
    );
  });

  test(`a string of 100 MiB stalls neither server, ${wayOf(stage)}`, async (t) => {
    await withScene(
      stage,
      async (scene) => {
        await scene.before.set(KEY, Buffer.alloc(100 << 20, 'a string that is long'));
        await measured(t, scene);
      },
      ONE_THREAD,
    );
  });
}
