/** Found in profile `chunks`, seed 9: the chunked copy of a stream kept a consumer that a client had removed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Equality } from '../../check/equality.js';
import { KeptWorld } from '../../kept/world.js';

test('A consumer that is removed during the chunked copy of its stream is removed on the mirror, too', () =>
  KeptWorld.run(
    async (kept) => {
      const client = await kept.client();
      for (let i = 1; i <= 8; i++) await client.ask(`XADD s ${i}-0 f v`);
      await client.ask('XGROUP CREATE s g 0');
      await client.ask('XREADGROUP GROUP g alice COUNT 2 STREAMS s >');
      // Pending and deleted: made for the copy before all else.
      await client.ask('XDEL s 1-0 2-0');
      await kept.until(() => kept.isClean, 'the workload is clean');
      let isMade = false;
      kept.target.onCommand = (_address, [name, key]) => {
        if (name === 'XSETID' && key.startsWith('shadow-proxy:copying:')) isMade = true;
      };
      kept.startJob({ kind: 'backfill' });
      await kept.until(() => isMade, 'the pending entries are made');
      await client.ask('XGROUP DELCONSUMER s g alice');
      await kept.until(() => kept.proxy.condition()!.job?.state === 'done' && kept.isClean, 'the copy is done');
      assert.ok(new Equality(kept.source, kept.target).compare('0 s', kept.world.events.now));
    },
    { limits: { largeKeyBytes: '300KiB' } },
    ({ source, target }) => {
      for (const { model } of [source, target]) model.memoryFactor = 2_000;
    },
  ));
