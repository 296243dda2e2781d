/**
 * Keys that scripts change are copied, and suspects until then. What cannot be compared meanwhile is compared behind
 * the copy, and a difference there is found.
 *
 * Needs real servers: Lua and keyspace notifications of keys that scripts change all the time.
 */
import assert from 'node:assert/strict';
import { connect, createServer, type AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sum } from '../../../src/telemetry/snapshot.js';
import { startRig, withRig, type Rig } from '../../support/rig.js';
import { withServers } from '../../support/servers.js';
import { startTestShard, until } from '../../support/shard.js';
import { clientsOf } from '../../support/clients.js';

/** As packages for locks, limits and queues write them: none can be proved to do the same on both servers. */
const SCRIPTS = {
  TIME: "return redis.call('SET', KEYS[1], redis.call('TIME')[2])",
  pcall: "return redis.pcall('INCR', KEYS[1])",
  random: "redis.call('SET', KEYS[1], math.random(1000000)); return redis.call('GET', KEYS[1])",
  hidden: "for i = 1, 1 do redis.call('SET', KEYS[i] .. ':at', redis.call('TIME')[2]) end return 1",
};

const keyOf = (kind: string, n: number): string => `${kind}:${n % 3}`;

/** Clients run the script, and read and write what it changes, some of them in one pipeline. */
async function work({ wire, client }: Rig, kind: keyof typeof SCRIPTS, times: number): Promise<void> {
  const wires = await Promise.all(Array.from({ length: 4 }, () => wire()));
  await Promise.all(
    wires.map(async (each, w) => {
      for (let i = 0; i < times; i++) {
        const key = keyOf(kind, i);
        await each.pipeline([
          ['EVAL', SCRIPTS[kind], 1, key],
          ['GET', key],
          ['MGET', key, `${key}:at`],
          ...(w === 0 ? [['MULTI'], ['GET', key], ['EXISTS', `${key}:at`], ['EXEC']] : []),
        ]);
        if (w === 1)
          await each.pipeline([
            ['DEL', key],
            ['SET', key, 1, 'NX', 'PX', 60_000],
            ['GET', `${key}:at`],
          ]);
      }
    }),
  );
  await client().quit();
}

describe('replies about keys that scripts change are compared behind the copy', () => {
  for (const kind of ['TIME', 'pcall', 'random', 'hidden'] as const) {
    for (const stage of kind === 'TIME' ? (['shadow', 'live'] as const) : (['shadow'] as const)) {
      test(`with ${kind} in the script, in ${stage}`, async (t) => {
        await withRig({ default: { stage } }, async (rig) => {
          await work(rig, kind, 60);
          await rig.assertEqual();
          const { compared, inconclusive } = rig.shard.snapshot();
          t.diagnostic(JSON.stringify({ compared, inconclusive }));
          assert.ok(compared > 100, `${compared} pairs were compared`);
          assert.ok(sum(inconclusive) <= compared / 1_000, JSON.stringify(inconclusive));
          // They are found all the same once nothing is on its way.
          const [wire, behind] = [await rig.wire(), rig.client({ of: rig.target })];
          for (const n of [0, 1, 2]) {
            await behind.set(keyOf(kind, n), 'planted');
            await wire.ask('GET', keyOf(kind, n));
          }
          await until(() => sum(rig.shard.snapshot().mismatches) === 3);
        });
      });
    }
  }
});

test('keys that only scripts read are compared by their values', async () => {
  await withRig({}, async (rig) => {
    const wire = await rig.wire();
    for (let i = 0; i < 20; i++) {
      await wire.ask('EVAL', SCRIPTS.TIME, 1, `k:${i}`);
      await sleep(12);
    }
    await rig.assertEqual();
    assert.ok(rig.shard.snapshot().compared >= 10, `${rig.shard.snapshot().compared} were compared`);
  });
});

test('a difference in another key of the same read is found', async () => {
  const rig = await startRig();
  try {
    const [wire, behind] = [await rig.wire(), rig.client({ of: rig.target })];
    await wire.ask('SET', 'rests', 'equal');
    await rig.assertEqual();
    await behind.set('rests', 'planted');
    await wire.pipeline([
      ['EVAL', SCRIPTS.TIME, 1, 'moves'],
      ['MGET', 'moves', 'rests'],
    ]);
    await until(() => sum(rig.shard.snapshot().mismatches) === 1);
  } finally {
    await rig.stop();
  }
});

/** Every copy arrives with other bytes: KeyDB is sent `wrong` for `right`. */
async function withBrokenCopies(body: (rig: Pick<Rig, 'wire' | 'shard'>) => Promise<void>): Promise<void> {
  await withServers(async ({ source, target }) => {
    const relay = createServer((client) => {
      const server = connect(target.port, target.host);
      client.on('data', (bytes) => server.write(bytes.toString('latin1').replaceAll('right', 'wrong'), 'latin1'));
      server.pipe(client);
      for (const [one, other] of [
        [client, server],
        [server, client],
      ])
        one.on('error', () => undefined).on('close', () => other.destroy());
    });
    await new Promise<void>((listening) => relay.listen(0, '127.0.0.1', listening));
    const { port } = relay.address() as AddressInfo;
    const shard = await startTestShard({ source, target: `redis://127.0.0.1:${port}` });
    const { closeAll, ...clients } = clientsOf(() => shard.port);
    try {
      await body({ ...clients, shard });
    } finally {
      closeAll();
      await shard.stop();
      relay.close();
    }
  });
}

const RIGHT = "return redis.call('SET', KEYS[1], 'right' .. redis.call('TIME')[2])";

test('a copy that went wrong is found in a key that a script changes all the time, by what clients read', async () => {
  await withBrokenCopies(async ({ wire, shard }) => {
    const each = await wire();
    const script = ['EVAL', RIGHT, 1, 'k'];
    for (let i = 0; i < 20 && sum(shard.snapshot().mismatches) === 0; i++)
      await each.pipeline(Array.from({ length: 20 }, () => [script, ['GET', 'k']]).flat());
    await until(() => shard.findings().some(({ command }) => command === 'get'));
    assert.ok(shard.snapshot().mismatches.value > 0);
  });
});

test('a copy that went wrong is found in a key that nothing but a script reads', async () => {
  await withBrokenCopies(async ({ wire, shard }) => {
    await (await wire()).ask('EVAL', RIGHT, 1, 'k');
    await until(() => sum(shard.snapshot().mismatches) === 1);
    assert.deepEqual(
      shard.findings().map(({ command, kind, key }) => [command, kind, key?.text]),
      [['dump', 'value', 'k']],
    );
    await until(() => shard.snapshot().suspects.total === 0);
    // It is copied once more, and not again and again.
    await sleep(200);
    assert.equal(sum(shard.snapshot().mismatches), 1);
  });
});
