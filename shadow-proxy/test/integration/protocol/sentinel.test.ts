/**
 * Servers that Sentinel names: found, and followed when another one becomes the master.
 *
 * Needs real servers: Sentinels of Redis, their failover, and TLS to them.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { Redis } from 'ioredis';
import { startTarget, startRedis, startSentinel, type LocalServer } from '../../../src/local/servers.js';
import { makeCertificates } from '../../support/servers.js';
import { startTestShard, until, type TestShard } from '../../support/shard.js';
import { needs } from '../../support/needs.js';

interface Cluster {
  readonly master: LocalServer;
  readonly replica: LocalServer;
  /** Its URL, for a plan. */
  readonly url: string;
  readonly sentinel: Redis;
}

/** Runs `body` with a master, its replica and their Sentinel. */
async function withSentinel(start: typeof startRedis, body: (cluster: Cluster) => Promise<void>): Promise<void> {
  const started: LocalServer[] = [];
  const keep = async (server: Promise<LocalServer>): Promise<LocalServer> => {
    started.push(await server);
    return started.at(-1)!;
  };
  let sentinel: Redis | undefined;
  try {
    const master = await keep(start({ config: { 'repl-diskless-sync-delay': 0 } }));
    const replica = await keep(
      start({ config: { replicaof: `127.0.0.1 ${master.port}`, 'repl-diskless-sync-delay': 0 } }),
    );
    const watcher = await keep(startSentinel({ main: { server: master } }));
    sentinel = new Redis(watcher.port, '127.0.0.1');
    sentinel.on('error', () => undefined);
    const asked = sentinel;
    await until(
      async () =>
        ((await asked.call('SENTINEL', 'REPLICAS', 'main')) as unknown[]).length === 1 &&
        /master_link_status:up/.test(await infoOf(replica)),
      20_000,
    );
    await body({ master, replica, sentinel, url: `redis+sentinel://127.0.0.1:${watcher.port}/main` });
  } finally {
    sentinel?.disconnect();
    await Promise.all(started.map((server) => server.stop()));
  }
}

async function infoOf({ port }: LocalServer): Promise<string> {
  const client = new Redis(port, '127.0.0.1');
  return client.info('replication').finally(() => client.disconnect());
}

async function ask<T>({ port }: { readonly port: number }, question: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis({ port, host: '127.0.0.1', retryStrategy: () => null });
  return question(client).finally(() => client.disconnect());
}

