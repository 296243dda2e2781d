/** Found in profile `refusals`, seed 883: a server that refused INFO was taken for an empty one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jobRequest } from '../../../shadow-proxy/src/storage/job-file.js';
import { KeptWorld } from '../../kept/world.js';
import type { ServerHost } from '../../world/server-host.js';

const BUSY_MS = 1_000;

/** Writes a key bypassing the proxy. */
function write({ model }: ServerHost, key: string): void {
  const client = model.connect(
    () => undefined,
    () => undefined,
    { host: '10.0.1.9', port: 40_000 },
  );
  client.receive(Buffer.from(`SET ${key} value\r\n`));
  client.end();
}

/** It refuses to count its keys, as a server does that runs a long script. */
function refuseCounts(kept: KeptWorld, { model }: ServerHost): void {
  model.refuse((_client, name, args) =>
    name === 'info' && args[1] === 'keyspace' ? 'BUSY Redis is busy running a script.' : null,
  );
  kept.world.events.after(BUSY_MS, { name: 'end', alive: true, stoppedUntil: 0 }, () => model.refuse(() => null));
}

for (const side of ['source', 'target'] as const)
  test(`A backfill waits for a ${side} that refuses to count its keys`, () =>
    KeptWorld.run(async (kept) => {
      write(kept[side], 'key');
      refuseCounts(kept, kept[side]);
      kept.proxy.within(({ shard }) => {
        const rest = { workloads: ['default'], repair: false, dryRun: false, again: true, sample: 100, limits: {} };
        shard.startJob(jobRequest.parse({ kind: 'backfill', automatic: false, deletes: 1, ...rest }));
      });
      await kept.until(() => kept.proxy.condition()?.job?.state === 'done', 'the job is done');
      const expected = side === 'source' ? 'value' : null;
      assert.deepEqual(kept.values('0 key'), [expected, expected]);
    }));

test('A workload is a suspect as a whole if nobody knows whether its source has keys when it is written to both', () =>
  KeptWorld.run(
    async (kept) => {
      write(kept.source, 'key');
      refuseCounts(kept, kept.source);
      let isOver = false;
      kept.proxy.within(({ shard }) => {
        void shard.changeStage({ workload: 'default', stage: 'dualwrite' }).then(() => (isOver = true));
      });
      await kept.until(() => isOver, 'the stage has changed');
      assert.equal(kept.isClean, false);
    },
    { default: { stage: 'off' } },
  ));
