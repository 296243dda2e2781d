/** Commands without keys while a stage change of the default workload holds commands. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

test('SCRIPT LOAD waits for a stage change, and runs at the new authority first', () =>
  KeptWorld.run(async (kept) => {
    const client = await kept.client();
    await client.ask('PING');
    const ran = kept.ranBy(([name, what]) => name === 'SCRIPT' && what === 'LOAD');
    kept.world.diskMs = [200, 200];
    const isOver = kept.beginChange('live');
    await kept.until(() => kept.proxy.parts!.router.default.position.moving, 'the change holds commands');
    await kept.pass(20);
    client.send(['SCRIPT', 'LOAD', 'return 1']);
    await kept.until(isOver, 'the stage has changed');
    await kept.until(() => ran.length === 2, 'both servers have run it');
    assert.deepEqual(ran, ['target', 'source']);
  }));
