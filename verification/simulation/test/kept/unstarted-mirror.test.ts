/** Found in profile `shared`, seed 906: in stage rampdown, a transaction ran at the former authority. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

const HIDES = "redis.call('SET', KEYS[1] .. ARGV[1], 'v') return 1";

test('A transaction at a server whose mirror no stage needs leaves nothing unsent', () =>
  KeptWorld.run(
    async (kept) => {
      const client = await kept.client();
      for (const command of [['SET', 'k', 'v'], ['MULTI'], ['EVAL', HIDES, '1', 'off:a', 'b'], ['EXEC']])
        await client.ask(command);
      assert.deepEqual(client.replies.at(-1), [1]);
      await kept.until(() => kept.isClean, 'the workloads are clean');
      assert.equal(kept.proxy.snapshot()!.mirror.queuedEffects, 0);
    },
    { workloads: [{ name: 'off', keys: ['off:*'], stage: 'off' }], default: { stage: 'rampdown' } },
    ({ source, target }) => {
      for (const { model } of [source, target])
        model.addScript(HIDES, ({ call, keys, args }) => {
          call('SET', keys[0] + args[0], 'v');
          return 1;
        });
    },
  ));
