/**
 * A source that runs a script without end is busy, and not lost: its clients stay, and the script can be killed.
 *
 * Needs real servers: BUSY of an endless script or function, and who may kill it.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import { withRig } from '../../support/rig.js';
import { needs } from '../../support/needs.js';

/** From when on the server says BUSY. */
const BUSY_MS = 1_500;
const LOOP = 'while true do end';
const LIBRARY = "#!lua name=l\nredis.register_function('f', function() while true do end end)";

for (const [how, start, kill] of [
  ['EVAL', ['EVAL', LOOP, 1, 'k'], ['SCRIPT', 'KILL']],
  ['EVAL inside MULTI', ['EVAL', LOOP, 1, 'k'], ['SCRIPT', 'KILL']],
  ['FCALL', ['FCALL', 'f', 1, 'k'], ['FUNCTION', 'KILL']],
] as const) {
  test(`an endless ${how} makes the source busy: no failover, no client is closed, and a new client kills it`, async (t) => {
    if (how === 'FCALL' && !(await needs(t, 'redis>=7.0'))) return;
    const options = {
      failover: 'automatic',
      limits: { downAfterMs: 400 },
      servers: { source: { config: { 'lua-time-limit': BUSY_MS } } },
    } as const;
    await withRig(options, async (rig) => {
      const [running, waiting] = [await rig.wire(), await rig.wire()];
      await running.ask('SET', 'k', 1);
      if (how === 'FCALL') await running.ask('FUNCTION', 'LOAD', LIBRARY);
      await waiting.ask('SET', 'other', 1);
      await rig.shard.settled();
      const inside = how.endsWith('MULTI');
      if (inside) await running.ask('MULTI');
      running.send(...start);
      if (inside) running.send('EXEC');
      // The server runs the script by then: it can tell nobody.
      await sleep(50);
      waiting.send('INCR', 'other');
      const watched = performance.now();
      for (; performance.now() - watched < BUSY_MS + 1_000; await sleep(50)) {
        const { failovers, outage, workloads } = rig.shard.snapshot();
        assert.deepEqual(
          [failovers, outage, workloads[0].stage, running.ended, waiting.ended],
          [0, null, 'shadow', false, false],
        );
      }
      const killer = await rig.wire();
      assert.equal((await killer.ask('HELLO', 3)).slice(0, 1), '%');
      assert.equal(await killer.ask(...kill), '+OK');
      assert.match((await running.frames(inside ? 2 : 1)).at(-1)!, /killed by user/);
      assert.equal(await waiting.frame(), ':2');
      assert.equal(await killer.ask('GET', 'other'), '$1\r\n2');
      await rig.assertEqual();
      const { source, failovers, outage } = rig.shard.snapshot();
      assert.deepEqual([source.silentConnections, failovers, outage], [0, 0, null]);
    });
  });
}

test('a source that hangs while a script is in flight is lost all the same, once it ought to have said that it is busy', async () => {
  const options = {
    failover: 'automatic',
    limits: { downAfterMs: 400 },
    servers: { source: { config: { 'lua-time-limit': 500 } } },
  } as const;
  await withRig(options, async (rig) => {
    const wire = await rig.wire();
    await wire.ask('SET', 'k', 1);
    await rig.shard.settled();
    await rig.source.kill('SIGSTOP');
    wire.send('EVAL', LOOP, 1, 'k');
    // Longer than `downAfterMs`, and shorter than that with `lua-time-limit`: nothing may happen.
    await sleep(800);
    assert.equal(rig.shard.snapshot().failovers, 0);
    for (let i = 0; i < 300 && rig.shard.snapshot().failovers === 0; i++) await sleep(50);
    assert.equal(rig.shard.snapshot().failovers, 1);
    await rig.source.kill('SIGCONT');
  });
});
