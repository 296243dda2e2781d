/**
 * Faults of the authority. It restarts (its run ID changes), and keys that it may have lost must not be deleted on the
 * mirror: repairs are frozen, as they must be. The operator then moves the clients to the mirror, and both end equal.
 *
 * Needs real processes: an authority that is killed and loads its AOF, an old RDB or nothing.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { startRedis, startSentinel, type LocalServer } from '../../../src/local/servers.js';
import { APP_USER } from '../random/driver.js';
import { until } from '../../support/shard.js';
import { order, rehearse, type Rehearsal, type Scene } from './rehearsal.js';

const DURABLE = { appendonly: 'yes', appendfsync: 'always' };
/** What clients see of a Redis that ends and loads. */
const RESTARTS: Pick<Rehearsal, 'reconnects' | 'errorCodes'> = {
  reconnects: true,
  errorCodes: ['LOADING', 'READONLY', 'UNKILLABLE', 'MASTERDOWN'],
};
/** A counter of a client that did not notice is lower than it was: Redis forgot it. */
const FORGOTTEN = /: expected \d+$/;

/** The freeze holds, and says what for; then the operator gives the authority up. */
async function abandonAuthority(scene: Scene): Promise<void> {
  const { t, authority, mirror, witness } = scene;
  await until(async () => (await scene.status()).mirror.queuedEffects === 0, 20_000);
  const { frozen, suspects } = await scene.status();
  assert.match(frozen ?? 'not frozen', /restarted or was replaced .* and is an authority/);
  const [lost, unconfirmed] = await Promise.all([witness.missingOn(authority), witness.missingOn(mirror)]);
  t.diagnostic(
    `frozen with ${suspects.total} keys in doubt; of ${witness.acknowledged.length} acknowledged the authority has lost ${lost.length}, and the mirror has not confirmed ${unconfirmed.length}`,
  );
  await scene.force((await scene.status()).workloads[0].stage === 'live' ? 'shadow' : 'live');
  Object.assign(scene, { authority: mirror, mirror: authority });
}

async function killed({ authority }: Scene): Promise<void> {
  await authority.kill('SIGKILL');
  await sleep(500);
  await authority.start();
}

test('the authority is killed and restarts with its AOF', (t) =>
  rehearse(t, { ...RESTARTS, source: DURABLE, fault: killed, decide: abandonAuthority }));

test('the authority is killed and restarts with its AOF (live)', (t) =>
  rehearse(t, { ...RESTARTS, stage: 'live', target: DURABLE, fault: killed, decide: abandonAuthority }));

test('the authority restarts, saving what it has', (t) =>
  rehearse(t, {
    ...RESTARTS,
    source: { save: '3600 1000000' },
    fault: ({ authority }) => authority.restart(),
    decide: abandonAuthority,
  }));

test('the authority is killed and restarts empty', (t) =>
  rehearse(t, { ...RESTARTS, allowed: FORGOTTEN, fault: killed, decide: abandonAuthority }));

test('the authority restarts with an old RDB', (t) =>
  rehearse(t, {
    ...RESTARTS,
    allowed: FORGOTTEN,
    fault: async (scene) => {
      const client = new Redis({ port: scene.authority.port });
      await client.save();
      client.disconnect();
      await sleep(1_500);
      await killed(scene);
    },
    decide: abandonAuthority,
  }));

for (const fromMirror of [false, true]) {
  test(`the authority restarts empty, and is ${fromMirror ? 'given back what it lost' : 'accepted as it is'} in mid-traffic`, (t) =>
    rehearse(t, {
      ...RESTARTS,
      allowed: FORGOTTEN,
      faultMs: 6_000,
      fault: async (scene) => {
        await killed(scene);
        await until(async () => (await scene.status()).frozen !== null, 20_000);
        if (fromMirror) {
          await order(scene, '/api/jobs', [{ kind: 'restore' }]);
          await until(async () => (await scene.status()).job?.state !== 'running', 20_000);
          const { job } = await scene.status();
          t.diagnostic(
            `${job?.seen} keys on the mirror, ${job?.repaired} given back, ${job?.unsure} written since, ${job?.failed} failed`,
          );
          assert.deepEqual([job?.state, job?.failed], ['done', 0], JSON.stringify(job));
          assert.ok(job!.repaired >= 3_000);
        }
        await order(scene, '/api/accept', [{}]);
      },
    }));
}

test('Sentinel fails the authority over', async (t) => {
  let [replica, sentinel]: LocalServer[] = [];
  await rehearse(t, {
    ...RESTARTS,
    allowed: FORGOTTEN,
    faultMs: 5_000,
    source: { 'repl-diskless-sync-delay': 0 },
    plan: async (plan, { source }) => {
      replica = await startRedis({
        config: { user: [APP_USER.acl], replicaof: `127.0.0.1 ${source.port}`, 'repl-diskless-sync-delay': 0 },
      });
      t.after(() => replica.stop());
      sentinel = await startSentinel({ main: { server: source } });
      t.after(() => sentinel.stop());
      plan.shards[0].source = `redis+sentinel://127.0.0.1:${sentinel.port}/main`;
      await until(
        async () =>
          (await ask<unknown[]>(sentinel, 'SENTINEL', 'REPLICAS', 'main')).length === 1 &&
          /link_status:up/.test(await ask(replica, 'INFO', 'replication')),
        20_000,
      );
    },
    fault: async (scene) => {
      await ask(sentinel, 'SENTINEL', 'FAILOVER', 'main');
      // Sentinel closes all connections of whom it promotes.
      await until(
        async () => /role:master/.test(await ask<string>(replica, 'INFO', 'replication').catch(() => '')),
        20_000,
      );
      await until(async () => (await scene.status()).frozen !== null, 20_000);
      scene.authority = replica;
    },
    decide: abandonAuthority,
  });
});

async function ask<T>({ port }: LocalServer, ...args: string[]): Promise<T> {
  const client = new Redis({ port, retryStrategy: () => null });
  return client.call(args[0], ...args.slice(1)).finally(() => client.disconnect()) as Promise<T>;
}
