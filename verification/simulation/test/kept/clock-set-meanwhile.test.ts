/** The clock of a real server is not set for a test. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

test('After the clock of a server was set while no proxy was running, all keys are copied', () =>
  KeptWorld.run(async (kept) => {
    const client = await kept.client();
    await client.ask('SET k v PX 100000');
    await kept.pass(5_000);
    let ended = false;
    kept.proxy.end(1_000, () => (ended = true));
    await kept.until(() => ended, 'the process has ended');
    kept.target.clockAheadMs = 20_000;
    await kept.pass(100);
    kept.proxy.start();
    await kept.until(() => kept.proxy.launched !== null, 'the shard serves again');
    await kept.pass(3_000);
    await kept.until(() => kept.isClean, 'the workload is clean');
    const left = [kept.source, kept.target].map((server) => server.entry('0 k')!.expireAt! - server.unixMs);
    assert.ok(Math.abs(left[0] - left[1]) < 100, left.join(' and '));
  }));
