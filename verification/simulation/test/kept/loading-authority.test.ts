/** Found by `npm run simulate -- --profile hangs`. A real server loads for long only with very much data. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

for (const [stage, side] of [
  ['shadow', 'source'],
  ['live', 'target'],
] as const)
  test(`The ${side} is down while it loads its data, and clients of ${stage} depend on it`, () =>
    KeptWorld.run(
      async (kept) => {
        const client = await kept.client();
        assert.equal(await client.ask('SET k v'), '+OK');
        kept[side].model.troubles.loading = true;
        await kept.until(() => kept.proxy.snapshot()!.outage !== null, 'the status shows the outage');
        assert.equal(kept.proxy.snapshot()!.outage!.side, side);
        kept[side].model.troubles.loading = false;
        await kept.until(() => kept.proxy.snapshot()!.outage!.endedAt !== null, 'the outage is over');
        assert.equal(await client.ask('GET k'), '$v');
      },
      { default: { stage } },
    ));
