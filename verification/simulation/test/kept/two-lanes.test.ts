/** The mirror gets what two lanes wrote in the authority's order. Real servers answer too fast to show it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

const LATE_MS = 100;

const holdReplyToSet = (kept: KeptWorld): void =>
  kept.holdReplies(kept.source, LATE_MS, ([name]) => name.toUpperCase() === 'SET');

async function assertTwo(kept: KeptWorld): Promise<void> {
  await kept.pass(2 * LATE_MS);
  await kept.until(() => kept.isClean, 'the workload is clean');
  assert.deepEqual(kept.values('0 k'), ['two', 'two']);
}

test('A second lane waits for what the first had in flight when it was opened', () =>
  KeptWorld.run(async (kept) => {
    const [first, second] = [await kept.client(), await kept.client()];
    await second.ask('HELLO 3');
    holdReplyToSet(kept);
    first.send('SET k one');
    await kept.pass(10);
    second.send('SET k two');
    await assertTwo(kept);
  }));

test('EXEC of a client that watches waits for what the shared lane has in flight', () =>
  KeptWorld.run(async (kept) => {
    const [first, second] = [await kept.client(), await kept.client()];
    await second.ask('WATCH other');
    holdReplyToSet(kept);
    first.send('SET k one');
    await kept.pass(10);
    for (const command of ['MULTI', 'SET k two', 'EXEC']) second.send(command);
    await assertTwo(kept);
  }));

test('A write waits for reads that came before it, and not for those that came behind it', () =>
  KeptWorld.run(async (kept) => {
    const [reader, writer] = [await kept.client(), await kept.client()];
    await reader.ask('SET k one');
    await writer.ask('HELLO 3');
    await writer.ask('GET k');
    const order: string[] = [];
    kept.holdReplies(kept.source, LATE_MS, ([name]) => name === 'GET');
    reader.send('GET k');
    await kept.pass(10);
    writer.send('SET k two');
    await kept.pass(10);
    kept.source.onCommand = (_address, [name]) => void order.push(name);
    reader.send('GET k');
    await kept.until(() => order.includes('GET') && order.includes('SET'), 'both have run');
    assert.deepEqual(order.slice(0, 2), ['SET', 'GET']);
  }));