/** A client that reconnects by itself; sets `n` to ever higher numbers until it is stopped. */
function counting(shard: TestShard): { last(): number; stop(): Promise<void>; close(): void } {
  const client = new Redis({
    host: '127.0.0.1',
    port: shard.port,
    maxRetriesPerRequest: null,
    retryStrategy: () => 20,
  });
  client.on('error', () => undefined);
  let last = 0;
  let stopped = false;
  const ended = (async () => {
    for (let n = 1; !stopped; n++) {
      const done = await client.set('n', n).then(
        () => true,
        () => false,
      );
      if (done) last = n;
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  })();
  return {
    last: () => last,
    // Resolves when the last SET is answered: until then the source may have one that the target has not.
    stop: () => ((stopped = true), ended),
    close: () => ((stopped = true), client.disconnect()),
  };
}

test('the failover of a source that has died is followed', async () => {
  await withSentinel(startRedis, async ({ master, replica, url }) => {
    const target = await startTarget();
    const shard = await startTestShard({ source: url, target });
    const counter = counting(shard);
    try {
      await until(() => counter.last() > 50);
      await until(async () => (await ask(replica, (client) => client.get('n'))) !== null);
      const { runId } = shard.snapshot().source;
      await master.kill('SIGKILL');
      const before = counter.last();
      await until(() => counter.last() > before + 50, 20_000);
      assert.notEqual(shard.snapshot().source.runId, runId);
      // Writes that the old master had acknowledged may be lost on the new one: the operator must decide.
      assert.match(shard.snapshot().frozen ?? '', /source/);
      await counter.stop();
      await until(() => shard.snapshot().mirror.queuedEffects === 0);
      const [source, mirrored] = await Promise.all(
        [replica, target].map((server) => ask(server, (client) => client.get('n'))),
      );
      assert.equal(source, mirrored);
      assert.ok(Number(source) >= counter.last());
    } finally {
      counter.close();
      await shard.stop();
      await target.stop();
    }
  });
});

test('a source that hands over while it lives is followed, and the old one gets no more writes', async () => {
  await withSentinel(startRedis, async ({ master, replica, url, sentinel }) => {
    const target = await startTarget();
    const shard = await startTestShard({ source: url, target });
    const counter = counting(shard);
    try {
      await until(() => counter.last() > 20);
      await sentinel.call('SENTINEL', 'FAILOVER', 'main');
      await until(async () => (await infoOf(replica)).includes('role:master'), 20_000);
      await until(() => shard.snapshot().source.up === true && shard.snapshot().frozen !== null, 20_000);
      const before = counter.last();
      const left = await ask(master, (client) => client.get('n'));
      await until(() => counter.last() > before + 20, 20_000);
      await counter.stop();
      await until(async () => Number(await ask(replica, (client) => client.get('n'))) >= counter.last());
      assert.equal(await ask(master, (client) => client.get('n')), left);
    } finally {
      counter.close();
      await shard.stop();
      await target.stop();
    }
  });
});

test('the proxy follows the failover of a target: its clients notice nothing, and all keys are suspect', async () => {
  await withSentinel(startTarget, async ({ master, replica, url }) => {
    const source = await startRedis();
    const shard = await startTestShard({ source, target: url });
    const counter = counting(shard);
    try {
      await until(() => counter.last() > 50);
      await shard.settled();
      assert.equal(shard.snapshot().workloads[0].clean, true);
      await master.kill('SIGKILL');
      const before = counter.last();
      await until(() => counter.last() > before + 20, 1_000);
      await until(() => shard.snapshot().mirror.connected, 20_000);
      await counter.stop();
      await until(() => shard.snapshot().mirror.queuedEffects === 0 && shard.snapshot().suspects.total === 0);
      // The last command may have been on its way when the counting was stopped.
      await until(
        async () =>
          (await ask(replica, (client) => client.get('n'))) === (await ask(source, (client) => client.get('n'))),
      );
      const { workloads, job } = shard.snapshot();
      assert.equal(shard.snapshot().frozen, null);
      assert.deepEqual(shard.snapshot().mismatches, {});
      // All keys are suspect, and the proxy verifies them automatically; that may already be done.
      if (job?.automatic !== true) assert.equal(workloads[0].clean, false);
      if (job === null)
        await assert.rejects(shard.shard.changeStage({ workload: 'default', stage: 'live' }), /not clean/);
    } finally {
      counter.close();
      await shard.stop();
      await source.stop();
    }
  });
});

test('a master that no Sentinel knows is reported at the start', async () => {
  await withSentinel(startRedis, async ({ url }) => {
    const target = await startTarget();
    try {
      await assert.rejects(
        startTestShard({ source: url.replace('/main', '/other'), target }),
        /no Sentinel knows a master "other"/,
      );
      await assert.rejects(
        startTestShard({ source: 'redis+sentinel://127.0.0.1:1/main', target }),
        /no Sentinel knows a master "main" .*127\.0\.0\.1:1/,
      );
      // The first of several Sentinels may be away.
      const shard = await startTestShard({ source: url.replace('//127', '//127.0.0.1:1,127'), target });
      await shard.stop();
    } finally {
      await target.stop();
    }
  });
});

const SENTINEL_PASSWORD = 'of-the-sentinel';

/** Serves on a free port of loopback. */
async function portOf(listener: Server): Promise<number> {
  await once(listener.listen(0, '127.0.0.1'), 'listening');
  return (listener.address() as AddressInfo).port;
}

test('rediss+sentinel asks the Sentinel over TLS, verified, and sends its password to no other server', async (t) => {
  if (!(await needs(t, 'openssl', 'tls-source'))) return;
  const [ours, theirs] = [makeCertificates(), makeCertificates()];
  const directory = await mkdtemp(join(tmpdir(), 'sentinel-'));
  const sentinelPasswordFile = join(directory, 'sentinel-password');
  await writeFile(sentinelPasswordFile, SENTINEL_PASSWORD);
  const started: LocalServer[] = [];
  const keep = async (server: Promise<LocalServer>): Promise<LocalServer> => {
    started.push(await server);
    return started.at(-1)!;
  };
  const heard: Buffer[] = [];
  const hear = (answer?: string) => (socket: Socket) => {
    socket
      .on('error', () => undefined)
      .on('data', (bytes) => {
        heard.push(bytes);
        if (answer !== undefined) socket.write(answer);
      });
  };
  const plaintext = createServer(hear('-ERR unknown command\r\n'));
  const stranger = createTlsServer({ cert: readFileSync(theirs.cert), key: readFileSync(theirs.key) }, hear()).on(
    'tlsClientError',
    () => undefined,
  );
  try {
    const [source, target] = [await keep(startRedis({ tls: ours })), await keep(startTarget())];
    const watched = { main: { server: source } };
    const [asked, inPlaintext] = await Promise.all([
      keep(startSentinel(watched, { tls: ours, config: { requirepass: SENTINEL_PASSWORD, 'tls-replication': 'yes' } })),
      keep(startSentinel(watched, { config: { requirepass: SENTINEL_PASSWORD } })),
    ]);
    const start = (
      port: number,
      sourceTls: { readonly ca?: string; readonly servername?: string },
    ): Promise<TestShard> => {
      const login = { url: `rediss+sentinel://127.0.0.1:${port}/main`, sentinelPasswordFile };
      return startTestShard({ source: login, target, shard: { source: login, tls: { source: sourceTls } } });
    };
    const { ca } = ours;

    const shard = await start(asked.port, { ca });
    try {
      await ask(shard, (client) => client.set('k', 'v'));
      await shard.settled();
    } finally {
      await shard.stop();
    }
    await (await start(asked.port, { ca, servername: 'localhost' })).stop();

    await assert.rejects(
      start(asked.port, {}),
      /no Sentinel knows a master "main" .*(self-signed certificate|unable to verify|unable to get)/,
    );
    await assert.rejects(
      start(asked.port, { ca: theirs.ca }),
      /no Sentinel knows .*(self-signed certificate|unable to verify|signature)/,
    );
    await assert.rejects(
      start(asked.port, { ca, servername: 'elsewhere' }),
      /no Sentinel knows .*does not match certificate/,
    );
    await assert.rejects(
      start(inPlaintext.port, { ca }),
      /no Sentinel knows .*did not answer a TLS handshake within 2000 ms: use the TLS port of the server/,
    );

    await assert.rejects(
      start(await portOf(plaintext), { ca }),
      /no Sentinel knows .*does not speak TLS: use the TLS port of the server/,
    );
    assert.ok(heard.length > 0, 'the handshake');
    assert.doesNotMatch(Buffer.concat(heard.splice(0)).toString('latin1'), /of-the-sentinel|AUTH|SENTINEL/);
    await assert.rejects(
      start(await portOf(stranger), { ca }),
      /no Sentinel knows .*(self-signed certificate|unable to verify|signature)/,
    );
    assert.equal(Buffer.concat(heard).toString('latin1'), '', 'nothing to a peer that is not verified');
  } finally {
    plaintext.close();
    stranger.close();
    await Promise.all(started.map((server) => server.stop()));
    await rm(directory, { recursive: true, force: true });
  }
});
