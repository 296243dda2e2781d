/**
 * What a newer source does that KeyDB does not is on both servers. With an older source the same holds, for then
 * neither does it.
 *
 * Needs real servers: consumers that newer servers create in XREADGROUP, and KeyDB does not.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Redis } from 'ioredis';
import type { Argument } from '../../../src/resp/encode.js';
import { ask, ended, job } from '../../support/jobs.js';
import { withRig, type Rig } from '../../support/rig.js';

/** `x` has entries of which group `g` has read one; `y` and `z` have a group that has nothing to read. */
const SEED: readonly (readonly Argument[])[] = [
  ['XADD', 'x', '1-1', 'f', 'v'],
  ['XADD', 'x', '1-2', 'f', 'v'],
  ['XGROUP', 'CREATE', 'x', 'g', 0],
  ['XREADGROUP', 'GROUP', 'g', 'first', 'COUNT', 1, 'STREAMS', 'x', '>'],
  ...['y', 'z'].flatMap((key) => [
    ['XADD', key, '1-1', 'f', 'v'],
    ['XGROUP', 'CREATE', key, 'g', '$'],
  ]),
];

/** Each names a consumer of its own, which some servers create and others do not. */
const CALLS: readonly (readonly Argument[])[] = [
  ['XREADGROUP', 'GROUP', 'g', 'new-1', 'STREAMS', 'y', '>'],
  ['XREADGROUP', 'GROUP', 'g', 'new-2', 'STREAMS', 'y', 'z', '>', '>'],
  ['XREADGROUP', 'GROUP', 'g', 'new-3', 'COUNT', 1, 'NOACK', 'STREAMS', 'y', 'z', '>', '>'],
  ['XREADGROUP', 'GROUP', 'g', 'streams', 'STREAMS', 'y', 'x', '>', '>'],
  ['XREADGROUP', 'GROUP', 'g', 'new-4', 'STREAMS', 'y', 'z', '>', '0'],
  ['XREADGROUP', 'GROUP', 'g', 'new-5', 'BLOCK', 20, 'STREAMS', 'y', 'z', '>', '>'],
  ['XCLAIM', 'x', 'g', 'new-6', 1_000_000, '1-1'],
  ['XCLAIM', 'x', 'g', 'new-7', 0, '7-7'],
  ['XCLAIM', 'x', 'g', 'new-8', 0, '1-1', 'JUSTID'],
  ['XAUTOCLAIM', 'x', 'g', 'new-9', 1_000_000, 0],
  ['XAUTOCLAIM', 'x', 'g', 'new-10', 0, 0, 'COUNT', 1],
  ['XAUTOCLAIM', 'y', 'g', 'new-11', 0, 0, 'JUSTID'],
];

const consumers = async (server: Redis, key: string): Promise<string[]> =>
  ((await server.xinfo('CONSUMERS', key, 'g')) as unknown[][]).map((each) => String(each[1])).sort();

async function assertSameConsumers(rig: Rig, servers: readonly Redis[], call: string): Promise<void> {
  await rig.shard.settled();
  for (const key of ['x', 'y', 'z']) {
    const [source, target] = await Promise.all(servers.map((server) => consumers(server, key)));
    assert.deepEqual(source, target, `consumers of ${key} after ${call}`);
  }
}

for (const stage of ['shadow', 'live'] as const) {
  for (const transaction of [false, true]) {
    test(`consumers that find nothing are created on both servers, or on neither, in ${stage}${transaction ? ' and MULTI' : ''}`, async () => {
      await withRig({ default: { stage } }, async (rig) => {
        const servers = [rig.client({ of: rig.source }), rig.client({ of: rig.target })];
        for (const protocol of [2, 3]) {
          const wire = await rig.wire();
          if (protocol === 3) await wire.ask('HELLO', 3);
          await wire.ask('DEL', 'x', 'y', 'z');
          for (const command of SEED) await wire.ask(...command);
          for (const command of CALLS) {
            if (transaction) await wire.pipeline([['MULTI'], [...command], ['EXEC']]);
            else await wire.ask(...command);
            await assertSameConsumers(rig, servers, command.join(' '));
          }
        }
        assert.deepEqual(rig.shard.snapshot().mismatches, {}, JSON.stringify(rig.shard.findings().slice(0, 3)));
        ask(rig, { kind: 'verify' });
        await ended(rig);
        assert.deepEqual([job(rig).differences, job(rig).failed], [{}, 0]);
      });
    });
  }
}

test('a consumer that is created by a command which blocks, and was not asked before, is on both servers', async () => {
  await withRig({ default: { stage: 'shadow' } }, async (rig) => {
    const servers = [rig.client({ of: rig.source }), rig.client({ of: rig.target })];
    const wire = await rig.wire();
    for (const command of SEED) await wire.ask(...command);
    // Those who come later do not ask first: what they found might be for the one before.
    const [one, two] = [await rig.wire(), await rig.wire()];
    one.send('XREADGROUP', 'GROUP', 'g', 'early', 'BLOCK', 400, 'STREAMS', 'y', '>');
    two.send('XREADGROUP', 'GROUP', 'g', 'later', 'BLOCK', 400, 'STREAMS', 'y', '>');
    await Promise.all([one.frame(), two.frame()]);
    await assertSameConsumers(rig, servers, 'both have waited');
  });
});
