/**
 * Masters that fail, slots that move: followed or refused, never silent.
 *
 * Needs real servers: failovers and resharding of a Redis Cluster and a KeyDB cluster.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import type { Cluster } from 'ioredis';
import { askNode, moveSlot } from '../../../src/local/start-cluster.js';
import { isError, text } from '../../../src/resp/decode.js';
import { hashSlot } from '../../../src/route/slot.js';
import type { Stage } from '../../../src/route/stage.js';
import type { ClusterRig } from '../../support/cluster-rig.js';
import { withClusterRig } from '../../support/cluster-move.js';
import { partsOf, until } from '../../support/shard.js';

const slotOf = (key: string): number => hashSlot(Buffer.from(key), 0, key.length);

/** Writes until it is stopped. An error is no fault: the slot moves. */
function writer(client: Cluster): { stop(): Promise<void> } {
  let stopped = false;
  const run = async (): Promise<void> => {
    for (let i = 0; !stopped; i++) await client.set(`w:${i % 500}`, String(i)).catch(() => undefined);
  };
  const running = run();
  return {
    stop: () => {
      stopped = true;
      return running;
    },
  };
}

async function assertEqual(rig: ClusterRig): Promise<void> {
  await rig.settled(30_000);
  for (const job of await rig.run({ kind: 'verify' })) assert.deepEqual([job.state, job.differences], ['done', {}]);
  assert.deepEqual(await rig.differences(), []);
  for (const shard of rig.shards) assert.deepEqual(shard.snapshot().mismatches, {});
}

for (const [side, stage] of [
  ['source', 'shadow'],
  ['target', 'shadow'],
  ['source', 'live'],
  ['target', 'live'],
] as const)
  test(`a master of the ${side} dies in ${stage}: its replica is followed, and both sides hold the same`, async () => {
    const options = {
      source: { replicas: 1 },
      target: { replicas: 1 },
      plan: { default: { stage: 'shadow' as Stage } },
    };
    await withClusterRig(options, async (rig) => {
      if (stage === 'live') await rig.changeStage('live');
      const client = rig.client();
      for (let i = 0; i < 200; i++) await client.set(`k:${i}`, 'before');
      await rig.settled();
      const cluster = side === 'source' ? rig.source : rig.targetCluster!;
      // What was acknowledged is with the replica, too.
      await sleep(200);
      await cluster.masters[0].kill('SIGKILL');
      await until(async () => (await rig.mastersOf(side)).length === 3, 15_000);
      // While the master is lost, the proxy closes connections whose commands it cannot answer.
      const answers = (): Promise<boolean> =>
        rig.ask(['SET', '{06S}', '1']).then(
          (reply) => !isError(reply),
          () => false,
        );
      await until(answers, 15_000);
      for (let i = 0; i < 200; i++) await client.set(`k:${i}`, 'after');
      assert.equal(await client.get('k:7'), 'after');
      await assertEqual(rig);
    });
  });

test("a server's own redirection never reaches a client, on whichever way its reply comes", async () => {
  await withClusterRig({ target: 'standalone', plan: { default: { stage: 'shadow' } } }, async (rig) => {
    const [key, slot] = ['k:1', slotOf('k:1')];
    const at = rig.plan.shards.findIndex(({ slots }) => slots!.some(([a, b]) => a <= slot && slot <= b));
    // As in the moment before the proxy has seen that the slot moves.
    partsOf(rig.shards[at]).slotWatch.stop();
    const { masters } = rig.source;
    const commands = [
      ['GET', key],
      ['SET', key, 'v'],
      ['WATCH', key],
      ['BLPOP', key, 1],
      ['EVAL', 'return 1', 1, key],
    ];
    await moveSlot(slot, masters[at], masters[(at + 1) % 3], masters);
    for (const command of [...commands, ['SSUBSCRIBE', key]])
      assert.match(text(await rig.ask(command, at)), /^TRYAGAIN shadow-proxy: slot \d+ is moving/, command.join(' '));
  });
});

test('a slot that moves is refused until the proxies start again; nothing of it is lost', async () => {
  await withClusterRig({ target: 'standalone', plan: { default: { stage: 'shadow' } } }, async (rig) => {
    const client = rig.client();
    const key = 'k:1';
    const slot = slotOf(key);
    const at = rig.plan.shards.findIndex(({ slots }) => slots!.some(([a, b]) => a <= slot && slot <= b));
    const writing = writer(client);
    await client.set(key, 'before');
    const { masters } = rig.source;
    const to = masters[(at + 1) % 3];
    await moveSlot(slot, masters[at], to, masters, async () => {
      await until(() => rig.shards[at].snapshot().movedSlots !== '', 5_000);
      assert.match(text(await rig.ask(['SET', key, 'while'], at)), /^TRYAGAIN shadow-proxy: slot \d+ is moving/);
    });
    await until(async () => /has moved/.test(text(await rig.ask(['GET', key], at))), 5_000);
    assert.match(rig.shards[at].snapshot().movedSlots, /^slots \d+ have moved to another node of the source$/);
    assert.equal(text(await askNode(to, 'GET', key)), 'before');
    // The keys of all other slots go on.
    const other = Array.from({ length: 50 }, (_, i) => `o:${i}`).filter((each) => slotOf(each) !== slot);
    for (const each of other) await client.set(each, 'x');
    await writing.stop();
    client.disconnect();
    // They derive their shards again: the slot is the other shard's now.
    await rig.drain();
    await rig.serve();
    const again = rig.plan.shards.findIndex(({ slots }) => slots!.some(([a, b]) => a <= slot && slot <= b));
    assert.notEqual(rig.plan.shards[again].name, rig.plan.shards[at].name);
    assert.equal(text(await rig.ask(['GET', key], again)), 'before');
    assert.equal(text(await rig.ask(['SET', key, 'after'], again)), 'OK');
    // It does not believe that the mirror has what another proxy wrote there.
    const { workloads } = rig.shards[again].snapshot();
    assert.match(String(workloads[0].suspect), /slots have moved/);
    for (const job of await rig.run({ kind: 'verify', repair: true })) assert.equal(job.state, 'done');
    await assertEqual(rig);
  });
});

for (const target of ['standalone', undefined] as const)
  test(`after a slot has moved, keys on ${target === undefined ? 'the KeyDB cluster' : 'one KeyDB'} are still known to be ours`, async () => {
    await withClusterRig({ ...(target && { target }), plan: { default: { stage: 'shadow' } } }, async (rig) => {
      const client = rig.client();
      const [moves, stays] = ['{k:1}', '{k:5}'];
      const slot = slotOf(moves);
      const from = await rig.masterOfSlot('source', slot);
      assert.equal(await rig.masterOfSlot('source', slotOf(stays)), from);
      for (const tag of [moves, stays]) for (let i = 0; i < 20; i++) await client.set(`${tag}${i}`, 'v');
      await rig.settled();
      client.disconnect();
      const { masters } = rig.source;
      const to = masters.find((each) => each !== from)!;
      await moveSlot(slot, from, to, masters);
      await rig.drain();
      // As where a deletion's repair came too late: the slot had moved.
      await askNode(to, 'DEL', `${moves}7`);
      await askNode(from, 'DEL', `${stays}7`);
      await rig.serve();
      // The proxies verify and repair by themselves.
      await until(
        () => rig.shards.every((shard) => shard.snapshot().workloads.every(({ suspect }) => suspect === null)),
        30_000,
      );
      await assertEqual(rig);
    });
  });
