/**
 * The whole migration off ElastiCache, with the operator's own commands and clients at work, by AUTH and by RBAC.
 *
 * Needs real servers: a whole migration off a stand-in for ElastiCache, which refuses what AWS documents.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { startElastiCache, type ElastiCache, type ElastiCacheOptions } from '../../support/elasticache.js';
import { differences } from '../../support/keyspace.js';
import { missing } from '../../support/needs.js';
import { makeCertificates, startTestTarget } from '../../support/servers.js';
import { startTestShard, until } from '../../support/shard.js';
import { runProgram } from '../cli/process.js';
import { planFor, start, status } from '../cli/running.js';
import { APP, fullLine, KIT, loginOf, MIGRATION, rbac, TOKEN, type Login } from './logins.js';
import { work } from './work.js';

const GATES = {
  minCompared: 300,
  minMinutes: 0.02,
  maxP99Ratio: 1000,
  maxAllowedShare: 1,
  steps: false,
  acceptSettings: ['unreadable'],
};
const skip = await missing('openssl');
const tls = skip ? { ca: '', cert: '', key: '' } : makeCertificates();

async function migrate(
  t: TestContext,
  options: ElastiCacheOptions,
  { proxy, app }: { readonly proxy: Login; readonly app: Login },
  targetUsers: readonly string[],
): Promise<void> {
  const cache = await startElastiCache({ ...options, tls });
  const target = await startTestTarget({ config: { user: targetUsers } });
  t.after(() => Promise.all([cache.stop(), target.stop()]));
  await fill(cache, app);
  const plan = await planFor({ source: cache.node, target }, (planned) => {
    Object.assign(planned, { gates: GATES });
    Object.assign(planned.shards[0], {
      source: cache.primary.urlFor(loginOf(proxy)),
      target: `redis://${loginOf(KIT)}127.0.0.1:${target.port}`,
      tls: { source: { ca: tls.ca } },
    });
  });
  const running = await start(t, plan);
  const tool = (...args: string[]): ReturnType<typeof runProgram> =>
    runProgram(t, 'shadow-compare', [...args, '--admin', running.admin]);
  const stage = async (): Promise<string> => (await status(running.admin))[0].workloads[0].stage;
  const holds = async (...args: string[]): Promise<void> => {
    const deadline = Date.now() + 60_000;
    for (;;) {
      const { code, stdout, stderr } = await tool(...args);
      if (code === 0) return;
      if (Date.now() > deadline)
        throw new Error(`${args.join(' ')}: ${code}\n${stdout}\n${stderr}\n${running.daemon.stdout.slice(-2000)}`);
      await sleep(200);
    }
  };
  const clients = work(running.port, app);
  await holds('promote', 'sessions');
  await holds('backfill', '--workload', 'sessions');
  await holds('promote', 'sessions');
  assert.equal(await stage(), 'shadow');
  await holds('verify', '--workload', 'sessions');
  await holds('rollback', 'sessions', '--drill');
  await holds('promote', 'sessions', '--percent', '100');
  assert.equal(await stage(), 'live');
  // Clients work in this stage for so long.
  await sleep(1_000);
  await holds('rollback', 'sessions', '--reason', 'to see it');
  assert.equal(await stage(), 'shadow');
  // Clients work in this stage for so long.
  await sleep(500);
  await holds('promote', 'sessions', '--percent', '100');
  await holds('promote', 'sessions');
  assert.equal(await stage(), 'rampdown');
  await holds('verify', '--workload', 'sessions');
  const added = await clients.stop();
  assert.deepEqual([...clients.errors], []);
  assert.deepEqual(
    await differences(
      { host: '127.0.0.1', port: cache.node.port, ...proxy },
      { host: target.host, port: target.port, ...KIT },
    ),
    [],
  );
  await holds('promote', 'sessions', '--force', '--reason', 'the test ends', '--point-of-no-return', 'test');
  assert.equal(await stage(), 'complete');
  const [{ mismatches }] = await status(running.admin);
  assert.deepEqual(mismatches, {});
  t.diagnostic(`${added} increments`);
}

async function fill(cache: ElastiCache, { username, password }: Login): Promise<void> {
  const client = new Redis({ port: cache.primary.port, username, password, tls: { rejectUnauthorized: false } });
  await Promise.all(Array.from({ length: 500 }, (_, i) => client.set(`session:old:${i}`, `x${i}`)));
  await Promise.all(Array.from({ length: 50 }, (_, i) => client.rpush(`session:list:${i}`, 'a', 'b', String(i))));
  client.disconnect();
}

test('AUTH: the whole migration with the token of the cache', { skip }, (t) =>
  migrate(t, { token: TOKEN.password }, { proxy: TOKEN, app: TOKEN }, [fullLine(KIT), fullLine(TOKEN)]),
);

test('RBAC: the whole migration with the access strings of docs/elasticache.md', { skip }, (t) =>
  migrate(t, { users: rbac() }, { proxy: MIGRATION, app: APP }, [fullLine(KIT), 'default off', fullLine(APP)]),
);

test('a failover of the cache is followed although the old primary keeps its connections', { skip }, async (t) => {
  const cache = await startElastiCache({ tls, token: TOKEN.password, replica: true });
  const target = await startTestTarget({ config: { user: [fullLine(KIT), fullLine(TOKEN)] } });
  const shard = await startTestShard({
    source: cache.primary.urlFor(loginOf(TOKEN)),
    target: `redis://${loginOf(KIT)}127.0.0.1:${target.port}`,
    sourceTls: { ca: tls.ca },
  });
  const clients = work(shard.port, TOKEN);
  const client = new Redis({ port: shard.port, password: TOKEN.password, maxRetriesPerRequest: 0 });
  client.on('error', () => undefined);
  try {
    // Clients work before the failover.
    await sleep(1_000);
    const began = performance.now();
    await cache.failOver();
    await until(async () => (await client.set('session:probe', 'v').catch(() => null)) === 'OK', 20_000);
    t.diagnostic(`clients write again ${Math.round(performance.now() - began)} ms after the failover`);
    assert.match(shard.snapshot().frozen!, /run ID changed/);
    await until(async () => (await client.info('replication')).includes('role:master'));
    // Another history: repairs wait for the operator, who takes the new primary as it is.
    assert.deepEqual(await shard.shard.acceptAuthority(null), ['source']);
    // Clients work after it.
    await sleep(500);
    assert.ok((await clients.stop()) > 0);
    for (const error of clients.errors) assert.match(error, /READONLY|UNBLOCKED|shadow-proxy|max retries/);
    await shard.settled();
    const at = (port: number, login: Login): Parameters<typeof differences>[0] => ({
      host: '127.0.0.1',
      port,
      ...login,
    });
    assert.deepEqual(await differences(at(cache.primary.node.port, TOKEN), at(target.port, KIT)), []);
  } finally {
    await clients.stop();
    client.disconnect();
    await shard.stop();
    await Promise.all([cache.stop(), target.stop()]);
  }
});
