/**
 * What a keyspace scan does to KeyDB while its keys are written: upstream/scan-page.ts.
 *
 * Needs real servers: a KeyDB that loses count of its TTLs under SCAN, and then cannot save.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { startTarget } from '../../../src/local/servers.js';
import { until } from '../../support/shard.js';
import { withSharedTarget } from '../../support/shared.js';
import { needs } from '../../support/needs.js';

const KEYS = Array.from({ length: 3_000 }, (_, i) => `key:${i}`);
const HOUR_MS = 3_600_000;
const [SCANS_MS, FEWEST_SCANS] = [2_000, 5];

/** Sets every key again and again, some with KEEPTTL, until `done`. */
async function write(client: Redis, done: () => boolean): Promise<void> {
  for (let round = 0; !done(); round++) {
    await Promise.all(
      KEYS.map((key, i) => (i % 3 === 0 ? client.set(key, round, 'KEEPTTL') : client.set(key, round, 'PX', HOUR_MS))),
    );
  }
}

/** How many keys KeyDB says have a time to live, and how many have. */
async function expiring(target: Redis): Promise<[said: number, found: number]> {
  const said = Number(/^db0:.*expires=(\d+)/m.exec(await target.info('keyspace'))![1]);
  const left = await Promise.all(KEYS.map((key) => target.pttl(key)));
  return [said, left.filter((ms) => ms > 0).length];
}

/**
 * Whether a snapshot is written. KeyDB calls one whose process dies cancelled, and `rdb_last_bgsave_status` stays ok.
 */
async function saves(target: Redis): Promise<boolean> {
  const before = await target.lastsave();
  await until(async () => Number((await target.time())[0]) > before);
  await target.bgsave();
  await until(async () => /rdb_bgsave_in_progress:0\r/.test(await target.info('persistence')));
  return (await target.lastsave()) > before;
}

for (const [what, scan] of [
  ['the proxy’s own walk', (client: Redis) => client.dbsize()],
  ['a client’s SCAN', (client: Redis) => client.scan(0, 'COUNT', 1_000)],
  ['a client’s KEYS', (client: Redis) => client.keys('*')],
] as const) {
  test(`${what} leaves KeyDB's times to live as they are, and able to save, while keys are set`, async () => {
    // The proxy answers DBSIZE with a keyspace scan if its shard owns only a part of the target's keys.
    await withSharedTarget({ owns: [['key:*'], ['other:*']], stage: 'complete' }, async (shared) => {
      const { port } = shared.shards[0].shard;
      const [writer, reader, target] = [new Redis(port), new Redis(port), new Redis(shared.target.url)];
      try {
        await Promise.all(KEYS.map((key) => writer.set(key, 'first', 'PX', HOUR_MS)));
        let done = false;
        const writing = write(writer, () => done);
        for (let scans = 0, end = Date.now() + SCANS_MS; Date.now() < end || scans < FEWEST_SCANS; scans++)
          await scan(reader);
        done = true;
        await writing;
        assert.deepEqual(await expiring(target), [KEYS.length, KEYS.length]);
        assert.ok(await saves(target), 'a snapshot was written');
      } finally {
        for (const client of [writer, reader, target]) client.disconnect();
      }
    });
  });
}

test('a KeyDB that has lost count of its times to live cannot save, and can again after what KeydbCannotSave.md advises', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  const server = await startTarget();
  const [target, walker] = [new Redis(server.url), new Redis(server.url)];
  try {
    await target.call('DEBUG', 'POPULATE', 100_000, 'other');
    await Promise.all(KEYS.map((key) => target.set(key, 'first', 'PX', HOUR_MS)));
    for (const end = Date.now() + 10_000; (await expiring(target))[0] === KEYS.length && Date.now() < end;) {
      await Promise.all([walker.keys('*'), ...KEYS.map((key) => target.set(key, 'second', 'PX', HOUR_MS))]);
    }
    const [said, found] = await expiring(target);
    assert.ok(said > found && found === KEYS.length, `${said} for ${found}: this KeyDB needs no such advice`);
    assert.equal(await saves(target), false);
    assert.match(await target.info('persistence'), /rdb_last_bgsave_status:ok\r/);

    await target.config('SET', 'aof-use-rdb-preamble', 'no');
    await target.config('SET', 'appendonly', 'yes');
    await until(async () =>
      /aof_rewrite_in_progress:0\r[^]*aof_base_size:[1-9]/.test(await target.info('persistence')),
    );
    await target.call('DEBUG', 'LOADAOF');
    assert.deepEqual(await expiring(target), [KEYS.length, KEYS.length]);
    assert.equal(await target.dbsize(), 100_000 + KEYS.length);
    assert.ok(await saves(target), 'a snapshot was written');
  } finally {
    for (const client of [target, walker]) client.disconnect();
    await server.stop();
  }
});
