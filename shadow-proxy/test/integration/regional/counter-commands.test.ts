/**
 * Plain counters that the proxy rewrites: to clients they are what they were, and the target has parts of them.
 *
 * Needs real servers: replies of plain counters in both protocols, as both servers give them.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createClient } from 'redis';
import { startTarget, startRedis } from '../../../src/local/servers.js';
import { isPart } from '../../../src/route/counter-keys.js';
import { clientsOf } from '../../support/clients.js';
import { ask, ended, job } from '../../support/jobs.js';
import { withRig, type RigOptions } from '../../support/rig.js';
import { startTestShard, until } from '../../support/shard.js';

const rig = (stage: 'off' | 'complete'): RigOptions => ({
  workloads: [
    { name: 'rl', keys: ['rl:*'], class: 'counter', counterLayout: 'per-region', stage },
    { name: 'cache', keys: ['cache:*'], stage: 'complete' },
  ],
  default: { stage: 'shadow' },
  topology: { mode: 'active-active', regions: ['eu', 'us'] },
  shard: { region: 'eu' },
});

const RESP2 = [
  ['INCR rl:a', ':1'],
  ['INCRBY rl:a 41', ':42'],
  ['DECR rl:a', ':41'],
  ['DECRBY rl:a 2', ':39'],
  ['GET rl:a', '$2\r\n39'],
  ['MGET rl:a rl:none rl:a', '*3\r\n$2\r\n39\r\n$-1\r\n$2\r\n39'],
  ['EXISTS rl:a rl:a rl:none', ':2'],
  ['TTL rl:a', ':-1'],
  ['TTL rl:none', ':-2'],
  ['EXPIRE rl:a 100', ':1'],
  ['TTL rl:a', ':100'],
  ['EXPIRE rl:none 100', ':0'],
  ['PERSIST rl:a', ':1'],
  ['PERSIST rl:a', ':0'],
  ['PTTL rl:a', ':-1'],
  ['PEXPIREAT rl:a 99999999999999', ':1'],
  ['EXPIREAT rl:a 1', ':1'],
  ['GET rl:a', '$-1'],
  ['INCRBY rl:zero 0', ':0'],
  ['GET rl:zero', '$1\r\n0'],
  ['INCRBY rl:a -5', ':-5'],
  ['DEL rl:a rl:zero rl:none rl:a', ':2'],
  ['UNLINK rl:a', ':0'],
  ['TTL rl:a', ':-2'],
  ['INCR rl:a', ':1'],
  ['PEXPIRE rl:a 0', ':1'],
  ['EXISTS rl:a', ':0'],
] as const;

const ERRORS = [
  ['INCRBY rl:e x', /^-ERR value is not an integer or out of range$/],
  ['INCRBY rl:e 1.5', /^-ERR value is not an integer/],
  ['DECRBY rl:e 9223372036854775808', /^-ERR value is not an integer/],
  ['DECRBY rl:e -9223372036854775808', /^-ERR decrement would overflow$/],
  ['INCRBY rl:e 9007199254740992', /^-ERR increment or decrement would overflow: .*9007199254740991/],
  ['INCR', /^-ERR wrong number of arguments for 'incr' command/i],
  ['INCRBY rl:e', /^-ERR wrong number of arguments/],
  ['EXPIRE rl:e 9223372036854775807', /^-ERR invalid expire time in 'expire' command$/],
  [
    'SET rl:e 1',
    /^-ERR shadow-proxy: SET is refused on "rl", whose counterLayout is per-region: INCR, .* are allowed$/,
  ],
  ['HINCRBY rl:e f 1', /^-ERR shadow-proxy: HINCRBY is refused on "rl"/],
  ['EVAL return/**/1 1 rl:e', /^-ERR shadow-proxy: EVAL is refused on "rl"/],
  [
    "EVAL return/**/redis.call('incr',ARGV[1]) 0 rl:e",
    /^-ERR shadow-proxy: EVAL does not name its keys, and may touch "rl"/,
  ],
  ['RENAME cache:1 rl:e', /^-ERR shadow-proxy: RENAME is refused on "rl"/],
  ['FLUSHALL', /^-ERR shadow-proxy: FLUSHALL/],
  ['BLPOP rl:e 1', /^-ERR shadow-proxy: BLPOP is refused/],
  ['WATCH rl:e', /^-ERR shadow-proxy: WATCH is refused/],
  ['MGET rl:e cache:1', /^-ERR shadow-proxy: MGET spans "rl", whose counterLayout is per-region, and "cache"/],
] as const;

