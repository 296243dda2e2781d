/** Found by `npm run simulate -- --profile half`. Real servers confirm too fast for a test to see the moment. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SLOTS, slotOf } from '../../server/slots.js';
import { KeptWorld } from '../../kept/world.js';

const isLive = (key: string): boolean => slotOf(key) < SLOTS / 2;

for (const key of ['a', 'b'])
  test(`A workload of which half is live is not clean while an effect on key ${key} waits for its mirror`, () =>
    KeptWorld.run(
      async (kept) => {
        const [authority, mirror] = isLive(key) ? [kept.target, kept.source] : [kept.source, kept.target];
        const client = await kept.client();
        await client.ask('PING');
        assert.ok(kept.isClean);
        mirror.pause(100);
        await client.ask(`SET ${key} value`);
        assert.equal(authority.entry(`0 ${key}`)?.value, 'value');
        assert.equal(mirror.entry(`0 ${key}`), undefined);
        assert.equal(kept.isClean, false);
        await kept.until(() => kept.isClean, 'the workload is clean');
        assert.deepEqual(kept.values(`0 ${key}`), ['value', 'value']);
      },
      { default: { stage: 'live', percent: 50 } },
    ));

test('Of the two keys, one is live', () => assert.notEqual(isLive('a'), isLive('b')));
