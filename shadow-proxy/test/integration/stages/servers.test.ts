/**
 * Source and target are two servers, each in the role that it needs: refused at the start, at each connection, or by a
 * gate.
 *
 * Needs real servers: run IDs, roles and replication of two servers whose addresses lead astray.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { test } from 'node:test';
import { countingKind } from '../../../src/command/counting.js';
import type { Gate } from '../../../src/stages/gates.js';
import { startTarget, startRedis, type LocalServer } from '../../../src/local/servers.js';
import { Relay } from '../../../src/local/relay.js';
import { differences } from '../../support/keyspace.js';
import { withRig, type Rig } from '../../support/rig.js';
import { startTestTarget } from '../../support/servers.js';
import { startTestShard, until } from '../../support/shard.js';
import { withScene } from '../rules/scene.js';

const OFF = { default: { stage: 'off' } } as const;

/** Starts servers that end with the body. */
async function withMore(
  start: readonly Promise<LocalServer>[],
  body: (...servers: LocalServer[]) => Promise<void>,
): Promise<void> {
  const servers = await Promise.all(start);
  try {
    await body(...servers);
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
}

const gate = async ({ shard }: Pick<Rig, 'shard'>): Promise<Gate> =>
  (await shard.shard.promote({ workload: 'default', dryRun: true })).gates.find(({ name }) => name === 'servers')!;
const answer = async (rig: Rig): Promise<string> => (await gate(rig)).answer;

/** What the gate says, and that it is closed: nothing is promoted. */
async function closed(rig: Pick<Rig, 'shard'>): Promise<string> {
  await assert.rejects(rig.shard.shard.promote({ workload: 'default' }), { code: 'gates-closed' });
  const { answer: is, evidence } = await gate(rig);
  assert.equal(is, 'no', evidence);
  assert.equal(rig.shard.snapshot().workloads[0].stage, 'off');
  return evidence;
}

test('two addresses of one server are refused at the start', async () => {
  await withMore([startRedis()], async (server) => {
    const shard = startTestShard({
      source: `redis://localhost:${server.port}`,
      target: `redis://127.0.0.1:${server.port}`,
    });
    await assert.rejects(shard, {
      code: 'one-server',
      message:
        /target is the same server as the source \(run ID \w{8}…\): every write would run twice; configure two different servers/,
    });
  });
});

test('a target whose address leads to the source from some moment on is not used: nothing is written twice', async () => {
  await withScene({}, async (scene) => {
    const client = scene.client();
    await client.incr('n');
    await scene.shard.settled();
    scene.toTarget.leadTo(scene.source);
    scene.toTarget.cut();
    for (let i = 0; i < 10; i++) await client.incr('n');
    await until(() => scene.shard.snapshot().target.problem !== null, 10_000);
    assert.match(scene.shard.snapshot().target.problem!, /^the target is the same server as the source/);
    for (let i = 0; i < 10; i++) await client.incr('n');
    assert.equal(await scene.client({ of: scene.source }).get('n'), '21');
    assert.equal(scene.shard.snapshot().mirror.connected, false);
    scene.toTarget.leadTo(scene.target);
    scene.toTarget.cut();
    await until(() => scene.shard.snapshot().mirror.connected, 10_000);
    await scene.assertEqual();
    assert.equal(await scene.client({ of: scene.target }).get('n'), '21');
  });
});

for (const [i, name] of ['lease', 'questions', 'mirror'].entries()) {
  test(`nothing is written twice where only the connection of the ${name} leads from the target to the source`, async () => {
    await withScene({}, async (scene) => {
      const client = scene.client();
      const problem = (): string | null => scene.shard.snapshot().target.problem;
      await client.incr('n');
      await scene.shard.settled();
      const clients = String(await scene.client({ of: scene.target }).client('LIST'));
      const ports = scene.toTarget.links.map(({ server }) => server.localPort);
      const names = ports.map(
        (port) => new RegExp(`addr=127.0.0.1:${port} .*name=shadow-proxy(-lease)?:`).exec(clients)![1],
      );
      assert.deepEqual(names, ['-lease', undefined, undefined]);
      scene.toTarget.leadTo(scene.source);
      scene.toTarget.links[i].cut();
      for (let count = 0; count < 10; count++) await client.incr('n');
      if (name !== 'lease') await until(() => problem() !== null, 10_000);
      for (let count = 0; count < 10; count++) await client.incr('n');
      if (name !== 'lease') assert.match(problem()!, /^the target is the same server as the source/);
      assert.equal(await scene.client({ of: scene.source }).get('n'), '21');
      scene.toTarget.leadTo(scene.target);
      await until(() => scene.shard.snapshot().mirror.connected && problem() === null, 10_000);
      await scene.assertEqual();
      assert.equal(await scene.client({ of: scene.target }).get('n'), '21');
    });
  });
}

for (const [i, name] of ['questions', 'mirror'].entries()) {
  test(`where only the connection of the ${name} leads to a third server, all follow, and it gets every key`, async () => {
    await withMore([startTarget()], async (third) => {
      await withScene({}, async (scene) => {
        const client = scene.client();
        for (let key = 0; key < 50; key++) await client.set(`key ${key}`, key);
        await scene.shard.settled();
        scene.toTarget.leadTo(third);
        scene.toTarget.links[i + 1].cut();
        for (let count = 0; count < 10; count++) await client.incr('n');
        await until(() => scene.toTarget.links.every(({ server }) => server.remotePort === third.port));
        await until(() => scene.shard.snapshot().workloads[0].clean);
        assert.deepEqual(await differences(scene.source, third), []);
      });
    });
  });
}

test('an address that leads to two servers by turns is refused by name', async () => {
  await withMore([startRedis(), startTarget(), startTarget()], async (source, ...servers) => {
    let count = 0;
    const balancer = createServer((client) => {
      const server = connect(servers[count++ % 2].port, '127.0.0.1');
      for (const [from, to] of [
        [client, server],
        [server, client],
      ])
        from
          .on('error', () => undefined)
          .on('close', () => to.destroy())
          .pipe(to);
    });
    balancer.listen(0, '127.0.0.1');
    await once(balancer, 'listening');
    const { port } = balancer.address() as AddressInfo;
    const shard = await startTestShard({ source, target: { url: `redis://127.0.0.1:${port}` } });
    try {
      await until(() => /leads to several servers/.test(shard.snapshot().target.problem ?? ''));
      assert.match(
        shard.snapshot().target.problem!,
        /^the address of the target, redis:\/\/127\.0\.0\.1:\d+, leads to several servers \(run IDs \w{8}… and \w{8}…\): give/,
      );
    } finally {
      await shard.stop();
      balancer.close();
    }
  });
});

test('a lane of a client that leads to another server than the others ends those', async () => {
  await withMore([startRedis()], async (third) => {
    await withScene({}, async (scene) => {
      const client = scene.client();
      await client.set('in', 'source');
      await scene.shard.settled();
      scene.toSource.leadTo(third);
      // Another database: another lane.
      await scene.client({ db: 1 }).set('key', 'of the other');
      await until(() => scene.toSource.links.every(({ server }) => server.remotePort === third.port));
      await until(() => scene.shard.snapshot().frozen !== null);
      assert.match(scene.shard.snapshot().frozen!, /^the source restarted or was replaced/);
      assert.equal(await client.get('in'), null, 'the server that the address leads to has no such key');
    });
  });
});

test('roles close the gate: a replica as the source, then as the target, and a replica of the source', async () => {
  await withMore([startRedis(), startTarget()], async (master, other) => {
    await withRig(OFF, async (rig) => {
      const [source, target] = [rig.client({ of: rig.source }), rig.client({ of: rig.target })];
      assert.equal(await answer(rig), 'yes');
      await source.replicaof('127.0.0.1', master.port);
      assert.equal(
        await closed(rig),
        `the source is a replica of 127.0.0.1:${master.port}, and accepts no writes: use its master as the source, or promote it`,
      );
      await source.call('REPLICAOF', 'NO', 'ONE');
      await target.replicaof('127.0.0.1', other.port);
      assert.match(
        await closed(rig),
        new RegExp(`^the target is a replica of 127\\.0\\.0\\.1:${other.port}, which replaces its data`),
      );
      await target.replicaof('127.0.0.1', rig.source.port);
      assert.match(await closed(rig), /^the target is a replica of the source, and would get every write twice/);
      await target.call('REPLICAOF', 'NO', 'ONE');
      assert.equal(await answer(rig), 'yes');
    });
  });
});

test('a target that is down, or takes no writes, closes the gate, and a source in cluster mode does', async () => {
  await withRig(OFF, async (rig) => {
    const target = rig.client({ of: rig.target });
    await target.config('SET', 'min-replicas-to-write', 1);
    assert.match(await closed(rig), /^the target refuses writes: NOREPLICAS/);
    await target.config('SET', 'min-replicas-to-write', 0);
    await target.config('SET', 'maxmemory', 1);
    assert.match(await closed(rig), /^the target refuses writes: OOM/);
    await target.config('SET', 'maxmemory', 0);
    assert.equal(await target.dbsize(), 0, 'the question leaves nothing behind');
    const commands = [...(await target.info('commandstats')).matchAll(/^cmdstat_([^:]+):/gm)].map(([, name]) => name);
    assert.ok(
      commands.includes('ping') && commands.every((name) => countingKind(name) === null),
      `guard takes it for no counter: ${commands.join(' ')}`,
    );
    await rig.target.kill('SIGKILL');
    assert.match(await closed(rig), /^the target cannot be used: .*ECONNREFUSED/);
  });
  await withRig({ ...OFF, servers: { source: { config: { 'cluster-enabled': 'yes' } } } }, async (rig) => {
    assert.match(await closed(rig), /^the source is in cluster mode, .*write `cluster` instead of `shards`/);
  });
});

test('another proxy is no server, and a server that another shard has closes the gate', async () => {
  await withMore([startRedis(), startTestTarget()], async (spare, third) => {
    await withRig({ ...OFF, name: 'a' }, async (rig) => {
      const proxy = `redis://127.0.0.1:${rig.shard.port}`;
      await assert.rejects(
        startTestShard({ ...OFF, name: 'b', source: proxy, target: third }),
        /this is a shadow-proxy, not a server: set source and target/,
      );
      for (const [source, target, text] of [
        [spare.url, proxy, /^the target cannot be used: ERR this is a shadow-proxy, not a server/],
        [rig.source.url.replace('127.0.0.1', 'localhost'), third.url, /^a proxy of shard a uses the source, too/],
        [
          spare.url,
          rig.target.url.replace('127.0.0.1', 'localhost'),
          /^a proxy of shard a uses the target, too, but the plan has another address/,
        ],
      ] as const) {
        const shard = await startTestShard({ ...OFF, name: 'b', source, target });
        try {
          assert.match(await closed({ shard }), text);
        } finally {
          await shard.stop();
        }
      }
      // And the proxy at itself, by another name.
      const relay = await Relay.start({ port: rig.shard.port });
      const loop = await startTestShard({ ...OFF, name: 'c', source: spare, target: relay });
      relay.leadTo({ port: loop.port });
      try {
        assert.match(await closed({ shard: loop }), /this is a shadow-proxy/);
      } finally {
        await loop.stop();
        await relay.close();
      }
    });
  });
});