const words = (command: string): string[] => command.split(' ').map((word) => word.replace('/**/', ' '));

test('to clients they are plain counters, and the target has parts of them', async (t) => {
  await withRig(rig('complete'), async (it) => {
    const keys = async (): Promise<string[]> => (await it.client({ of: it.target }).keys('*')).sort();

    await t.test('replies are Redis’s own, in the client’s order, in a pipeline', async () => {
      const wire = await it.wire();
      assert.deepEqual(await wire.pipeline([...RESP2.map(([command]) => words(command)), ['PING']]), [
        ...RESP2.map(([, reply]) => reply),
        '+PONG',
      ]);
      assert.ok(
        (await keys()).every((key) => isPart(Buffer.from(key))),
        'no plain key is on the target',
      );
    });

    await t.test('in RESP3 nothing is the null of RESP3', async () => {
      const wire = await it.wire();
      await wire.ask('HELLO', '3');
      assert.deepEqual(
        await wire.pipeline([
          ['GET', 'rl:none'],
          ['MGET', 'rl:none'],
          ['INCR', 'rl:r3'],
          ['GET', 'rl:r3'],
        ]),
        ['_', '*1\r\n_', ':1', '$1\r\n1'],
      );
    });

    await t.test('errors are Redis’s own, and what cannot be rewritten is refused by name', async () => {
      const wire = await it.wire();
      for (const [command, reply] of ERRORS) assert.match(await wire.ask(...words(command)), reply, command);
      assert.equal(await wire.ask('EXISTS', 'rl:e'), ':0');
      assert.equal(await wire.ask('SELECT', '1'), '+OK');
      assert.match(
        await wire.ask('INCR', 'rl:e'),
        /^-ERR shadow-proxy: INCR is refused on "rl", whose counterLayout is per-region, in database 1/,
      );
      assert.equal(
        await wire.ask('EVAL', "return redis.call('get', KEYS[1])", '1', 'cache:1'),
        '$-1',
        'others are not concerned',
      );
    });

    await t.test(
      'many clients of both libraries count each increment once, and each gets a number of its own',
      async () => {
        const node = createClient({ socket: { host: '127.0.0.1', port: it.shard.port } });
        await node.connect();
        const clients = [it.client(), it.client(), it.client()];
        const replies = await Promise.all(
          Array.from({ length: 300 }, (_, i) => (i % 4 === 3 ? node.incr('rl:hot') : clients[i % 4].incr('rl:hot'))),
        );
        assert.deepEqual(
          [...replies].sort((a, b) => a - b),
          Array.from({ length: 300 }, (_, i) => i + 1),
        );
        assert.equal(await node.get('rl:hot'), '300');
        await node.close();
      },
    );

    await t.test('a transaction of such counters is one, and may contain no other commands', async () => {
      const client = it.client();
      const both = await Promise.all(
        Array.from({ length: 20 }, () =>
          client.multi().incr('rl:window').expire('rl:window', 60).ttl('rl:window').get('rl:window').exec(),
        ),
      );
      assert.deepEqual(
        both.map((replies) => replies!.map(([, reply]) => reply)),
        Array.from({ length: 20 }, (_, i) => [i + 1, 1, 60, String(i + 1)]),
      );
      await assert.rejects(
        client.multi().incr('rl:window').set('cache:1', 'x').exec(),
        /EXECABORT shadow-proxy: a transaction with counters of "rl"/,
      );
      await assert.rejects(client.multi().incr('rl:window').call('SET', 'rl:window', '1').exec(), /EXECABORT/);
      await assert.rejects(client.multi().call('INCRBY', 'rl:window').exec(), /EXECABORT/);
      assert.equal(await client.get('rl:window'), '20');
      assert.deepEqual(
        await client
          .multi()
          .incrby('rl:window', Number.MAX_SAFE_INTEGER)
          .incr('rl:window')
          .exec()
          .then((replies) => replies!.map(([problem, reply]) => problem?.message.slice(0, 42) ?? reply)),
        ['ERR increment or decrement would overflow:', 21],
      );
    });

    await t.test('nobody may by the proxy what the server denies', async () => {
      const target = it.client({ of: it.target });
      await target.call('ACL', 'SETUSER', 'reader', 'on', '>secret', '~rl:*', '+@all', '-incr');
      await target.call('ACL', 'SETUSER', 'other', 'on', '>secret', '~other:*', '+@all');
      for (const [username, command, denied] of [
        ['reader', ['INCR', 'rl:acl'], true],
        ['reader', ['GET', 'rl:acl'], false],
        ['other', ['GET', 'rl:acl'], true],
        ['other', ['DEL', 'rl:acl'], true],
      ] as const) {
        const wire = await it.wire();
        await it.client({ of: it.source }).call('ACL', 'SETUSER', username, 'on', '>secret', '~*', '+@all');
        assert.equal(await wire.ask('AUTH', username, 'secret'), '+OK');
        assert.match(await wire.ask(...command), denied ? /^-NOPERM/ : /^\$-1/, `${username} ${command.join(' ')}`);
      }
    });

    await t.test('what the server has no memory for is refused, and not counted', async () => {
      const client = it.client();
      await client.incr('rl:full');
      await it.client({ of: it.target }).config('SET', 'maxmemory', '1');
      await assert
        .rejects(client.incr('rl:full'), /OOM/)
        .finally(() => it.client({ of: it.target }).config('SET', 'maxmemory', '0'));
      assert.equal(await client.incr('rl:full'), 2);
    });

    await t.test('they are counted in the workload, and are no counters at risk', () => {
      const { workloads, counting } = it.shard.snapshot();
      const { writes, reads, byCommand } = workloads.find(({ name }) => name === 'rl')!;
      assert.ok(writes > 60 && reads > 2 && byCommand!.incr > 60, JSON.stringify(byCommand));
      assert.deepEqual(
        counting.filter(({ workload }) => workload === 'rl'),
        [],
      );
    });

    await t.test('verify --repair leaves the keys of per-region counters alone', async () => {
      await it.client().set('other', 'x');
      await it.client().incrby('rl:walked', 3);
      const before = await keys();
      ask(it, { kind: 'verify', repair: true });
      await ended(it);
      assert.deepEqual(
        [job(it).state, job(it).differences, job(it).listed],
        ['done', {}, { 'no-workload': 1 }],
        JSON.stringify(job(it)),
      );
      assert.ok((await keys()).length >= before.length);
      assert.equal(await it.client().get('rl:walked'), '3');
    });

    await t.test('a write to the target that bypasses the proxy is noticed', async () => {
      await it.client({ of: it.target }).incr('rl:beside');
      await until(async () => {
        await it.client().incr('rl:beside');
        return it.shard.snapshot().workloads.find(({ name }) => name === 'rl')!.secondWriterWrites > 0;
      });
    });
  });
});

