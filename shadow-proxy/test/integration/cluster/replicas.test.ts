/**
 * Clients that read from replicas go on to, while a workload is in `off` and the plan allows it.
 *
 * Needs real servers: READONLY and replicas of a Redis Cluster, as ioredis and node-redis use them.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Cluster } from 'ioredis';
import { createCluster } from 'redis';
import { askNode } from '../../../src/local/start-cluster.js';
import type { LocalServer } from '../../../src/local/servers.js';
import { text } from '../../../src/resp/decode.js';
import { hashSlot } from '../../../src/route/slot.js';
import { ClusterRig } from '../../support/cluster-rig.js';
import { until } from '../../support/shard.js';
import { Wire } from '../../support/wire.js';

let rig: ClusterRig;
before(async () => {
  rig = await ClusterRig.start({
    source: { replicas: 1 },
    target: 'standalone',
    replicas: true,
    plan: { default: { stage: 'off' } },
  });
});
after(() => rig?.stop());

const slotOf = (key: string): number => hashSlot(Buffer.from(key), 0, key.length);
/** Keys of the first shard. */
const OWN = Array.from({ length: 400 }, (_, i) => `k${i}`).filter((key) => slotOf(key) <= 5460);
const replicas = (): readonly LocalServer[] => rig.source.nodes.slice(3);
const readsThere = (): number => rig.shards.reduce((sum, shard) => sum + shard.snapshot().replicaReads, 0);

/** How often GET ran on each of the nodes. */
const getsOn = (nodes: readonly LocalServer[]): Promise<number[]> =>
  Promise.all(
    nodes.map(async (node) => {
      const stats = text(await askNode(node, 'INFO', 'commandstats'));
      return Number(/cmdstat_get:calls=(\d+)/.exec(stats)?.[1] ?? 0);
    }),
  );

/** Reads go to the replicas of all shards. */
async function served(read: (key: string) => Promise<unknown>): Promise<void> {
  const keys = Array.from({ length: 30 }, (_, i) => `served:${i}`);
  await until(
    async () => {
      const before = rig.shards.map((shard) => shard.snapshot().replicaReads);
      await Promise.all(keys.map(read));
      return rig.shards.every((shard, i) => shard.snapshot().replicaReads > before[i]);
    },
    20_000,
    () => 'a replica serves no reads',
  );
}

/** Reads of the key go to a replica. */
const servedAt = (wire: Wire, key: string): Promise<void> =>
  until(
    async () => {
      const before = readsThere();
      await wire.ask('GET', key);
      return readsThere() > before;
    },
    20_000,
    () => 'the replica serves no reads',
  );

/** Every write of the source has reached its replicas. */
async function replicated(): Promise<void> {
  for (const master of await rig.mastersOf('source')) await askNode(master, 'WAIT', 1, 5_000);
}

async function readsOnReplicas(write: (key: string) => Promise<unknown>, read: (key: string) => Promise<unknown>) {
  const keys = Array.from({ length: 200 }, (_, i) => `read:${i}`);
  await Promise.all(keys.map(write));
  await replicated();
  await served(read);
  const [masters, before, counted] = [await rig.mastersOf('source'), await getsOn(replicas()), readsThere()];
  const onMasters = await getsOn(masters);
  assert.deepEqual(await Promise.all(keys.map(read)), keys);
  assert.deepEqual(await getsOn(masters), onMasters, 'no master has read');
  const read200 = (await getsOn(replicas())).reduce((sum, gets, i) => sum + gets - before[i], 0);
  assert.deepEqual([read200, readsThere() - counted], [keys.length, keys.length]);
}

test('ioredis with scaleReads: slave reads from the replicas', async () => {
  const client = new Cluster([{ host: '127.0.0.1', port: rig.port }], { scaleReads: 'slave' });
  await readsOnReplicas(
    (key) => client.set(key, key),
    (key) => client.get(key),
  );
  client.disconnect();
});

