/** Found in profile `storm`, seed 870: a failover that moved nothing let commands go on that a stage change held. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

test('While a stage change holds commands, the end of a failover does not send them to the former authority', () =>
  KeptWorld.run(
    async (kept) => {
      const [client, late] = [await kept.client(), await kept.client()];
      await client.ask('SET k first');
      await kept.until(() => kept.values('0 k').every((value) => value === 'first'), 'both have the key');
      const writes = kept.ranBy((args) => args[2] === 'second');
      // The change is written to the disk for so long that the authority is seen to have restarted meanwhile.
      kept.world.diskMs = [200, 200];
      const isOver = kept.beginChange('shadow');
      await kept.until(() => kept.proxy.parts!.router.default.position.moving, 'the change holds commands');
      await kept.pass(20);
      kept.target.stop();
      kept.target.start(true);
      await kept.until(() => kept.proxy.snapshot()!.outage !== null, 'the outage is seen');
      late.send('SET k second');
      await kept.until(isOver, 'the stage has changed');
      await kept.until(() => kept.values('0 k').every((value) => value === 'second'), 'both have the new value');
      assert.deepEqual(writes, ['source', 'target'], 'the new authority has it first');
    },
    { default: { stage: 'live' } },
  ));
