/** Found in profile `workloads`, seed 600: a read waited to be compared until one of its keys was not mirrored. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

test('A read is not compared later if one of its workloads is not mirrored any more', () =>
  KeptWorld.run(
    async (kept) => {
      const client = await kept.client();
      await client.ask('SET b old');
      await kept.until(() => kept.target.entry('0 b') !== undefined, 'both servers have the key');
      kept.target.model.troubles.outOfMemory = true;
      await client.ask('SET a value');
      assert.deepEqual(await client.ask('MGET a b'), ['$value', '$old']);
      await kept.until(() => kept.proxy.snapshot()!.suspects.total > 0, 'a key is a suspect');
      let isOff = false;
      kept.proxy.within(({ shard }) => {
        const move = (stage: 'dualwrite' | 'off'): Promise<unknown> => shard.changeStage({ workload: 'second', stage });
        void move('dualwrite')
          .then(() => move('off'))
          .then(() => (isOff = true));
      });
      await kept.until(() => isOff, 'the workload is off');
      await client.ask('SET b new');
      kept.target.model.troubles.outOfMemory = false;
      await kept.until(() => kept.isClean, 'all workloads are clean');
      await kept.pass(1_000);
      assert.deepEqual(
        [kept.values('0 a'), kept.values('0 b')],
        [
          ['value', 'value'],
          ['new', 'old'],
        ],
      );
      assert.deepEqual(kept.proxy.snapshot()!.mismatches, {});
    },
    { workloads: [{ name: 'second', keys: ['b'], stage: 'shadow' }] },
  ));