test('node-redis with useReplicas reads from replicas and masters, and loses nothing', async () => {
  const client = createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${rig.port}` }], useReplicas: true });
  await client.connect();
  const counted = readsThere();
  for (let i = 0; i < 100; i++) await client.set(`nr:${i}`, String(i));
  await replicated();
  for (let i = 0; i < 100; i++) assert.equal(await client.get(`nr:${i}`), String(i));
  assert.ok(readsThere() > counted, 'some of the reads went to replicas');
  await client.close();
});

test('at the address of a replica, only reads after READONLY are answered, as by a replica', async () => {
  const [key] = OWN;
  const wire = await Wire.open({ port: rig.replicaPort });
  const moved = `-MOVED ${slotOf(key)} 127.0.0.1:${rig.port}`;
  const starts = async (reply: string, ...command: string[]): Promise<void> =>
    assert.ok((await wire.ask(...command)).startsWith(reply), `${command.join(' ')} is answered with ${reply}`);
  await starts('+OK', 'READWRITE');
  await starts(moved, 'GET', key);
  await starts('+OK', 'READONLY');
  await starts('$-1', 'GET', `{${key}}none`);
  await starts(moved, 'SET', key, '1');
  await starts(moved, 'EVAL', 'return 1', '1', key);
  await starts("-READONLY You can't write", 'FLUSHALL');
  await starts('+OK', 'MULTI');
  await starts('+QUEUED', 'GET', `{${key}}none`);
  await starts('*1', 'EXEC');
  await starts('+OK', 'READWRITE');
  await starts(moved, 'GET', key);
  await starts('+OK', 'READONLY');
  await starts('+RESET', 'RESET');
  await starts(moved, 'GET', key);
  wire.destroy();
});

test('CLUSTER shows the proxies as masters with a replica each', async () => {
  const [atMaster, atReplica] = await Promise.all([rig.port, rig.replicaPort].map((port) => Wire.open({ port })));
  const id = async (wire: Wire): Promise<string> => (await wire.ask('CLUSTER', 'MYID')).split('\r\n')[1];
  const [master, replica] = [await id(atMaster), await id(atReplica)];
  assert.notEqual(master, replica);
  const nodes = (await atReplica.ask('CLUSTER', 'NODES')).split('\n');
  assert.ok(
    nodes.some((line) => line.startsWith(`${replica} 127.0.0.1:${rig.replicaPort}@`)),
    nodes.join('\n'),
  );
  assert.equal(nodes.filter((line) => line.includes(`myself,slave ${master} `)).length, 1);
  assert.equal(nodes.filter((line) => line.includes(' slave ') || line.includes(',slave ')).length, 3);
  const listed = await atMaster.ask('CLUSTER', 'REPLICAS', master);
  assert.match(listed, new RegExp(`^\\*1\r\n[^]*${replica} 127\\.0\\.0\\.1:${rig.replicaPort}@`));
  assert.match(await atMaster.ask('CLUSTER', 'REPLICAS', replica), /^-ERR The specified node is not a master/);
  assert.match(await atMaster.ask('CLUSTER', 'REPLICAS', 'x'), /^-ERR Unknown node x/);
  assert.match(await atMaster.ask('CLUSTER', 'SHARDS'), /replica/);
  const info = await atMaster.ask('CLUSTER', 'INFO');
  assert.match(info, /cluster_known_nodes:6\r\ncluster_size:3/);
  assert.match(info, /^\$\d+\r\ncluster_state:ok\r\n/, 'a node has no field before that one');
  for (const wire of [atMaster, atReplica]) wire.destroy();
});

test('a replica that gets no writes any more serves no reads: the authority does', async () => {
  const [key] = OWN;
  const [replica] = replicas();
  const wire = await Wire.open({ port: rig.replicaPort });
  await wire.ask('READONLY');
  const writer = await Wire.open({ port: rig.port });
  await writer.ask('SET', key, 'old');
  await replicated();
  await servedAt(wire, key);
  assert.match(await wire.ask('GET', key), /old/);
  // Its master has no password: the replica cannot connect again.
  await askNode(replica, 'CONFIG', 'SET', 'masterauth', 'wrong');
  await askNode(rig.source.masters[0], 'CLIENT', 'KILL', 'TYPE', 'replica');
  await until(
    async () => text((await askNode(replica, 'ROLE')).items![3]) !== 'connected',
    5_000,
    () => 'the replica is still connected to its master',
  );
  await writer.ask('SET', key, 'new');
  await until(
    async () => (await wire.ask('GET', key)).includes('new'),
    5_000,
    () => 'reads go on at the replica that is behind',
  );
  await askNode(replica, 'CONFIG', 'SET', 'masterauth', '');
  await servedAt(wire, key);
  for (const each of [wire, writer]) each.destroy();
});

test('from dualwrite on the authority answers, and without a replica it does, too', async () => {
  const [key] = OWN;
  const ask = async (): Promise<string> => {
    const wire = await Wire.open({ port: rig.replicaPort });
    await wire.ask('READONLY');
    const reply = await wire.ask('GET', key);
    wire.destroy();
    return reply;
  };
  await rig.changeStage('dualwrite');
  const counted = readsThere();
  assert.match(await ask(), /new/);
  assert.equal(readsThere(), counted, 'in dualwrite no read goes to a replica');
  await rig.changeStage('off');
  await ask();
  assert.equal(readsThere(), counted + 1);
  await replicas()[0].stop();
  for (let i = 0; i < 3; i++) assert.match(await ask(), /new/);
  assert.equal(readsThere(), counted + 1, 'there is no replica');
});
