/**
 * Backfills and verifications go on beside SWAPDB: every key is met once more, under the number of its database.
 *
 * Needs real servers: cursors of SCAN after SWAPDB, on Redis and on KeyDB.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { startRedis } from '../../../src/local/servers.js';
import { clientsOf, type Clients } from '../../support/clients.js';
import { ask, ended, job } from '../../support/jobs.js';
import { differences } from '../../support/keyspace.js';
import { moveRequest } from '../../support/move.js';
import { withRig, type Rig } from '../../support/rig.js';
import { startTestTarget, withServers } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { planFor, start, status, type Running } from '../cli/running.js';
import { withScene } from '../rules/scene.js';

/** Of each database that has keys; database 1 begins empty. */
const KEYS = 2_000;
const LIMITS = { keysPerSecond: 2_000 };
/** Keys of each, where a cursor is followed: eight pages. */
const SCANNED = 4_000;
const FILLED = [0, 2, 3];
const DATABASES = [0, 1, 2, 3];
const SWAP_MS = 250;
/**
 * Rounds of writes between two swaps, all writers together: 250 ms of a quiet machine. On a busy one both they and the
 * copies take longer, so that no more swaps meet a copy in chunks: after ten it would rightly give up.
 */
const SWAP_ROUNDS = 160;
const LARGE_KEYS = 3;
/** The journal forgets after a second. */
const FORGOTTEN_MS = 2_000;