test('a proxy that is started again continues where the last one ended', async () => {
  const [source, target] = [await startRedis(), await startTarget()];
  const stateDir = await mkdtemp(join(tmpdir(), 'regional-'));
  const options = { ...rig('complete'), source, target, stateDir };
  try {
    for (let start = 0; start < 3; start++) {
      const shard = await startTestShard(options);
      const { client, closeAll } = clientsOf(() => shard.port);
      assert.equal(await client().incr('rl:visits'), 2 * start + 1);
      assert.equal(await client().incr('rl:visits'), 2 * start + 2);
      if (start === 0) assert.equal(await client().expire('rl:visits', 500), 1);
      assert.ok((await client().ttl('rl:visits')) > 400);
      closeAll();
      await (start === 0 ? shard.stop() : shard.shard.drain(5000).then(() => shard.stop()));
    }
    await assert.rejects(
      startTestShard({
        ...options,
        workloads: [
          { name: 'rl', keys: ['rl:*'], class: 'counter', stage: 'complete', counterLayout: 'library' },
          rig('complete').workloads![1],
        ],
      }),
      /counterLayout of rl changed, and it is complete: the target stores its counters per region/,
    );
  } finally {
    await Promise.all([source.stop(), target.stop()]);
    await rm(stateDir, { recursive: true, force: true });
  }
});

