/**
 * Found in profile `hangs` (seeds 107, 109): a server that had just ended a script was considered down. So was one that
 * worked on a long command which is no script. In seed 700 the model of a server that loads its data ran a script.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LONG, SCRIPTS } from '../../clients/kinds/scripts.js';
import { KeptWorld } from '../../kept/world.js';

const PLAN = { default: { stage: 'shadow' }, failover: 'automatic', limits: { downAfterMs: 1_000 } };
const SCRIPT = ['EVAL', LONG, '1', 'key'];

/** Each script takes the source so long, in ms. */
function runFor(kept: KeptWorld, ms: number): void {
  for (const { model } of [kept.source, kept.target])
    for (const [text, script] of Object.entries(SCRIPTS)) model.addScript(text, script);
  kept.source.worksOn = (bytes) => (bytes.includes(LONG) ? ms : 0);
}

test('A server is not down while it runs a second script, and the first has taken its time', () =>
  KeptWorld.run(async (kept) => {
    runFor(kept, 4_500);
    const [first, second] = [await kept.client(), await kept.client()];
    first.send(SCRIPT);
    await kept.pass(20);
    second.send(SCRIPT);
    await kept.until(() => second.replies.length > 0 || second.isCutOff, 'the second script ends');
    assert.deepEqual([first.replies.length, second.replies.length], [1, 1]);
    assert.equal(kept.proxy.snapshot()!.outage, null);
  }, PLAN));

test('A server that is silent for a moment behind a script is not down', () =>
  KeptWorld.run(async (kept) => {
    runFor(kept, 3_000);
    const client = await kept.client();
    client.send(SCRIPT);
    await kept.until(() => client.replies.length > 0, 'the script ends');
    kept.source.pause(600);
    await kept.pass(2_000);
    assert.equal(kept.proxy.snapshot()!.outage, null);
    assert.equal(kept.proxy.snapshot()!.workloads[0].stage, 'shadow');
  }, PLAN));

test('A server that works on a command with very many arguments is not down', () =>
  KeptWorld.run(async (kept) => {
    const members = Array.from({ length: 200_000 }, (_, i) => `m${i}`);
    // The command arrives in pieces.
    kept.source.worksOn = (bytes) => (bytes.includes(`m${members.length - 1}\r\n`) ? 1_900 : 0);
    const client = await kept.client();
    client.send(['SADD', 'key', ...members]);
    await kept.until(() => client.replies.length > 0 || client.isCutOff, 'the command ends');
    assert.deepEqual([client.replies, kept.proxy.snapshot()!.outage], [[members.length], null]);
  }, PLAN));

test('A server that loads its data refuses a script at once, and is down in time', () =>
  KeptWorld.run(async (kept) => {
    runFor(kept, 4_500);
    const client = await kept.client();
    kept.source.model.troubles.loading = true;
    client.send(SCRIPT);
    await kept.pass(100);
    assert.match(String(client.replies[0]), /LOADING/);
    await kept.pass(2_000);
    assert.equal(kept.proxy.snapshot()!.outage?.side, 'source');
  }, PLAN));
