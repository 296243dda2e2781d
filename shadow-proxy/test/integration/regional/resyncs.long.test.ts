/**
 * Two proxies in front of two active-active nodes: every kind of resync, and a proxy that restarts during a cut.
 *
 * Needs real servers: partial and full resyncs of two active KeyDB nodes.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ActivePair, RESYNCS, SIDES, type Resyncs, type Side } from '../../../src/local/active-pair.js';
import { startRedis } from '../../../src/local/servers.js';
import { clientsOf } from '../../support/clients.js';
import { startTestShard, until, type TestShard } from '../../support/shard.js';
import { needs } from '../../support/needs.js';

const MIRRORED: Readonly<Record<string, Resyncs>> = {
  ...RESYNCS,
  'asymmetric the other way': { a: 'full', b: 'partial' },
};
const BEFORE = 100;
const IN_CUT = 400;

for (const [name, resyncs] of Object.entries(MIRRORED)) {
  test(`${name}: what both proxies counted adds up, although one was restarted, and windows end`, async (t) => {
    if (!(await needs(t, 'keydb'))) return;
    const pair = await ActivePair.start({ backlogBytes: 4 << 20 });
    const source = await startRedis();
    const directories: Record<Side, string> = {
      a: await mkdtemp(join(tmpdir(), 'regional-')),
      b: await mkdtemp(join(tmpdir(), 'regional-')),
    };
    const start = (side: Side): Promise<TestShard> =>
      startTestShard({
        name: `proxy-${side}`,
        source,
        target: pair.nodes[side],
        workloads: [{ name: 'rl', keys: ['rl:*'], class: 'counter', counterLayout: 'per-region', stage: 'complete' }],
        default: { stage: 'off' },
        topology: { mode: 'active-active', regions: [...SIDES] },
        shard: { region: side },
        stateDir: directories[side],
      });
    const shards = { a: await start('a'), b: await start('b') };
    const clients = { a: clientsOf(() => shards.a.port), b: clientsOf(() => shards.b.port) };
    const count = async (side: Side, times: number): Promise<void> => {
      const [one, two] = [clients[side].client(), clients[side].client()];
      for (let i = 0; i < times / 2; i++) {
        const [, window] = await Promise.all([
          one.incr('rl:hits'),
          two.incr(`rl:window:${i % 10}`),
          one.decr('rl:down'),
          two.incr('rl:hits'),
        ]);
        if (window === 1) await two.pexpire(`rl:window:${i % 10}`, 20_000);
      }
    };
    try {
      await Promise.all(SIDES.map((side) => count(side, BEFORE)));
      await pair.settle();
      await pair.cut();
      await Promise.all(SIDES.map((side) => count(side, IN_CUT)));
      await shards.b.stop();
      shards.b = await start('b');
      await Promise.all(SIDES.map((side) => count(side, BEFORE)));
      assert.deepEqual(await pair.rejoin(resyncs), resyncs);
      for (const side of SIDES) {
        const reader = clients[side].client();
        const all = 2 * (2 * BEFORE + IN_CUT);
        await until(
          async () =>
            (await reader.get('rl:hits')) === String(all) && (await reader.get('rl:down')) === String(-all / 2),
          60_000,
          () => `everything is seen at ${side}`,
        );
        for (let i = 0; i < 10; i++) assert.ok((await reader.ttl(`rl:window:${i}`)) !== -1, 'every window has an end');
        await until(
          async () => (await reader.exists(...Array.from({ length: 10 }, (_, i) => `rl:window:${i}`))) === 0,
          60_000,
          () => `every window has ended at ${side}`,
        );
      }
    } finally {
      for (const side of SIDES) {
        clients[side].closeAll();
        await shards[side].stop();
        await rm(directories[side], { recursive: true, force: true });
      }
      await pair.stop();
      await source.stop();
    }
  });
}