test('off to complete: the source’s counters are carried over while commands wait, or nothing is changed', async (t) => {
  await withRig(rig('off'), async (it) => {
    const { shard } = it.shard;
    const client = it.client();
    const source = it.client({ of: it.source });
    for (let i = 0; i < 2000; i++) void client.incrby(`rl:user:${i}`, i - 5);
    await client.expire('rl:user:7', 300);
    await client.set('rl:text', 'x');
    await client
      .select(1)
      .then(() => client.incr('rl:elsewhere'))
      .then(() => client.select(0));
    assert.equal(await source.get('rl:user:7'), '2', 'it is a plain key of the source');
    await assert.rejects(
      shard.changeStage({ workload: 'rl', stage: 'dualwrite' }),
      /the stages off and complete are allowed/,
    );
    await assert.rejects(
      shard.changeStage({ workload: 'rl', stage: 'complete' }),
      /"rl" stays off: 2 of its keys on the source are not plain counters .*rl:text.*delete them/,
    );
    assert.equal(
      await it
        .client({ of: it.target })
        .keys('*{rl:*')
        .then((keys) => keys.length),
      0,
    );
    await client.del('rl:text');
    await it.client({ db: 1 }).del('rl:elsewhere');

    let [counting, sent] = [true, 0];
    const counter = (async () => {
      while (counting) if ((await it.client().incr('rl:user:5')) > 0) sent++;
    })();
    const { heldMs, to } = await shard.changeStage({ workload: 'rl', stage: 'complete' });
    counting = false;
    await counter;
    assert.deepEqual(to, { stage: 'complete', percent: 100 });
    t.diagnostic(`2000 counters were carried over; commands waited for ${heldMs.toFixed(0)} ms`);
    assert.equal(await client.get('rl:user:5'), String(sent));
    assert.deepEqual(await client.mget('rl:user:0', 'rl:user:7', 'rl:user:1999'), ['-5', '2', '1994']);
    assert.ok((await client.ttl('rl:user:7')) > 200);
    await assert.rejects(shard.changeStage({ workload: 'rl', stage: 'off' }), /cannot be rolled back/);
  });
});

test('when the target is lost, waiting clients are closed; after it restarts empty, the proxy restores what was counted', async () => {
  await withRig(rig('complete'), async (it) => {
    const wire = await it.wire();
    for (let i = 1; i <= 5; i++) assert.equal(await wire.ask('INCR', 'rl:kept'), `:${i}`);
    await it.target.kill('SIGKILL');
    wire.send('INCR', 'rl:kept');
    await wire.closed;
    await it.target.start();
    let [tried, reply] = [1, ''];
    await until(async () => {
      const again = await it.wire();
      tried++;
      reply = await again.ask('INCR', 'rl:kept').catch(() => '');
      return reply.startsWith(':');
    }, 30_000);
    const counted = Number(reply.slice(1));
    assert.ok(counted >= 6 && counted <= 5 + tried, `${counted} after ${tried} more`);
    assert.equal(await it.client().get('rl:kept'), String(counted));
  });
});