/** Asks the daemon for something, as the operator's tool does. */
async function order({ admin }: Running, [path, body]: readonly [string, object]): Promise<void> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${admin}${path}`, { method: 'POST', body: JSON.stringify(body), headers });
  assert.ok(response.ok, await response.text());
}

/** The same names in each database, so that a copy into the wrong one shows. */
async function fill(client: Redis, keys = KEYS): Promise<void> {
  for (const db of FILLED) {
    await client.select(db);
    for (let from = 0; from < keys; from += 1_000) {
      const pipeline = client.pipeline();
      for (let i = from; i < from + 1_000; i++) pipeline.set(`k:${i}`, `${db}:${i}`);
      await pipeline.exec();
    }
    await client.hset('large', Object.fromEntries(Array.from({ length: 3_000 }, (_, i) => [`f${i}`, `${db}:${i}`])));
  }
  await client.select(0);
}

/** Waits until what is written with a TTL has expired on both servers. */
const expired = (rig: Rig): Promise<void> =>
  until(async () => {
    const clients = [rig.source, rig.target].flatMap((of) => DATABASES.map((db) => rig.client({ of, db })));
    const left = await Promise.all(clients.map((client) => client.keys('e:*')));
    for (const client of clients) client.disconnect();
    return left.flat().length === 0;
  });

/** Writes to all databases, and swaps two of them now and then, until it is stopped; resolves with how many swaps. */
function load(rig: Clients, pace: 'time' | 'writes' = 'time'): () => Promise<number> {
  let over = false;
  let swaps = 0;
  let rounds = 0;
  const swapper = rig.client();
  const swapping = (async () => {
    while (!over) {
      const next = rounds + SWAP_ROUNDS;
      await (pace === 'time' ? sleep(SWAP_MS) : until(() => over || rounds >= next));
      if (over) return;
      const a = DATABASES[swaps % DATABASES.length];
      await swapper.call('SWAPDB', a, DATABASES[(a + 1 + (swaps % 3)) % DATABASES.length]);
      swaps++;
    }
  })();
  const writing = DATABASES.map(async (db) => {
    const writer = rig.client({ db });
    for (let n = 0; !over; n++) {
      const i = (n * 7919) % (KEYS + 500);
      await writer
        .pipeline()
        .set(`k:${i}`, `w${db}:${n}`)
        .del(`k:${(n * 104_729) % KEYS}`)
        .append(`a:${n % 50}`, `${db}`)
        .set(`e:${n % 100}`, n, 'PX', 50)
        .hset('large', `f${n % 3_100}`, n)
        .exec();
      rounds++;
      await sleep(4);
    }
  });
  return async () => {
    over = true;
    await Promise.all([swapping, ...writing]);
    return swaps;
  };
}

const isClean = ({ shard }: Rig): boolean =>
  shard.snapshot().suspects.total === 0 && shard.snapshot().workloads.every(({ suspect }) => suspect === null);

for (const [name, startServer] of [
  ['Redis', startRedis],
  ['the target', startTestTarget],
] as const) {
  test(`on ${name} a cursor of SCAN holds for the database that it was given for, under its new number`, async () => {
    const server = await startServer();
    const { client, closeAll } = clientsOf(() => server.port);
    try {
      const [filler, scanner, swapper] = [client(), client(), client()];
      await fill(filler, SCANNED);
      const met = new Set<string>();
      let db = 0;
      for (let cursor = '', pages = 0; cursor !== '0'; pages++) {
        const [, [, page]] = (await scanner.multi().select(db).scan(cursor, 'COUNT', 500).exec())!;
        const [next, keys] = page as [string, string[]];
        for (const key of keys) met.add(key);
        cursor = next;
        if (pages % 3 !== 0) continue;
        const other = FILLED[(FILLED.indexOf(db) + 1) % FILLED.length];
        await swapper.call('SWAPDB', db, other);
        db = other;
        // The table grows, and is moved to a larger one in steps.
        await filler.select(db);
        await filler.mset(...Array.from({ length: 2_000 }, (_, i) => [`more:${pages}:${i}`, 'v']).flat());
      }
      const missed = Array.from({ length: SCANNED }, (_, i) => `k:${i}`).filter((key) => !met.has(key));
      assert.deepEqual(missed, []);
    } finally {
      closeAll();
      await server.stop();
    }
  });
}

test('a backfill beside SWAPDB copies every key into its database, and is not started again', async () => {
  await withRig({ default: { stage: 'off' } }, async (rig) => {
    await fill(rig.client({ of: rig.source }));
    await rig.shard.shard.changeStage({ workload: 'default', stage: 'dualwrite' });
    const stop = load(rig);
    ask(rig, { kind: 'backfill', limits: LIMITS });
    await ended(rig, 60_000);
    const { state, reason, failed, seen } = job(rig);
    const swaps = await stop();
    assert.deepEqual([state, reason, failed], ['done', null, 0]);
    assert.ok(seen < FILLED.length * KEYS * 1.2, `${seen} keys were seen: each is met once`);
    assert.ok(swaps > FILLED.length, `${swaps} swaps`);
    await expired(rig);
    await rig.assertEqual();
    assert.ok(isClean(rig));
  });
});

test('large keys are copied, and compared, in chunks beside SWAPDB, each in its database', async () => {
  const limits = { largeKeyElements: 1_000 };
  await withRig({ default: { stage: 'off' }, limits }, async (rig) => {
    for (const db of FILLED) {
      const source = rig.client({ of: rig.source, db });
      for (let i = 0; i < LARGE_KEYS; i++) {
        const elements = Array.from({ length: 3_000 }, (_, n) => [`f${n}`, `${db}:${i}:${n}`]);
        await source.hset(`hash:${i}`, Object.fromEntries(elements));
        await source.rpush(`list:${i}`, ...elements.flat());
      }
    }
    await rig.shard.shard.changeStage({ workload: 'default', stage: 'dualwrite' });
    const stopFirst = load(rig, 'writes');
    ask(rig, { kind: 'backfill' });
    await ended(rig, 60_000);
    const copied = job(rig);
    await stopFirst();
    await rig.shard.settled();
    let planted = 0;
    for (const db of DATABASES) {
      const mirror = rig.client({ of: rig.target, db });
      if ((await mirror.exists('hash:0')) !== 1) continue;
      await mirror.hset('hash:0', 'f0', 'planted');
      planted++;
    }
    assert.equal(planted, FILLED.length);
    const stop = load(rig, 'writes');
    ask(rig, { kind: 'verify', repair: true });
    await ended(rig, 60_000);
    const repaired = job(rig);
    await stop();
    assert.deepEqual([copied.state, copied.failures], ['done', []]);
    assert.deepEqual(
      [repaired.state, repaired.failures, repaired.unsure, repaired.differences],
      ['done', [], 0, { value: FILLED.length }],
    );
    await expired(rig);
    await rig.assertEqual();
    assert.ok(isClean(rig));
  });
});

/** So many keys in each filled database that only the mirror has. */
const EXTRA = 10;

for (const stage of ['shadow', 'live'] as const) {
  test(`a verification beside SWAPDB in ${stage} finds what differs in each database, and repairs that`, async () => {
    await withRig({ default: { stage } }, async (rig) => {
      await fill(rig.client());
      for (const db of FILLED) await rig.client({ db }).mset('missing', db, 'value', db);
      await rig.shard.settled();
      for (const db of FILLED) {
        const mirror = rig.client({ of: stage === 'live' ? rig.source : rig.target, db });
        await mirror.del('missing');
        await mirror.set('value', 'other');
        for (let i = 0; i < EXTRA; i++) await mirror.set(`extra:${i}`, db);
      }
      const stop = load(rig);
      ask(rig, { kind: 'verify', limits: LIMITS });
      await ended(rig, 60_000);
      const found = job(rig);
      ask(rig, { kind: 'verify', repair: true, deletes: EXTRA * FILLED.length, limits: LIMITS });
      await ended(rig, 60_000);
      const repaired = job(rig);
      await stop();
      const each = FILLED.length;
      assert.deepEqual(
        [found.state, found.reason, found.failed, found.differences],
        ['done', null, 0, { missing: each, value: each, extra: EXTRA * each }],
      );
      assert.deepEqual(
        [repaired.state, repaired.reason, repaired.failed, repaired.deleted, repaired.differences],
        ['done', null, 0, EXTRA * each, found.differences],
      );
      await expired(rig);
      await rig.assertEqual();
      assert.ok(isClean(rig));
    });
  });
}

test('a backfill that goes on after the proxy has drained scans the databases that are left, under their new numbers', async () => {
  await withScene({ default: { stage: 'off' } }, async (scene) => {
    await fill(scene.client({ of: scene.source }));
    await scene.shard.shard.changeStage({ workload: 'default', stage: 'dualwrite' });
    ask(scene, { kind: 'backfill', limits: LIMITS });
    const { startedAt } = job(scene);
    for (let scanned = KEYS / 2; scanned < FILLED.length * KEYS; scanned += KEYS) {
      await until(() => job(scene).scanned > scanned);
      // The one that is being scanned, one that is left, the empty one, and one that is done.
      const swapper = scene.client();
      for (const [a, b] of [[0, 3], [2, 1], [0, 2]]) await swapper.call('SWAPDB', a, b); // prettier-ignore
      swapper.disconnect();
      await scene.stopShard('drained');
      await scene.startShard();
    }
    await ended(scene);
    const { state, failed, scanned, startedAt: since } = job(scene);
    assert.deepEqual([state, failed, since], ['done', 0, startedAt], 'it was not started again');
    assert.ok(scanned < FILLED.length * KEYS * 1.3, `${scanned} keys were scanned`);
    await scene.assertEqual();
  });
});

test('a backfill that goes on after the proxy was killed copies what is left, under the new numbers', async (t) => {
  await withServers(async (servers) => {
    const source = new Redis(servers.source.url);
    t.after(() => source.disconnect());
    await fill(source);
    const plan = await planFor(servers, (plan) => Object.assign(plan, { workloads: [], default: { stage: 'off' } }));
    let proxy = await start(t, plan);
    const ofJob = async () => (await status(proxy.admin))[0].job;
    await order(proxy, moveRequest('default', 'off', 'dualwrite'));
    await order(proxy, ['/api/jobs', { kind: 'backfill', limits: LIMITS }]);
    const startedAt = (await ofJob())!.startedAt;
    await until(async () => (await ofJob())!.scanned > KEYS / 2);
    const client = proxy.connect();
    for (const [a, b] of [[0, 3], [2, 1]]) await client.call('SWAPDB', a, b); // prettier-ignore
    // The journal forgets what it noted before, SWAPDB too, soon after a script that may hide what it writes.
    await client.eval("return redis.call('SET', KEYS[1] .. ARGV[1], 1)", 1, 'hidden', 'x');
    // No sign shows when.
    await sleep(FORGOTTEN_MS);
    proxy.daemon.signal('SIGKILL');
    await proxy.daemon.exit();
    proxy = await start(t, plan, proxy.directory);
    await until(async () => (await ofJob())?.state === 'done', 30_000);
    const ended = (await ofJob())!;
    assert.deepEqual([ended.kind, ended.failed, ended.startedAt], ['backfill', 0, startedAt], 'it was resumed');
    assert.deepEqual(await differences(servers.source, servers.target), []);
  });
});
