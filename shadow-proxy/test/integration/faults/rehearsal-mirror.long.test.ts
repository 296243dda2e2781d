/**
 * Faults of the mirror: no client of the authority notices one, and each ends in equal servers by itself.
 *
 * Needs real processes: a mirror that is killed, stopped, full or reset.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Stage } from '../../../src/route/stage.js';
import { rehearse, type Scene } from './rehearsal.js';
import { ask, resetMirror, restartMirrorEmpty } from './rehearsed-faults.js';

async function fillUp({ mirror }: Scene): Promise<void> {
  await ask(mirror, async (client) => {
    await client.config('SET', 'maxmemory-policy', 'noeviction');
    await client.config('SET', 'maxmemory', '1');
    // The mirror is full for so long.
    await sleep(4_000);
    assert.match(await client.set('more', 1).catch(String), /OOM/);
    await client.config('SET', 'maxmemory', '0');
  });
}

for (const stage of ['shadow', 'live'] satisfies Stage[]) {
  test(`the mirror is killed and restarts empty (${stage})`, (t) =>
    rehearse(t, { stage, faultMs: 1_500, fault: restartMirrorEmpty }));
  test(`the mirror's connections are reset every 100 ms (${stage})`, (t) =>
    rehearse(t, { stage, faultMs: 5_000, fault: resetMirror }));
  test(`the mirror is full (${stage})`, (t) => rehearse(t, { stage, faultMs: 4_000, fault: fillUp }));
}

test('the mirror is stopped for 20 s', (t) =>
  rehearse(t, {
    faultMs: 20_000,
    fault: async ({ mirror }) => {
      await mirror.kill('SIGSTOP');
      await sleep(20_000);
      await mirror.kill('SIGCONT');
    },
  }));

test('the mirror restarts with an old RDB', (t) =>
  rehearse(t, {
    faultMs: 3_000,
    fault: async ({ mirror }) => {
      await ask(mirror, (client) => client.call('SAVE'));
      await sleep(2_000);
      await mirror.kill('SIGKILL');
      await mirror.start();
    },
  }));
