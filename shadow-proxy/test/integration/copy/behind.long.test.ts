/**
 * A shard that is far behind on a shared target: no other shard reports the keys that it deleted as unowned.
 *
 * Needs real servers: two sources and one KeyDB, behind a queue that takes minutes.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { partsOf } from '../../support/shard.js';
import { withSharedTarget } from '../../support/shared.js';

/** Longer than all looks at what no source has. */
const BEHIND_MS = 6_000;

test('a key that a shard with a long queue has deleted on its source is not reported as unowned by any shard', async () => {
  await withSharedTarget({ owns: [undefined, undefined] }, async (shared) => {
    await shared.wire(0).ask('SET', 'a', 1);
    await shared.wire(1).ask('SET', 'b', 1);
    await shared.settled();
    const behind = partsOf(shared.shards[1].shard).sequencer;
    const open = behind.mirrors.target.gate();
    await shared.wire(1).ask('DEL', 'b');
    const verified = shared.job(0, { kind: 'verify' });
    // The queue is behind for so long.
    await sleep(BEHIND_MS);
    open();
    behind.mirrors.target.flush();
    const { state, differences, verified: keys } = await verified;
    assert.deepEqual([state, differences, keys], ['done', {}, 1], JSON.stringify(shared.report(0)));
    assert.deepEqual((await shared.keys()).target, ['0:a']);
  });
});
