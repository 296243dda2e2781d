/** Found in profile `refusals`, seed 883: a server that refused INFO was taken for an empty one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';
import { WORLD } from '../../world/events.js';
import type { ServerHost } from '../../world/server-host.js';

const BUSY_MS = 1_000;

/** It refuses to count its keys, as a server does that runs a long script. */
function refuseCounts(kept: KeptWorld, { model }: ServerHost): void {
  model.refuse((_client, name, args) =>
    name === 'info' && args[1] === 'keyspace' ? 'BUSY Redis is busy running a script.' : null,
  );
  kept.world.events.after(BUSY_MS, WORLD, () => model.refuse(() => null));
}

for (const side of ['source', 'target'] as const)
  test(`A backfill waits for a ${side} that refuses to count its keys`, () =>
    KeptWorld.run(async (kept) => {
      kept.write(kept[side], 'key', 'value');
      refuseCounts(kept, kept[side]);
      kept.startJob({ kind: 'backfill', deletes: 1 });
      await kept.until(() => kept.proxy.condition()?.job?.state === 'done', 'the job is done');
      const expected = side === 'source' ? 'value' : null;
      assert.deepEqual(kept.values('0 key'), [expected, expected]);
    }));

test('A workload is a suspect as a whole if nobody knows whether its source has keys when it is written to both', () =>
  KeptWorld.run(
    async (kept) => {
      kept.write(kept.source, 'key', 'value');
      refuseCounts(kept, kept.source);
      await kept.change('dualwrite');
      assert.equal(kept.isClean, false);
    },
    { default: { stage: 'off' } },
  ));
