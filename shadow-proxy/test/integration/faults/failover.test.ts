/**
 * The source dies under load, and nobody is there to decide: its clients are sent to the target, and nothing
 * acknowledged is lost.
 *
 * Needs real processes: SIGKILL and SIGSTOP of the source, as a kernel shows them to its clients.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { withServers } from '../../support/servers.js';
import { startTestShard, until } from '../../support/shard.js';
import { Wire } from '../../support/wire.js';
import { dies } from './dies.js';

test('a source that is killed under load is failed over from, and nothing acknowledged is lost', async (t) => {
  await dies(t, { stage: 'shadow', side: 'source', how: 'killed' });
});

test('clients that connect while the source hangs are served by the target after the failover', async () => {
  await withServers(async ({ source, target }) => {
    const shard = await startTestShard({
      ...{ source, target, default: { stage: 'shadow' }, failover: 'automatic', limits: { downAfterMs: 1_000 } },
    });
    const wires = new Set<Wire>();
    /** Asks until it gets a reply: a connection that is closed is made again. */
    const served = async (key: string): Promise<void> => {
      for (let reply = ''; reply !== '+OK';) {
        const wire = await Wire.open({ port: shard.port });
        wires.add(wire);
        reply = await wire.ask('SET', key, 'v').catch(() => '');
      }
    };
    try {
      await source.kill('SIGSTOP');
      const clients: Promise<void>[] = [];
      // All the time: whether one must log in is asked after that was answered for those before it.
      while (shard.snapshot().workloads[0].stage === 'shadow') {
        clients.push(served(`k${clients.length}`));
        await sleep(20);
      }
      let left = clients.length;
      for (const client of clients) void client.then(() => left--);
      await until(
        () => left === 0,
        10_000,
        () => `${left} of ${clients.length} clients wait`,
      );
      assert.equal(shard.snapshot().failovers, 1);
    } finally {
      await source.kill('SIGCONT');
      for (const wire of wires) wire.destroy();
      await shard.stop();
    }
  });
});
