/**
 * Whether a server is silent, or only our own event loop late.
 *
 * Needs real processes: an event loop that is late, beside servers that answer or are stopped.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { listenedMs } from '../../../src/io/clock.js';
import { withRig } from '../../support/rig.js';
import { until } from '../../support/shard.js';

function block(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end;);
}

test('an event loop that is late does not make a server lost that answers', async () => {
  await withRig({ failover: 'automatic', limits: { downAfterMs: 1_000 } }, async (rig) => {
    const proxy = rig.client();
    await proxy.set('k', 1);
    // Every turn is longer than the server may be silent: each question is asked at the beginning of one.
    for (let i = 0; i < 4; i++) {
      await new Promise(setImmediate);
      block(1_100);
    }
    // Nothing may follow: it would be known by now.
    await sleep(300);
    const { outage, failovers, source } = rig.shard.snapshot();
    assert.deepEqual({ outage, failovers, silentMs: source.silentMs }, { outage: null, failovers: 0, silentMs: 0 });
    assert.equal(await proxy.get('k'), '1');
  });
});

test('a server that stops answering is lost, though the event loop is late meanwhile', async () => {
  await withRig({ limits: { downAfterMs: 1_000 } }, async (rig) => {
    await rig.client().set('k', 1);
    process.kill(rig.source.pid!, 'SIGSTOP');
    try {
      const late = setInterval(() => block(150), 200);
      await until(() => rig.shard.snapshot().outage !== null, 10_000).finally(() => clearInterval(late));
      assert.equal(rig.shard.snapshot().outage?.side, 'source');
    } finally {
      process.kill(rig.source.pid!, 'SIGCONT');
    }
  });
});

test('the clock that silence is measured with leaves out what a busy event loop could not hear', async () => {
  const [since, before] = [performance.now(), listenedMs()];
  // Time is what is tested.
  await sleep(120);
  block(1_000);
  // Time is what is tested.
  await sleep(120);
  const [listened, tookMs] = [listenedMs() - before, performance.now() - since];
  assert.ok(listened >= 200 && tookMs - listened > 500, `${listened} of ${tookMs} ms`);
});
