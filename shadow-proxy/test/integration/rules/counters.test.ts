/**
 * Counters at run time: one that the plan does not know is found, and one that another region writes is not written
 * here.
 *
 * Needs real servers: refused counters, as ioredis reads the error, and as Lua and MULTI hide them.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReplyError } from 'ioredis';
import type { CountingSnapshot } from '../../../src/telemetry/snapshot.js';
import type { Stage } from '../../../src/route/stage.js';
import { until, type TestShardOptions } from '../../support/shard.js';
import { withRig, type Rig } from '../../support/rig.js';

const REGIONS = { mode: 'active-active', regions: ['eu', 'us'] };
const pinned = (
  stage: Stage,
  secondWriter: 'refuse' | 'count' = 'refuse',
): Omit<TestShardOptions, 'source' | 'target'> => ({
  workloads: [{ name: 'rl', keys: ['rl:*'], class: 'counter', writer: 'eu', stage }],
  default: { stage },
  topology: { ...REGIONS, secondWriter },
  shard: { region: 'us' },
});

const secondWriterWrites = ({ shard }: Rig): number =>
  shard.snapshot().workloads.find(({ name }) => name === 'rl')!.secondWriterWrites;
const refused =
  /"rl" must not be written here: its only writer is eu, and this is the proxy of us: send writes to the proxy of eu/;

test('a workload that another region writes is refused here, and read', async () => {
  await withRig(pinned('complete'), async (rig) => {
    const client = rig.client();
    for (const [command, ...args] of [
      ['incr', 'rl:1'],
      ['mset', 'other', 1, 'rl:1', 2],
      ['rename', 'rl:1', 'other'],
      ['blpop', 'rl:1', 1],
      ['eval', "return redis.call('incr', KEYS[1])", 1, 'rl:1'],
      ['pfadd', 'rl:1', 'x'],
      ['move', 'rl:1', 1],
    ] as const) {
      await assert.rejects(client.call(command, ...args), { name: 'ReplyError', message: refused }, command);
    }
    for (const [command, ...args] of [
      ['eval', "return redis.call('incr', ARGV[1])", 0, 'rl:1'],
      ['flushall'],
    ] as const) {
      await assert.rejects(
        client.call(command, ...args),
        /does not name its keys, and may write to "rl": its only writer is eu/,
        command,
      );
    }
    await assert.rejects(client.multi().incr('other').incr('rl:1').exec(), /EXECABORT/);
    assert.equal(secondWriterWrites(rig), 10);
    assert.equal(await client.exists('rl:1', 'other'), 0, 'nothing was written');

    assert.equal(await client.get('rl:1'), null);
    assert.equal(await client.call('eval', "return redis.call('get', KEYS[1])", 1, 'rl:1'), null);
    assert.equal(await client.call('eval', 'return 1', 0), 1);
    assert.equal(await client.incr('other'), 1);
    assert.equal(await client.call('zunionstore', 'other-set', 1, 'rl:1'), 0, 'what only reads it may be written here');
  });
});

test('while the source alone has it, it is nobody else’s', async () => {
  await withRig(pinned('off'), async (rig) => {
    assert.equal(await rig.client().incr('rl:1'), 1);
    assert.equal(secondWriterWrites(rig), 0);
    for (const change of [
      rig.shard.shard.promote({ workload: 'rl' }),
      rig.shard.shard.changeStage({ workload: 'rl', stage: 'dualwrite', force: true }),
    ])
      await assert.rejects(
        change,
        /the only writer of "rl" is eu: in this region it stays off/,
        'its copies would be writes',
      );
  });
});

test('where the plan says so, such writes are only counted, each once', async () => {
  await withRig(pinned('live', 'count'), async (rig) => {
    // The first one waits for its lane, and is looked at twice.
    const clients = [rig.client(), rig.client(), rig.client({ db: 1 })];
    await Promise.all(clients.map((client) => client.incr('rl:1')));
    await clients[0].multi().incr('rl:1').get('rl:1').exec();
    assert.equal(await clients[0].get('rl:1'), '3');
    assert.equal(secondWriterWrites(rig), 4);
    await rig.assertEqual();
  });
});

const found = ({ shard }: Rig): Record<string, CountingSnapshot['commands']> =>
  Object.fromEntries(
    shard
      .snapshot()
      .counting.map(({ workload, kind, prefix, commands }) => [`${workload} ${kind} ${prefix}`, commands]),
  );

test('keys that are counted in are found, whatever the plan calls them', async () => {
  await withRig({ workloads: [{ name: 'api', keys: ['api:*'], class: 'general' }] }, async (rig) => {
    const client = rig.client();
    await client
      .pipeline()
      .incr('api:user:1')
      .incr('api:user:2')
      .decrby('api:user:3', 2)
      .hincrby('stats', 'n', 1)
      .zincrby('board', 1, 'm')
      .incrbyfloat('sum', 1.5)
      .exec();
    await client.multi().incr('api:minute:17').expire('api:minute:17', 60).exec();
    await client.set('lock:1', 'me', 'EX', 10, 'NX');
    await client.eval(
      "local n = tonumber(redis.call('get', KEYS[1]) or 0); redis.call('set', KEYS[1], n + 1)",
      1,
      'bucket:1',
    );
    await client.zremrangebyscore('window:1', 0, 1);
    await client.rpush('queue:1', 'x');
    await client.append('log:1', 'x');
    await client.xadd('events:1', '*', 'a', '1');
    // The looks of a second are enough for the pair.
    for (let i = 0; i < 3; i++) await client.get('n:1').then((n) => client.set('n:1', Number(n) + 1));
    // A cache that is filled, a number that nobody read, and what only reads, count nothing.
    await client.get('cache:1').then(() => client.set('cache:1', '{"a":1}'));
    await client.set('flag:1', '1');
    await client.eval("return redis.call('get', KEYS[1])", 1, 'flag:1');
    const { 'default rewrite n:*': pairs, ...others } = found(rig);
    assert.ok(pairs['get, set'] >= 1 && pairs['get, set'] <= 3, 'a pair that two seconds share is not seen');
    assert.deepEqual(others, {
      'api increment api:user:*': { incr: 2, decrby: 1 },
      'api increment api:minute:*': { incr: 1 },
      'default increment stats': { hincrby: 1 },
      'default increment board': { zincrby: 1 },
      'default float sum': { incrbyfloat: 1 },
      'default lock lock:*': { 'set nx': 1 },
      'default script bucket:*': { eval: 1 },
      'default window window:*': { zremrangebyscore: 1 },
      'default list queue:*': { rpush: 1 },
      'default append log:*': { append: 1 },
      'default stream events:*': { xadd: 1 },
    });
  });
});

test('of many, a hundred in a second are looked at, and stand for the rest', async () => {
  await withRig({}, async (rig) => {
    const client = rig.client();
    let sent = 0;
    // The first second has no second before it to go by.
    await until(async () => {
      const batch = client.pipeline();
      for (let i = 0; i < 500; i++) batch.incr(`hits:${i}`);
      await batch.exec();
      sent += 500;
      const estimate = found(rig)['default increment hits:*'].incr;
      return estimate > sent / 2 && estimate < sent * 2 && sent > 20_000;
    }, 30_000);
  });
});

test('the error is one that clients can tell', async () => {
  await withRig(pinned('complete'), async (rig) =>
    assert.ok(
      (await rig
        .client()
        .incr('rl:1')
        .catch((problem: unknown) => problem)) instanceof ReplyError,
    ),
  );
});
