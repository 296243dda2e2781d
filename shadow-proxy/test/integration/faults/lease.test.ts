/**
 * The lease by itself: who gets it, who keeps it, and who must stop; at a real Redis and a real KeyDB.
 *
 * Needs real servers: the lease's script on Redis and KeyDB, CLIENT KILL, and restarts that keep or lose it.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { Dialer } from '../../../src/upstream/dialer.js';
import type { LeaseError } from '../../../src/lease/lease.js';
import { Ownership } from '../../../src/lease/ownership.js';
import { patienceMs } from '../../support/patience.js';
import { smallPlan, toPlan } from '../../support/plans.js';
import { Relay } from '../../../src/local/relay.js';
import { withServers, type Pair } from '../../support/servers.js';
import { until } from '../../support/shard.js';

interface Candidate {
  readonly ownership: Ownership;
  /** Why it had to stop. */
  readonly lost: () => LeaseError | null;
  acquire(how?: { readonly standby: boolean }): Promise<void>;
}

interface Setting extends Pair {
  candidate(
    shard?: string,
    servers?: { readonly source: { readonly url: string }; readonly target: { readonly url: string } },
  ): Candidate;
}

async function withCandidates(body: (setting: Setting) => Promise<void>): Promise<void> {
  await withServers(async (pair) => {
    const all: Ownership[] = [];
    try {
      await body({
        ...pair,
        candidate(shard = 'a', { source, target } = pair) {
          let reason: LeaseError | null = null;
          const [plan] = toPlan({
            ...smallPlan(),
            shards: [{ name: shard, listen: 'redis://127.0.0.1:0', source: source.url, target: target.url }],
          }).shards;
          const dialers = { source: new Dialer(plan.source, 1_000), target: new Dialer(plan.target, 1_000) };
          const ownership = new Ownership({ shard, dialers, lost: (lost) => (reason = lost) });
          all.push(ownership);
          return {
            ownership,
            lost: () => reason,
            acquire: ({ standby } = { standby: false }) =>
              ownership.acquire({ standby, needed: () => Promise.resolve(['source']) }),
          };
        },
      });
    } finally {
      for (const ownership of all) ownership.close();
    }
  });
}

const holds = ({ ownership: { leases } }: Candidate): boolean => leases.source.held && leases.target.held;
const within = async (ms: number, work: Promise<unknown>): Promise<number> => {
  const since = performance.now();
  await work;
  const took = performance.now() - since;
  assert.ok(took < patienceMs(ms), `it took ${took} ms`);
  return took;
};

test('one of many that start at once gets the lease, at both servers, and nobody else', async () => {
  await withCandidates(async ({ candidate }) => {
    for (let round = 0; round < 3; round++) {
      const all = Array.from({ length: 6 }, () => candidate());
      const outcomes = await Promise.allSettled(all.map((each) => each.acquire()));
      assert.deepEqual(outcomes.map(({ status }) => status).sort(), [
        'fulfilled',
        ...new Array<string>(5).fill('rejected'),
      ]);
      assert.equal(all.filter(holds).length, 1);
      for (const outcome of outcomes)
        if (outcome.status === 'rejected') assert.equal((outcome.reason as LeaseError).code, 'held');
      for (const { ownership } of all) ownership.close();
    }
  });
});

test('it takes milliseconds where nobody has it, and leaves no key', async () => {
  await withCandidates(async ({ candidate, source, target }) => {
    const first = candidate();
    await within(500, first.acquire());
    await within(500, candidate('another-shard').acquire());
    assert.equal(first.ownership.predecessor, null);
    assert.match(first.ownership.epoch.source ?? '', /^[0-9a-f]{40}:\d+$/);
    for (const { url } of [source, target]) {
      const direct = new Redis(url);
      assert.equal(await direct.dbsize(), 0);
      direct.disconnect();
    }
  });
});

test('those who wait get it in the order in which they came; given back, it is taken at once', async () => {
  await withCandidates(async ({ candidate }) => {
    const [first, second, third] = [candidate(), candidate(), candidate()];
    await first.acquire();
    await first.ownership.publishNote('x1');
    const order: number[] = [];
    const waiting = [second, third].map(async (each, i) => {
      await each.acquire({ standby: true });
      order.push(i);
    });
    await until(() => second.ownership.leases.target.connected);
    // None of them may take it: with a holder that is closed, one would by now.
    await sleep(600);
    assert.deepEqual(order, []);
    await first.ownership.release(true);
    await within(1_500, waiting[0]);
    assert.deepEqual(second.ownership.predecessor, { process: first.ownership.process, clean: true, note: 'x1' });
    // What it learned as it waited is its own note until it leaves another.
    await second.ownership.release(false);
    await within(1_500, waiting[1]);
    assert.deepEqual(third.ownership.predecessor, { process: second.ownership.process, clean: false, note: 'x1' });
  });
});

