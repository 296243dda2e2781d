/** What a connection to the mirror took with it. Real servers answer too fast for a test to choose the moment. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

test('A FLUSHALL that was lost on its way to the mirror is made up for', () =>
  KeptWorld.run(async (kept) => {
    const client = await kept.client();
    const port = kept.portOf(kept.target, ([name]) => name === 'SET');
    await client.ask('SET k value');
    await kept.pass(10);
    kept.holdCommands(kept.target, 1_000, port());
    await client.ask('FLUSHALL');
    await kept.pass(10);
    const { connection } = kept.endOf(kept.target, port()!);
    connection.far.loseBehind(0);
    connection.cut();
    await kept.pass(1_000);
    await kept.until(() => kept.isClean, 'the workload is clean');
    assert.deepEqual(kept.values('0 k'), [null, null]);
  }));

test('A key of which the mirror lacks a write is a suspect although the reply to a later one was lost', () =>
  KeptWorld.run(async (kept) => {
    const client = await kept.client();
    await client.ask('SET k one');
    await kept.pass(10);
    kept.target.model.troubles.outOfMemory = true;
    await client.ask('SET k two');
    await kept.pass(10);
    kept.source.onCommand = (address, [name]) => {
      if (name !== 'SET') return;
      kept.source.onCommand = () => undefined;
      kept.endOf(kept.source, Number(address.split(':')[1])).connection.cut();
    };
    client.send('SET k three');
    for (let i = 0; i < 50; i++) {
      await kept.pass(10);
      const [source, target] = kept.values('0 k');
      assert.ok(!kept.isClean || source === target, `clean: ${String(source)} and ${String(target)}`);
    }
  }));
