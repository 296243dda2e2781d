/**
 * leave-keydb.md, run from a real KeyDB to another server under traffic: the same kit, the other way round. Takes some
 * minutes.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { Redis } from 'ioredis';
import { connectApps, drive, WORKLOADS } from '../../../src/cli/demo/traffic.js';
import { startKeydb, type LocalServer } from '../../../src/local/servers.js';
import { planFor, start } from '../cli/running.js';
import { compareKeyspaces, type Difference } from '../random/comparer.js';
import { until } from '../../support/shard.js';
import { MIGRATION, toolOf, stopsOf } from './stops.js';

export const OTHER = { name: 'other', keys: ['other:*'], class: 'general' };

/** To the server that is started: every type is copied, every step holds, and both have the same at the end. */
export async function leaveFor(t: TestContext, startOther: () => Promise<LocalServer>): Promise<void> {
  const [keydb, other] = [await startKeydb(), await startOther()];
  for (const server of [keydb, other]) t.after(() => server.stop());
  await fill(keydb.port);
  const plan = await planFor({ source: keydb, target: other }, (planned) => {
    Object.assign(planned, {
      name: MIGRATION,
      workloads: [...WORKLOADS.map((workload) => ({ ...workload, stage: 'off' })), OTHER],
      gates: { minCompared: 100, minMinutes: 0.1, maxP99Ratio: 100, maxAllowedShare: 1 },
    });
  });
  const running = await start(t, plan);
  const apps = await connectApps(running.port);
  let stopped = false;
  const traffic = Promise.all([drive(apps, () => stopped, 500), readOthers(running.port, () => stopped)]);
  const runbook = stopsOf(toolOf(t), 'leave-keydb', '--plan', running.file);
  const stops: string[] = [];
  const runTo = async (last: string | null): Promise<void> => {
    for (let stop = await runbook.next(); stop.done !== true; stop = await runbook.next())
      if (stops.push(stop.value.stop) > 0 && stop.value.stop === last) return;
  };
  await runTo('nothing-stays-behind');
  // Nobody writes any more, and both servers are still written: they have to be equal.
  stopped = true;
  const [{ errors, first }] = await traffic;
  assert.deepEqual([errors, first], [0, null]);
  for (const app of apps) app.close();
  const differences = async (): Promise<readonly Difference[]> => (await compareKeyspaces(keydb, other)).differences;
  await until(async () => (await differences()).length === 0, 30_000).catch(async () =>
    assert.deepEqual(await differences(), []),
  );
  await runTo(null);
  assert.ok(stops.includes('complete:other') && stops.at(-1) === 'all-complete:other', stops.join(' '));
  const now = new Redis(running.port);
  await now.set('session:after', 'alone');
  now.disconnect();
  const [old, fresh] = [new Redis(keydb.port), new Redis(other.port)];
  assert.deepEqual([await old.get('session:after'), await fresh.get('session:after')], [null, 'alone']);
  for (const client of [old, fresh]) client.disconnect();
}

/** What was on KeyDB before: every type, in encodings small and large, with times to live. */
async function fill(port: number): Promise<void> {
  const client = new Redis(port);
  const many = Array.from({ length: 700 }, (_, i) => i);
  await client.set('other:string', 'a', 'PX', 3_600_000);
  await client.set('other:number', 42);
  await client.setbit('other:bits', 1000, 1);
  await client.hset('other:hash', { f: 'v', g: 'w'.repeat(100) });
  await client.hset('other:hash:large', Object.fromEntries(many.map((i) => [`f${i}`, i])));
  await client.rpush('other:list', 'a', 'b', 'b');
  await client.rpush('other:list:large', ...many.map((i) => `${i}`.repeat(20)));
  await client.sadd('other:set', 1, 2, 3);
  await client.sadd('other:set:large', ...many.map((i) => `m${i}`));
  await client.zadd('other:zset', 1.5, 'a', -1, 'b');
  await client.zadd('other:zset:large', ...many.flatMap((i) => [i / 3, `m${i}`]));
  await client.pfadd('other:hll', ...many);
  await client.geoadd('other:geo', 13.36, 38.11, 'Palermo');
  await client.xadd('other:stream', '*', 'k', 'v');
  await client.xgroup('CREATE', 'other:stream', 'g', '0');
  await client.xreadgroup('GROUP', 'g', 'c', 'COUNT', 1, 'STREAMS', 'other:stream', '>');
  for (const i of many) await client.set(`session:old:${i}`, `v${i}`, 'EX', 3600);
  client.disconnect();
}

/** Something is compared there, too. */
async function readOthers(port: number, stopped: () => boolean): Promise<void> {
  const client = new Redis(port, { maxRetriesPerRequest: 0 });
  while (!stopped()) {
    await client.hgetall('other:hash');
    await client.zrange('other:zset:large', '0', '30', 'WITHSCORES');
    await client.incr('other:number');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  client.disconnect();
}
