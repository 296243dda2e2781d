/** Found in profile `flips`, seed 126: suspects were tried again ever more seldom, for commands that ran alone. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

const MOVES = 6;

test('A suspect is copied soon after commands that run alone have kept it from that several times', () =>
  KeptWorld.run(async (kept) => {
    const [client, mover] = [await kept.client(), await kept.client()];
    await mover.ask('PING');
    let refuses = true;
    kept.target.model.refuse((_, name) => (refuses && name === 'set' ? 'ERR not now' : null));
    let left = MOVES;
    kept.source.onCommand = (address, [name]) => {
      if (name !== 'MEMORY' || left-- <= 0) return;
      // MOVE waits until the question about the key's size is answered, and begins before the key is read.
      kept.endOf(kept.source, Number(address.split(':')[1])).silence(1);
      mover.send('MOVE missing 1');
    };
    const from = kept.world.events.now;
    await client.ask('SET k v');
    await kept.until(() => mover.replies.length === MOVES + 1, 'all have run');
    refuses = false;
    await kept.until(() => kept.isClean, 'the workload is clean');
    const ms = kept.world.events.now - from;
    assert.ok(ms < 2_500, `after ${ms.toFixed(0)} ms`);
    assert.deepEqual(kept.values('0 k'), ['v', 'v']);
  }));
