/**
 * Faults of the proxy's own process, of its disk and of the clocks: the suspects are known afterwards, and repaired.
 *
 * Needs real processes: SIGKILL of the proxy, a disk that is full, and clocks that are set.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Stage } from '../../../src/route/stage.js';
import { settableClock, type SettableClock } from '../../support/clock.js';
import { fillDisk, freeDisk, smallDisk } from '../../support/disk.js';
import { until } from '../../support/shard.js';
import { order, rehearse, type Rehearsal } from './rehearsal.js';
import { killProxy } from './rehearsed-faults.js';

/** Clients reconnect by themselves. Each client then counts on a new counter. */
const RESTARTS: Pick<Rehearsal, 'reconnects'> = { reconnects: true };

for (const stage of ['shadow', 'live'] satisfies Stage[]) {
  test(`the proxy is killed in mid-traffic, three times (${stage})`, (t) =>
    rehearse(t, {
      ...RESTARTS,
      stage,
      faultMs: 9_000,
      fault: async (scene) => {
        for (let i = 0; i < 3; i++) await killProxy(scene).then(() => sleep(500));
      },
    }));
}

test('the proxy is killed in mid-backfill', (t) =>
  rehearse(t, {
    ...RESTARTS,
    stage: 'dualwrite',
    faultMs: 5_000,
    before: async ({ source }) => {
      const client = new Redis({ port: source.port });
      const pipeline = client.pipeline();
      for (let i = 0; i < 9_000; i++) pipeline.hset(`cold:before:${i}`, 'a', i, 'b', 'x');
      await pipeline.exec();
      client.disconnect();
    },
    fault: async (scene) => {
      await order(scene, '/api/jobs', [{ kind: 'backfill', limits: { keysPerSecond: 2_000 } }]);
      await until(async () => ((await scene.status()).job?.copied ?? 0) > 2_000, 10_000);
      await killProxy(scene);
      // The backfill continues; if a script was running whose keys are unknown, all keys are verified instead.
      let job: unknown;
      await until(async () => (job = (await scene.status()).job) !== null, 5_000).catch(() => undefined);
      assert.ok(job, JSON.stringify({ ...(await scene.status()), latency: null }));
    },
  }));

for (const killing of [false, true]) {
  test(`the disk of the state folder is full${killing ? ', and the proxy is killed meanwhile' : ''}`, async (t) => {
    const disk = smallDisk(t, '24m');
    if (disk === null) return;
    await rehearse(t, {
      reconnects: killing,
      faultMs: 5_000,
      plan: (plan) => void (plan.state = join(disk, 'state')),
      fault: async (scene) => {
        fillDisk(disk);
        await sleep(3_000);
        if (!killing) freeDisk(disk);
        else {
          scene.proxy.daemon.signal('SIGKILL');
          await scene.proxy.daemon.exit();
          freeDisk(disk);
          await scene.startProxy();
        }
      },
    });
  });
}

test('the disk was full for a while, and the proxy is killed later', async (t) => {
  const disk = smallDisk(t, '24m');
  if (disk === null) return;
  await rehearse(t, {
    ...RESTARTS,
    faultMs: 5_000,
    plan: (plan) => void (plan.state = join(disk, 'state')),
    fault: async (scene) => {
      for (let i = 0; i < 5; i++) {
        fillDisk(disk);
        await sleep(300);
        freeDisk(disk);
        await sleep(100);
      }
      await killProxy(scene);
    },
  });
});

/** Sets the clock wrong by so many seconds, and right again after three seconds. */
async function jump(fake: SettableClock, seconds: number): Promise<void> {
  fake.set(seconds);
  await sleep(3_000);
  fake.set(0);
  await sleep(1_500);
}

for (const seconds of [60, -60]) {
  const how = `jumps ${seconds > 0 ? 'forward' : 'back'} by a minute`;

  test(`the proxy's clock ${how}`, async (t) => {
    const fake = await settableClock(t);
    if (fake === null) return;
    await rehearse(t, { env: fake.env, faultMs: 4_500, fault: () => jump(fake, seconds) });
  });

  for (const side of ['source', 'target'] as const) {
    test(`the clock of the ${side === 'source' ? 'authority' : 'mirror'} ${how}`, async (t) => {
      const fake = await settableClock(t);
      if (fake === null) return;
      await rehearse(t, { [`${side}Env`]: fake.env, faultMs: 4_500, fault: () => jump(fake, seconds) });
    });
  }
}
