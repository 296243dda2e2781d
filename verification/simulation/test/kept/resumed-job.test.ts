/** A job that goes on in the next process. Real servers are too fast for a test to choose where it is interrupted. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

const isDone = (kept: KeptWorld): boolean => kept.proxy.condition()?.job?.state === 'done';

async function restart(kept: KeptWorld, isAsked = false): Promise<void> {
  if (isAsked) kept.proxy.end(1_000, () => undefined);
  else kept.proxy.kill();
  await kept.until(() => kept.proxy.launched === null, 'the process has ended');
  await kept.pass(100);
  kept.proxy.start();
  await kept.until(() => kept.proxy.launched !== null, 'the shard serves again');
}

test('A job that goes on deletes no more keys than were confirmed for it', () =>
  KeptWorld.run(async (kept) => {
    const foreign = Array.from({ length: 8 }, (_, i) => `f${i}`);
    for (const key of foreign) kept.write(kept.target, key, 'value');
    const left = (): number => foreign.filter((key) => kept.target.entry(`0 ${key}`) !== undefined).length;
    kept.startJob({ kind: 'verify', repair: true, deletes: 3, limits: { keysPerSecond: 4 } });
    await kept.until(() => left() < foreign.length, 'a key is deleted');
    await restart(kept);
    await kept.until(() => isDone(kept), 'the job is done');
    assert.ok(left() >= foreign.length - 3, `${left()} are left`);
  }));

test('A job whose databases were swapped goes on where its keys are', () =>
  KeptWorld.run(async (kept) => {
    // Of two pages at least.
    const keys = Array.from({ length: 1_200 }, (_, i) => `k${i}`);
    kept.bypass(kept.source, ['MSET', ...keys.flatMap((key) => [key, 'value'])].join(' '));
    const client = await kept.client();
    kept.startJob({ kind: 'backfill', limits: { keysPerSecond: 500 } });
    await kept.pass(1_300);
    assert.equal(await client.ask('SWAPDB 0 1'), '+OK');
    await kept.pass(200);
    await restart(kept, true);
    await kept.until(() => isDone(kept) && kept.isClean, 'the job is done');
    const missing = keys.filter((key) => kept.target.entry(`1 ${key}`) === undefined);
    assert.deepEqual(missing, []);
  }));

test('A page that was scanned while databases were swapped is scanned again', () =>
  KeptWorld.run(async (kept) => {
    const keys = Array.from({ length: 4 }, (_, i) => `k${i}`);
    const client = await kept.client();
    await client.ask('GET k');
    kept.bypass(kept.source, ['MSET', ...keys.flatMap((key) => [key, 'value'])].join(' '));
    let isSwapped = false;
    kept.source.onCommand = (address, [name]) => {
      if (name !== 'SELECT' || isSwapped) return;
      isSwapped = true;
      kept.holdCommands(kept.source, 100, Number(address.split(':')[1]));
      client.send('SWAPDB 0 1');
    };
    kept.startJob({ kind: 'backfill' });
    await kept.until(() => isDone(kept) && kept.isClean, 'the job is done');
    assert.ok(isSwapped);
    const missing = keys.filter((key) => kept.target.entry(`1 ${key}`) === undefined);
    assert.deepEqual(missing, []);
  }));
