/**
 * A key that the mirror lost does not count as expired because a write then deletes it on the authority, too.
 *
 * Not simulated yet: a client that deletes keys of the mirror just before a write deletes them.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sum } from '../../../src/telemetry/snapshot.js';
import type { Argument } from '../../../src/resp/encode.js';
import { withRig } from '../../support/rig.js';
import { until } from '../../support/shard.js';

type Command = readonly Argument[];

const REMOVING: readonly (readonly [setup: Command, write: Command])[] = [
  [
    ['SET', 'k', 'v'],
    ['DEL', 'k'],
  ],
  [
    ['SET', 'k', 'v'],
    ['GETDEL', 'k'],
  ],
  [
    ['RPUSH', 'k', 'v'],
    ['LPOP', 'k'],
  ],
  [
    ['SADD', 'k', 'v'],
    ['SREM', 'k', 'v'],
  ],
  [
    ['SET', 'k', 'v'],
    ['RENAME', 'k', 'other'],
  ],
];

test('by the write that showed the loss', async () => {
  await withRig({}, async ({ wire, target, client, shard }) => {
    const proxy = await wire();
    const behind = client({ of: target });
    for (const [n, [setup, write]] of REMOVING.entries()) {
      await shard.settled();
      await proxy.ask(...setup);
      await shard.settled();
      await behind.del('k');
      await proxy.ask(...write);
      await until(() => sum(shard.snapshot().inconclusive) === n + 1);
    }
    assert.deepEqual(shard.snapshot().allowed, {});
  });
});

test('by FLUSHALL and its like, in whatever database they come', async () => {
  await withRig({}, async ({ wire, target, client, shard }) => {
    const proxy = await wire();
    const behind = client({ of: target });
    for (const [n, barrier] of ([['FLUSHALL'], ['FLUSHDB'], ['SWAPDB', 0, 1]] as Command[]).entries()) {
      await shard.settled();
      await proxy.ask('SET', 'k', 'v');
      await shard.settled();
      await behind.del('k');
      await proxy.pipeline([['GET', 'k'], barrier]);
      await until(() => sum(shard.snapshot().inconclusive) === n + 1);
    }
    assert.deepEqual(shard.snapshot().allowed, {});
  });
});
