/** A process does not trust its folder where another one may have served since. Each case is one order of ends. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rollBackOffline } from '../../../../shadow-proxy/src/stages/offline-rollback.js';
import { KeptWorld } from '../../kept/world.js';
import type { Proxy } from '../../world/proxy.js';
import type { ServerHost } from '../../world/server-host.js';

const A_WHILE_MS = 2_000;
const LONG_MS = 600_000;
const DRAIN_MS = 1_000;

const serves = (kept: KeptWorld, proxy: Proxy): Promise<void> =>
  kept.until(() => proxy.launched !== null, 'the process serves');

/** The process cannot reach the server. */
function separate({ world: { network } }: KeptWorld, { host }: Proxy, server: ServerHost): void {
  network.blocked.add(`${host.address} ${server.address.host}`);
  for (const connection of network.connections)
    if (connection.from.host === host.address && connection.to.host === server.address.host) connection.cut();
}

async function ends(kept: KeptWorld): Promise<void> {
  let hasEnded = false;
  kept.proxy.end(DRAIN_MS, () => (hasEnded = true));
  await kept.until(() => hasEnded, 'the process has ended');
}

/** Both servers have a key. */
async function begin(kept: KeptWorld): Promise<void> {
  await (await kept.client()).ask('SET k first');
  await kept.until(() => kept.isClean && kept.values('0 k').every((value) => value === 'first'), 'both have the key');
}

async function standBy(kept: KeptWorld): Promise<void> {
  kept.standby.start();
  await kept.pass(A_WHILE_MS);
}

/** The standby serves without the mirror, takes a write of a key that is new, and is killed. */
async function servesAndEnds(kept: KeptWorld, mirror = kept.target): Promise<void> {
  const { standby } = kept;
  await serves(kept, standby);
  separate(kept, standby, mirror);
  assert.equal(await (await kept.client(standby)).ask('SET later value'), '+OK');
  standby.kill();
}

/** The first process starts again, sees no other, and repairs what the other one has left. */
async function knows(kept: KeptWorld): Promise<void> {
  const { proxy } = kept;
  proxy.start();
  await serves(kept, proxy);
  await kept.until(() => kept.isClean, 'the shard is clean');
  assert.deepEqual(kept.values('0 later'), ['value', 'value']);
}

/** The servers do not see that the connection ends on which a process releases its lease. */
function hideEnds(kept: KeptWorld): void {
  for (const server of [kept.source, kept.target])
    server.onCommand = (address, [name, what, claim]) => {
      if (name === 'CLIENT' && what === 'SETNAME' && claim.includes(':clean:'))
        kept.endOf(server, Number(address.split(':')[1])).other.silence(LONG_MS);
    };
}

const NOTHING = (): void => undefined;
const SHADOW = { default: { stage: 'shadow' } };
const RAMPDOWN = { default: { stage: 'rampdown' } };

test('A process that crashed takes into account that one that waited may have served', () =>
  KeptWorld.run(
    async (kept) => {
      await begin(kept);
      await standBy(kept);
      kept.proxy.kill();
      await servesAndEnds(kept);
      await knows(kept);
    },
    SHADOW,
    NOTHING,
    1,
  ));

test('So does a process that has ended while another one waited', () =>
  KeptWorld.run(
    async (kept) => {
      await begin(kept);
      await standBy(kept);
      await ends(kept);
      await servesAndEnds(kept);
      await knows(kept);
    },
    SHADOW,
    NOTHING,
    1,
  ));

test('A process that was refused because another one served remembers that', () =>
  KeptWorld.run(async (kept) => {
    const { proxy, standby } = kept;
    await begin(kept);
    await standBy(kept);
    proxy.kill();
    await serves(kept, standby);
    await kept.until(() => standby.condition()!.workloads.every(({ clean }) => clean), 'all is copied');
    proxy.start();
    await kept.until(() => proxy.problem !== null, 'it is refused');
    assert.match(proxy.problem!.message, /is served by another proxy/);
    await servesAndEnds(kept);
    await knows(kept);
  }, SHADOW));

test('The word of a process that has released the lease does not outlive the next holder', () =>
  KeptWorld.run(
    async (kept) => {
      await begin(kept);
      await standBy(kept);
      hideEnds(kept);
      await ends(kept);
      await servesAndEnds(kept);
      await knows(kept);
    },
    SHADOW,
    NOTHING,
    1,
  ));

test('It is not believed at a server that the shard does not need: the next holder may not have reached that', () =>
  KeptWorld.run(
    async (kept) => {
      await begin(kept);
      await standBy(kept);
      separate(kept, kept.standby, kept.source);
      hideEnds(kept);
      await ends(kept);
      await servesAndEnds(kept, kept.source);
      await knows(kept);
    },
    RAMPDOWN,
    NOTHING,
    1,
  ));

test('A rollback without proxies leaves one alone whose journal is in another folder', () =>
  KeptWorld.run(
    async (kept) => {
      const { proxy, standby, world } = kept;
      await begin(kept);
      await standBy(kept);
      proxy.kill();
      await serves(kept, standby);
      let problem: string | null = null;
      world.events.after(0, world.newProcess('rollback', proxy.host), () => {
        void rollBackOffline(proxy.plan, proxy.plan.shards[0], { workload: null, force: false, note: {} }).then(
          () => (problem = 'none'),
          ({ message }: Error) => (problem = message),
        );
      });
      await kept.until(() => problem !== null, 'it has ended');
      await kept.pass(A_WHILE_MS);
      assert.match(problem!, /its journal is in another folder; nothing was changed/);
      assert.notEqual(standby.launched, null, 'the other proxy serves');
    },
    { default: { stage: 'live' } },
    NOTHING,
    1,
  ));
