/**
 * Clients of a Redis Cluster find it at the proxies: its slots, its errors, and no server's address.
 *
 * Needs real servers: MOVED, CROSSSLOT and CLUSTER's replies, as cluster clients of ioredis read them.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isError, text, type Reply } from '../../../src/resp/decode.js';
import { hashSlot } from '../../../src/route/slot.js';
import { ClusterRig } from '../../support/cluster-rig.js';
import { Wire } from '../../support/wire.js';
import { targetHas } from '../../support/servers.js';

let rig: ClusterRig;
before(async () => {
  rig = await ClusterRig.start({ plan: { default: { stage: 'shadow' } } });
});
after(() => rig?.stop());

const slotOf = (key: string): number => hashSlot(Buffer.from(key), 0, key.length);
const shown = (reply: Reply): string => (isError(reply) ? text(reply) : JSON.stringify(plain(reply)));
const plain = (reply: Reply): unknown => (reply.items ? reply.items.map(plain) : text(reply));

test('a cluster client writes and reads through the proxies, and both clusters hold the same', async () => {
  const client = rig.client();
  await Promise.all(Array.from({ length: 300 }, (_, i) => client.set(`key:${i}`, `value ${i}`)));
  assert.equal(await client.get('key:42'), 'value 42');
  await rig.settled();
  assert.deepEqual(await rig.differences(), []);
  const writes = rig.shards.map((shard) => shard.snapshot().workloads.reduce((sum, { writes }) => sum + writes, 0));
  assert.ok(
    writes.every((count) => count > 50),
    `each shard has its part: ${writes.join(', ')}`,
  );
});

test('CLUSTER names the proxies only', async () => {
  const proxies = rig.plan.shards.map(({ listen }) => listen.port);
  const servers = [...rig.source.nodes, ...rig.targetCluster!.nodes].map(({ port }) => String(port));
  for (const command of ['SLOTS', 'SHARDS', 'NODES']) {
    const reply = shown(await rig.ask(['CLUSTER', command]));
    for (const port of proxies) assert.ok(reply.includes(String(port)), `${command} names ${port}: ${reply}`);
    for (const port of servers) assert.ok(!reply.includes(port), `${command} does not name ${port}`);
  }
  const { unsupported } = rig.shards[0].snapshot();
  assert.deepEqual(Object.keys(unsupported), (await targetHas('redis', '7.0')) ? [] : ['cluster shards']);
  const info = text(await rig.ask(['CLUSTER', 'INFO']));
  assert.match(info, /cluster_state:ok\r\ncluster_slots_assigned:16384/);
  const ids = await Promise.all([0, 1, 2].map(async (shard) => text(await rig.ask(['CLUSTER', 'MYID'], shard))));
  assert.equal(new Set(ids).size, 3);
  for (const id of ids) assert.match(id, /^[0-9a-f]{40}$/);
});

test('a key of another shard is answered with MOVED to its proxy, keys of several slots with CROSSSLOT', async () => {
  const [, second] = rig.plan.shards;
  const away = Array.from({ length: 1000 }, (_, i) => `k${i}`).find((key) => {
    const [[first, last]] = second.slots!;
    return slotOf(key) >= first && slotOf(key) <= last;
  })!;
  const moved = `MOVED ${slotOf(away)} 127.0.0.1:${second.listen.port}`;
  for (const command of [
    ['GET', away],
    ['SET', away, '1'],
    ['WATCH', away],
    ['SSUBSCRIBE', away],
    ['EVAL', 'return 1', '1', away],
  ])
    assert.equal(shown(await rig.ask(command)), moved, command.join(' '));
  const crossing = "CROSSSLOT Keys in request don't hash to the same slot";
  for (const command of [
    ['MGET', 'a', 'b'],
    ['DEL', 'a', 'b', 'c'],
    ['RENAME', 'a', 'b'],
    ['MSET', 'a', '1', 'b', '2'],
  ])
    assert.equal(shown(await rig.ask(command)), crossing, command.join(' '));
  const mine = Array.from({ length: 1000 }, (_, i) => `k${i}`).filter(
    (key) => slotOf(key) <= rig.plan.shards[0].slots![0][1],
  );
  assert.equal(shown(await rig.ask(['SET', mine[0], 'x'])), '"OK"');
});

test('a subscriber, too, is sent to the proxy of a sharded channel', async () => {
  const wire = await Wire.open({ port: rig.plan.shards[0].listen.port });
  const away = Array.from({ length: 1000 }, (_, i) => `c${i}`).find((name) => slotOf(name) > 11_000)!;
  await wire.ask('SUBSCRIBE', 'news');
  assert.match(
    await wire.ask('SSUBSCRIBE', away),
    new RegExp(`^-MOVED ${slotOf(away)} 127\\.0\\.0\\.1:${rig.plan.shards[2].listen.port}`),
  );
  wire.destroy();
});

test('what a cluster has not is refused in its words, and CLUSTER SETSLOT not passed on', async () => {
  const said = async (...command: string[]): Promise<string> => shown(await rig.ask(command));
  assert.equal(await said('SELECT', '1'), 'ERR SELECT is not allowed in cluster mode');
  assert.equal(await said('SELECT', '0'), '"OK"');
  assert.equal(await said('SWAPDB', '0', '1'), 'ERR SWAPDB is not allowed in cluster mode');
  assert.equal(await said('READONLY'), '"OK"');
  assert.equal(await said('READWRITE'), '"OK"');
  assert.equal(await said('ASKING'), '"OK"');
  assert.equal(await said('CLUSTER', 'KEYSLOT', 'foo'), '"12182"');
  assert.match(await said('CLUSTER', 'SETSLOT', '1', 'STABLE'), /^ERR shadow-proxy: CLUSTER SETSLOT is not supported/);
  assert.equal(await said('CLUSTER', 'COUNTKEYSINSLOT', '99999'), 'ERR Invalid slot');
});

test('a transaction over several slots ends with CROSSSLOT, one in a slot runs', async () => {
  const client = rig.client();
  assert.deepEqual(await client.multi().set('{t}a', '1').incr('{t}a').exec(), [
    [null, 'OK'],
    [null, 2],
  ]);
  const node = client.nodes('master').find(({ options }) => options.port === rig.plan.shards[0].listen.port)!;
  const [one, other] = Array.from({ length: 5000 }, (_, i) => `x${i}`).filter(
    (key) => slotOf(key) <= rig.plan.shards[0].slots![0][1],
  );
  await assert.rejects(node.multi().set(one, '1').set(other, '2').exec(), /CROSSSLOT/);
  assert.equal(await node.get(one), null);
});

test('DBSIZE, KEYS and CLUSTER COUNTKEYSINSLOT are those of the shard', async () => {
  const client = rig.client();
  await client.set('{nobody}a', '1');
  await client.set('{nobody}b', '1');
  const shard = rig.plan.shards.findIndex(({ slots }) =>
    slots!.some(([a, b]) => a <= slotOf('nobody') && slotOf('nobody') <= b),
  );
  assert.equal(shown(await rig.ask(['CLUSTER', 'COUNTKEYSINSLOT', slotOf('nobody')], shard)), '"2"');
  assert.deepEqual(
    [...(plain(await rig.ask(['CLUSTER', 'GETKEYSINSLOT', slotOf('nobody'), 9], shard)) as string[])].sort(),
    ['{nobody}a', '{nobody}b'],
  );
  const sizes = await Promise.all([0, 1, 2].map(async (at) => Number(text(await rig.ask(['DBSIZE'], at)))));
  const keys = await Promise.all([0, 1, 2].map(async (at) => (await rig.ask(['KEYS', '*'], at)).items!.length));
  assert.deepEqual(sizes, keys);
});
