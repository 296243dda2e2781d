/** Found in profile `operator`, seed 883: a job scanned a workload that was off, and took its keys for copied. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

test('A job that has scanned a workload while it was off does not take its keys for copied', () =>
  KeptWorld.run(
    async (kept) => {
      const client = await kept.client();
      await client.ask('SET key old');
      await kept.until(() => kept.values('0 key').every((value) => value === 'old'), 'both have the key');
      kept.startJob({ kind: 'backfill' });
      await kept.change('off');
      await client.ask('SET key new');
      // The workload is a suspect as a whole, and off, until the change is on the disk: the job scans again meanwhile.
      kept.world.diskMs = [300, 300];
      await kept.change('dualwrite');
      await kept.until(() => kept.proxy.condition()!.job!.state !== 'running', 'the job has ended');
      const { state, reason } = kept.proxy.condition()!.job!;
      assert.deepEqual([state, kept.isClean, kept.values('0 key')], ['stopped', false, ['new', 'old']]);
      assert.match(reason!, /^"default" was off meanwhile/);
    },
    { default: { stage: 'dualwrite' } },
    // A scan takes longer than the change to off.
    (kept) => (kept.world.network.options = { ...kept.world.network.options, delayMs: [5, 5] }),
  ));
