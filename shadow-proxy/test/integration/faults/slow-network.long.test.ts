/**
 * The rehearsals of faults, with the target behind a slow network: far away, narrow, and with connections that stall as
 * they do where packets are lost. What is acknowledged stays, and both servers end equal.
 *
 * No packet is lost: a relay between proxy and target shows what TCP makes of it.
 *
 * Needs real sockets: what TCP makes of delay, narrow links and stalls.
 */
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Relay } from '../../../src/local/relay.js';
import { SlowNetwork, type Network } from '../../support/slow-network.js';
import { rehearse, type Rehearsal } from './rehearsal.js';
import { killProxy, resetMirror, restartMirrorEmpty } from './rehearsed-faults.js';

/** 80 ms there and back. */
const FAR = { delayMs: 40 };
/** A lost packet that later ones show is sent again one round trip later; the last one of a burst, by a timer. */
const STALLING = { ...FAR, stalls: { everyMs: 500, ms: [80, 80, 80, 300, 600, 1_200] } };
/** About what one connection of TCP gets with 1 % loss at 80 ms. */
const NARROW = { ...FAR, bytesPerSecond: 220_000 };

async function over(t: TestContext, network: Network, rehearsal: Rehearsal): Promise<void> {
  const slow: SlowNetwork[] = [];
  await rehearse(t, {
    ...rehearsal,
    moreThan: 500,
    plan: async ({ shards: [shard] }, { target }) => {
      const relay = await Relay.start(target);
      t.after(() => relay.close());
      slow.push(new SlowNetwork(relay, network, 1));
      t.after(() => slow[0].stop());
      shard.target = relay.url;
    },
  });
  t.diagnostic(`${slow[0].stalls} stalls`);
}

for (const [how, network] of [
  ['far away', FAR],
  ['far away, and its connections stall', STALLING],
  ['far away, and its network narrow', NARROW],
] as const) {
  test(`the mirror is ${how}`, (t) => over(t, network, { fault: () => sleep(3_000) }));
  test(`the authority is ${how}`, (t) => over(t, network, { stage: 'live', fault: () => sleep(3_000) }));
  test(`the mirror is ${how}; it is killed and restarts empty`, (t) =>
    over(t, network, { faultMs: 1_500, fault: restartMirrorEmpty }));
}

test('the mirror is far away, and its connections stall and are reset every 100 ms', (t) =>
  over(t, STALLING, { faultMs: 5_000, fault: resetMirror }));

test('the mirror is far away, and its connections stall; the proxy is killed', (t) =>
  over(t, STALLING, { reconnects: true, fault: killProxy }));
