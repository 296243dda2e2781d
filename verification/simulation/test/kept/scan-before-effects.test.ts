/** Found in profile `swapped-copies`, seed 35: a job scanned the mirror before it had what was in flight. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

const SILENCE_MS = 300;

for (const kind of ['verify', 'backfill'] as const)
  test(`A ${kind} finds on the mirror what was on its way there when FLUSHDB deleted it from the authority`, () =>
    KeptWorld.run(async (kept) => {
      const client = await kept.client();
      const { router, permissions } = kept.proxy.parts!;
      // The target may hold foreign keys: FLUSHDB is not sent there.
      permissions.set(router.default, { deletable: 0, mayOverwrite: false });
      const port = kept.portOf(kept.target, ([name]) => name === 'SET');
      await client.ask('SET other value');
      await kept.until(() => kept.values('0 other').every((value) => value === 'value'), 'both have the key');
      kept.holdCommands(kept.target, SILENCE_MS, port());
      await client.ask('SET key value');
      assert.equal(await client.ask('FLUSHDB'), '+OK');
      const before = kept.world.events.now;
      kept.startJob({ kind, repair: kind === 'verify', deletes: 100 });
      const isSaid = (): boolean => /^it goes on when the mirror/.test(kept.proxy.condition()?.job?.reason ?? '');
      await kept.until(isSaid, 'the status says what the job waits for');
      await kept.until(() => kept.isClean, 'the workload is clean');
      assert.ok(kept.world.events.now - before >= SILENCE_MS - 10, 'the job has waited for the mirror');
      await kept.pass(1_000);
      assert.deepEqual([kept.values('0 key'), kept.values('0 other')], [Array(2).fill(null), Array(2).fill(null)]);
    }));
