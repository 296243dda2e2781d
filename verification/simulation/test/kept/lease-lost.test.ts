/** A process stops once another one may have had its lease. Real processes are seldom cut off at such moments. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';
import { Proxy } from '../../world/proxy.js';
import type { ServerHost } from '../../world/server-host.js';

/** A standby takes over within so long. */
const VACANT_MS = 5_000;
const A_WHILE_MS = 2_000;
const SLOW_MS = 10;
/** Waiting processes wait so long for a holder to return. */
const RETURN_MS = 2_000;
const STOPPED_MS = 900;

/** The process cannot reach the server. */
function separate({ world: { network } }: KeptWorld, { host }: Proxy, server: ServerHost): void {
  network.blocked.add(`${host.address} ${server.address.host}`);
  for (const connection of network.connections)
    if (connection.from.host === host.address && connection.to.host === server.address.host) connection.cut();
}

function join({ world: { network } }: KeptWorld, { host }: Proxy, server: ServerHost): void {
  network.blocked.delete(`${host.address} ${server.address.host}`);
}

/** The standby serves, takes a write, and is killed. */
async function takesOver(kept: KeptWorld): Promise<void> {
  const { standby } = kept;
  await kept.until(() => standby.launched !== null, 'the standby serves');
  assert.equal(await (await kept.client(standby)).ask('SET k second'), '+OK');
  standby.kill();
}

/** A process that serves, and one that waits. */
const withBoth = (stage: string, body: (kept: KeptWorld) => Promise<void>): Promise<void> =>
  KeptWorld.run(
    async (kept) => {
      kept.standby.start();
      await kept.pass(A_WHILE_MS);
      await body(kept);
    },
    { default: { stage } },
    () => undefined,
    1,
  );

async function hasStopped(kept: KeptWorld): Promise<void> {
  const { proxy } = kept;
  await kept.pass(A_WHILE_MS);
  assert.match(proxy.problem?.message ?? 'it goes on', /has lost its lease/);
}

test('A process that was stopped while the answer to its question came does not take that for a sign', () =>
  withBoth('shadow', async (kept) => {
    const { proxy, source, target } = kept;
    const leases = [source, target].map(
      ({ model }) => [...model.clients.values()].find(({ name }) => name.includes(':holds:'))!.address,
    );
    const asked = new Set<string>();
    for (const server of [source, target])
      server.onCommand = (address, [name]) => {
        if (name !== 'PING' || !leases.includes(address) || asked.size === 2) return;
        asked.add(address);
        // Both answers lie there until it goes on.
        if (asked.size === 2) proxy.process!.stopUntil(kept.world.events.now + 3 * VACANT_MS);
      };
    await kept.until(() => asked.size === 2, 'it asks both');
    await takesOver(kept);
    await kept.pass(3 * VACANT_MS);
    await hasStopped(kept);
  }));

test('A server that has restarted since does not vouch for the time before', () =>
  withBoth('rampdown', async (kept) => {
    const { proxy, source, target } = kept;
    for (const server of [source, target]) separate(kept, proxy, server);
    await takesOver(kept);
    target.stop();
    target.start(true);
    join(kept, proxy, target);
    await kept.pass(A_WHILE_MS);
    join(kept, proxy, source);
    await hasStopped(kept);
  }));

for (const waits of [false, true])
  test(`A server that the other process does not need vouches for nothing${waits ? ', though it waits there later' : ''}`, () =>
    withBoth('rampdown', async (kept) => {
      const { proxy, standby, source, target } = kept;
      separate(kept, standby, source);
      separate(kept, proxy, target);
      await takesOver(kept);
      if (waits) {
        join(kept, standby, source);
        standby.start();
        await kept.pass(A_WHILE_MS);
      }
      join(kept, proxy, target);
      await hasStopped(kept);
    }));

test('Of two processes that claim the lease at once, one has it at most', () =>
  KeptWorld.run(
    async (kept) => {
      const { world, proxy, standby, source } = kept;
      const urls = { source: 'redis://10.0.0.2:6379', target: 'redis://10.0.0.3:6379' };
      const plan = { default: { stage: 'rampdown' } };
      const other = new Proxy(world, world.newHost('10.0.0.12'), { ...urls, plan, isStandby: true, others: 2 });
      world.network.options = { ...world.network.options, delayMs: [SLOW_MS, SLOW_MS] };
      // Each is the first in line where it looks.
      separate(kept, other, source);
      other.start();
      await kept.pass(A_WHILE_MS);
      standby.start();
      await kept.pass(A_WHILE_MS);
      proxy.kill();
      const waiting = [standby, other];
      // Both look when they go on.
      await kept.pass(RETURN_MS - STOPPED_MS / 2);
      for (const { process } of waiting) process!.stopUntil(world.events.now + STOPPED_MS);
      await kept.until(() => waiting.some(({ launched }) => launched !== null), 'one serves');
      await kept.pass(A_WHILE_MS);
      assert.equal(waiting.filter(({ launched }) => launched !== null).length, 1);
    },
    { default: { stage: 'rampdown' } },
    () => undefined,
    2,
  ));
