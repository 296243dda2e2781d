/** The read that an effect needs, and a write of another lane between the command and that read. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

test('A write of another lane waits for an XADD and the read that its effect needs', () =>
  KeptWorld.run(async (kept) => {
    const [first, second] = [await kept.client(), await kept.client()];
    let port = 0;
    kept.source.onCommand = (address, [name]) => {
      if (name === 'XADD') port = Number(address.split(':')[1]);
    };
    await first.ask('XADD k * f v');
    // Another protocol: another lane.
    await second.ask('HELLO 3');
    await second.ask('XLEN k');
    kept.endOf(kept.source, port).silence(20);
    first.send('XADD k MAXLEN ~ 100 * f first');
    await kept.pass(2);
    second.send('XADD k * f second');
    const suspects = new Set<string>();
    const isAnswered = (): boolean => {
      for (const { key } of kept.proxy.parts!.suspects.all()) suspects.add(String(key));
      return first.replies.length === 2 && second.replies.length === 3;
    };
    await kept.until(isAnswered, 'both are answered');
    await kept.until(() => isAnswered() && kept.isClean, 'the workload is clean');
    assert.deepEqual([...suspects], []);
    const [source, target] = kept.values('0 k');
    assert.deepEqual(source, target);
  }));
