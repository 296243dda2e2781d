/**
 * A cluster in TLS: of its nodes among themselves, of both sides, and of the clients.
 *
 * Needs real sockets: TLS between clients, proxies and nodes, and names in certificates.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { text } from '../../../src/resp/decode.js';
import { ClusterRig } from '../../support/cluster-rig.js';
import { makeCertificates } from '../../support/servers.js';
import { needs } from '../../support/needs.js';

const HOST = 'localhost';

test('clients find a cluster in TLS at the proxies, by a DNS name and their TLS ports', async (t) => {
  if (!(await needs(t, 'openssl', 'tls-source', 'tls-target'))) return;
  const rig = await ClusterRig.start({
    announced: HOST,
    tls: makeCertificates(),
    plan: { default: { stage: 'shadow' } },
  });
  t.after(() => rig.stop());
  const client = rig.client();
  const write = (value: string): Promise<unknown> =>
    Promise.all(Array.from({ length: 200 }, (_, i) => client.set(`key:${i}`, `${value} ${i}`)));
  await write('one');
  await rig.settled();
  assert.deepEqual(await rig.differences(), []);

  const ports = rig.plan.shards.map(({ listen }) => listen.port);
  const { items: shards } = await rig.ask(['CLUSTER', 'SHARDS']);
  const fields = shards!.map(({ items }) => items![3].items![0].items!.map(text));
  assert.deepEqual(
    fields.map((node) => node[node.indexOf('tls-port') + 1]),
    ports.map(String),
  );
  for (const node of fields) {
    assert.ok(!node.includes('port'), 'nobody listens without TLS');
    assert.equal(node[node.indexOf('endpoint') + 1], HOST);
  }

  await rig.changeStage('live');
  await write('two');
  assert.equal(await client.get('key:199'), 'two 199');
  await rig.settled();
  assert.deepEqual(await rig.differences(), []);
  assert.deepEqual(rig.compared().mismatches, {});
});