for (const which of ['source', 'target'] as const) {
  test(`the restart of the ${which} leaves the lease with its holder`, async () => {
    await withCandidates(async ({ candidate, ...servers }) => {
      const [holder, standby] = [candidate(), candidate()];
      await holder.acquire();
      let taken = false;
      void standby.acquire({ standby: true }).then(
        () => (taken = true),
        () => undefined,
      );
      await until(() => standby.ownership.leases[which].connected);
      for (const downMs of [0, 3_000]) {
        await servers[which].kill('SIGKILL');
        // The server is down for so long.
        await sleep(downMs);
        await servers[which].start();
        await until(() => holds(holder));
        // The holder must keep it: a standby that had lost sight of it would have taken it by now.
        await sleep(2_500);
        assert.deepEqual([taken, holder.lost(), holds(holder)], [false, null, true]);
      }
    });
  });
}

test('a holder that was cut off for less than others wait keeps the lease; one that was taken over from stops', async (t) => {
  await withCandidates(async ({ candidate, source, target }) => {
    const relays = [await Relay.start(source), await Relay.start(target)];
    t.after(() => Promise.all(relays.map((relay) => relay.close())));
    const holder = candidate('a', { source: relays[0], target: relays[1] });
    const standby = candidate();
    await holder.acquire();
    const takeover = standby.acquire({ standby: true });
    await until(() => standby.ownership.leases.target.connected);
    for (const relay of relays) relay.cut();
    await until(() => holds(holder));
    // The holder must keep it, as above.
    await sleep(2_500);
    assert.equal(holder.lost(), null);
    // Nothing arrives any more, and no connection ends.
    for (const relay of relays) relay.hold('up', 'down');
    await within(5_000, takeover);
    assert.equal(standby.ownership.predecessor?.process, holder.ownership.process);
    for (const relay of relays) relay.release();
    await until(() => holder.lost() !== null);
    assert.equal(holder.lost()?.code, 'lost');
    await assert.rejects(holder.ownership.leases.source.confirm(), { code: 'lost' });
    assert.equal(holds(standby), true);
  });
});

test('a holder whose connections were killed keeps the lease if it reached one server, and stops if it was cut off from both for long', async (t) => {
  await withCandidates(async ({ candidate, source, target }) => {
    const relays = [await Relay.start(source), await Relay.start(target)];
    t.after(() => Promise.all(relays.map((relay) => relay.close())));
    const holder = candidate('a', { source: relays[0], target: relays[1] });
    await holder.acquire();
    // One of two is no harm: at the other it was never lost.
    relays[0].hold('up', 'down');
    relays[0].cut();
    // Longer than a standby waits.
    await sleep(3_000);
    relays[0].release();
    await until(() => holds(holder) || holder.lost() !== null);
    assert.equal(holder.lost(), null);
    for (const relay of relays) relay.hold('up', 'down');
    for (const relay of relays) relay.cut();
    // Cut off from both for longer than a standby waits.
    await sleep(3_000);
    for (const relay of relays) relay.release();
    await until(() => holder.lost() !== null);
    assert.match(holder.lost()!.message, /another proxy may have held it/);
  });
});

test('a mirror that cannot be reached is taken when it can', async () => {
  await withCandidates(async ({ candidate, target }) => {
    await target.kill('SIGKILL');
    const holder = candidate();
    await holder.acquire();
    assert.equal(holder.ownership.leases.source.held, true);
    await assert.rejects(holder.ownership.leases.target.confirm());
    await target.start();
    await until(() => holds(holder));
    await assert.rejects(candidate().acquire(), { code: 'held' });
  });
});

test('a server that stalls does not make its holder look dead', async () => {
  await withCandidates(async ({ candidate, source }) => {
    const [holder, standby] = [candidate(), candidate()];
    await holder.acquire();
    let taken = false;
    void standby.acquire({ standby: true }).then(
      () => (taken = true),
      () => undefined,
    );
    await until(() => standby.ownership.leases.target.connected);
    await source.kill('SIGSTOP');
    // It stalls for longer than a standby waits.
    await sleep(5_000);
    await source.kill('SIGCONT');
    // The standby must not take it: it would have by now.
    await sleep(3_000);
    assert.deepEqual([taken, holder.lost(), holds(holder)], [false, null, true]);
  });
});
