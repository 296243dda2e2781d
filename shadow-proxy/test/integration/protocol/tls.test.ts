/**
 * TLS on all three sides, with an authority of our own.
 *
 * Needs real sockets: TLS: certificates of clients and servers, names in them, authorities that differ.
 */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { makeCertificates, withServers, type Certificates } from '../../support/servers.js';
import { missing } from '../../support/needs.js';
import { startTestShard, until, type TestShard } from '../../support/shard.js';
import { Wire } from '../../support/wire.js';

const skip = await missing('openssl', 'tls-source', 'tls-target');
const NONE: Certificates = { ca: '', cert: '', key: '' };
const [ours, theirs] = skip ? [NONE, NONE] : [makeCertificates(), makeCertificates()];

const asClient = ({ ca }: Certificates, own?: Certificates): ConnectionOptions => ({
  ca: readFileSync(ca),
  ...(own && { cert: readFileSync(own.cert), key: readFileSync(own.key) }),
});

/** Whether a client gets an answer. */
async function isServed(port: number, tls?: ConnectionOptions): Promise<boolean> {
  try {
    const wire = await Wire.open({ port, tls });
    const answer = await wire.ask('PING').finally(() => wire.destroy());
    return answer === '+PONG';
  } catch {
    return false;
  }
}

async function withShard(start: Promise<TestShard>, body: (shard: TestShard) => Promise<void>): Promise<void> {
  const shard = await start;
  try {
    await body(shard);
  } finally {
    await shard.stop();
  }
}

test('TLS on the listener and on both servers, with certificates of clients too', { skip }, async () => {
  const server = { tls: ours, config: { 'tls-auth-clients': 'yes' } };
  await withServers(
    async ({ source, target }) => {
      await withShard(
        startTestShard({
          source,
          target,
          sourceTls: ours,
          targetTls: ours,
          listenTls: { ...ours, requireClientCert: true },
        }),
        async (shard) => {
          const tls = asClient(ours, ours);
          const client = new Redis({ host: '127.0.0.1', port: shard.port, tls });
          await client.set('k', 'v');
          await Promise.all(Array.from({ length: 500 }, (_, i) => client.set(`k:${i}`, 'x'.repeat(i * 20))));
          assert.equal((await client.get('k:499'))!.length, 499 * 20);
          assert.deepEqual(await client.multi().incr('n').get('k').exec(), [
            [null, 1],
            [null, 'v'],
          ]);
          client.disconnect();
          await shard.settled();
          const ends = Date.parse(new X509Certificate(readFileSync(ours.cert)).validTo);
          assert.deepEqual(shard.shard.scrape().watch.certificates, {
            listener: ends,
            source: ends,
            'source-client': ends,
            target: ends,
            'target-client': ends,
          });
          assert.equal(shard.snapshot().matched, shard.snapshot().compared);

          assert.equal(await isServed(shard.port, tls), true);
          assert.equal(await isServed(shard.port), false, 'in the clear');
          assert.equal(await isServed(shard.port, asClient(ours)), false, 'without a certificate');
          assert.equal(
            await isServed(shard.port, asClient(ours, theirs)),
            false,
            'with a certificate of somebody else',
          );
          assert.equal(await isServed(shard.port, asClient(theirs, ours)), false, 'with another authority');
          assert.equal(await isServed(shard.port, tls), true);
          await until(() => shard.snapshot().clients === 0);
        },
      );
    },
    { source: server, target: server },
  );
});

test(
  'a source whose certificate another authority signed is refused at the start, and nothing listens',
  { skip },
  async () => {
    await withServers(
      async ({ source, target }) => {
        await assert.rejects(
          startTestShard({ source, target, sourceTls: { ca: theirs.ca }, targetTls: { ca: ours.ca } }),
          /self-signed certificate|unable to verify|signature/,
        );
        await assert.rejects(
          startTestShard({ source, target, targetTls: { ca: ours.ca } }),
          /self-signed certificate|unable to verify|unable to get/,
        );
      },
      { source: { tls: ours }, target: { tls: ours } },
    );
  },
);

test('a target whose certificate another authority signed is no mirror, and no client notices', { skip }, async () => {
  await withServers(
    async ({ source, target }) => {
      await withShard(startTestShard({ source, target, targetTls: { ca: theirs.ca } }), async (shard) => {
        const wire = await Wire.open({ port: shard.port });
        assert.equal(await wire.ask('SET', 'k', 1), '+OK');
        assert.equal(
          shard.snapshot().workloads[0].stage,
          'off',
          'a target that cannot be asked what it holds is not written',
        );
        wire.destroy();
      });
      // With the right one, the same servers go on.
      await withShard(startTestShard({ source, target, targetTls: { ca: ours.ca } }), async (shard) => {
        const wire = await Wire.open({ port: shard.port });
        assert.equal(await wire.ask('SET', 'k', 2), '+OK');
        await shard.settled();
        wire.destroy();
      });
    },
    { target: { tls: ours } },
  );
});

test('the certificate must carry the name that the plan says', { skip }, async () => {
  await withServers(
    async ({ source, target }) => {
      const servername = (name: string): { shard: Record<string, unknown> } => ({
        shard: { tls: { target: { ca: ours.ca, servername: name } } },
      });
      await withShard(startTestShard({ source, target, ...servername('localhost') }), async (shard) => {
        const wire = await Wire.open({ port: shard.port });
        await wire.ask('SET', 'k', 1);
        await shard.settled();
        wire.destroy();
      });
      await withShard(startTestShard({ source, target, ...servername('elsewhere') }), async (shard) => {
        const wire = await Wire.open({ port: shard.port });
        assert.equal(await wire.ask('SET', 'k', 2), '+OK');
        assert.equal(
          shard.snapshot().workloads[0].stage,
          'off',
          'a target that cannot be asked what it holds is not written',
        );
        wire.destroy();
      });
    },
    { target: { tls: ours } },
  );
});
