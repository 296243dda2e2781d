/** Found in profile `expiry`, seed 905: a script wrote an expired key again while both servers were asked about it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

/** It is not replicated: its keys are copied. */
const SCRIPT = "local t = redis.call('TIME') return redis.call('SET', KEYS[1], t[2])";

test('A key that has expired on one server, and is written by a script meanwhile, is no mismatch', async () => {
  // The script is to run while the servers are being asked: one of these times, in ms behind the read, is that.
  for (let afterMs = 2.1; afterMs < 2.5; afterMs += 0.05)
    await KeptWorld.run(
      async (kept) => {
        const [first, second] = [await kept.client(), await kept.client()];
        // Another protocol: another lane.
        await second.ask('HELLO 3');
        await second.ask(['EVAL', SCRIPT, '1', 'other']);
        const endsAt = Math.floor(kept.source.unixMs) + 20;
        await first.ask(`SET k v PXAT ${endsAt}`);
        await kept.until(() => kept.isClean, 'the workload is clean');
        // The source answers just before the end, and the target behind it.
        await kept.pass(endsAt + 0.7 - kept.source.unixMs);
        first.send('TTL k');
        await kept.pass(afterMs);
        second.send(['EVAL', SCRIPT, '1', 'k']);
        await kept.until(() => second.replies.length > 2, 'the script is answered');
        await kept.until(() => kept.isClean, 'the workload is clean');
        assert.equal(first.replies[1], 0, 'the source had the key');
        assert.equal(kept.proxy.snapshot()!.workloads[0].mismatches, 0, `${afterMs.toFixed(2)} ms`);
      },
      {},
      ({ source, target }) => {
        for (const { model } of [source, target])
          model.addScript(SCRIPT, ({ call, keys }) => call('SET', keys[0], (call('TIME') as readonly string[])[1]));
      },
    );
});
