/** Found in profile `emptied`, seed 112: a job looked at a key whose write was run, and not answered yet. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

const LATE_MS = 50;

test('A key that a client creates while its mirror is scanned for keys that only it has is copied', () =>
  KeptWorld.run(async (kept) => {
    const client = await kept.client();
    await client.ask('HSET h old 1');
    await kept.until(() => kept.isClean && kept.target.entry('0 h') !== undefined, 'both servers have the key');
    await kept.pass(10);
    kept.bypass(kept.source, 'DEL h');
    kept.startJob({ kind: 'backfill' });
    kept.target.onCommand = (_address, [name]) => {
      if (name !== 'SCAN') return;
      kept.target.onCommand = () => undefined;
      kept.holdReplies(kept.source, LATE_MS, ([each]) => each === 'HSET');
      client.send('HSET h new 2');
    };
    await kept.until(() => client.replies.length === 2, 'the write is answered');
    await kept.until(() => kept.proxy.condition()!.job?.state === 'done' && kept.isClean, 'all keys are copied');
    const [source, target] = kept.values('0 h');
    assert.deepEqual(target, source);
  }));
