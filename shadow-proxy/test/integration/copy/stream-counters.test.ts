/**
 * What a stream and its groups have counted is on a mirror that counts as well: Redis 7.0 and later, Valkey.
 *
 * Needs real servers: entries-added, lag and entries-read, as newer servers count them.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Redis } from 'ioredis';
import { copyLarge } from '../../../src/copy/large/large.js';
import { startRedis } from '../../../src/local/servers.js';
import { ask, ended, job } from '../../support/jobs.js';
import { startOn, type Rig } from '../../support/rig.js';
import { partsOf } from '../../support/shard.js';
import { SMALL_CHUNKS } from './large.js';
import { needs } from '../../support/needs.js';

const KEY = 'stream';

/** Two servers of one release, of which the mirror is empty. */
async function betweenTwo(t: TestContext, body: (rig: Rig, servers: readonly Redis[]) => Promise<void>): Promise<void> {
  if (!(await needs(t, 'redis>=7.0'))) return;
  const servers = await Promise.all([startRedis(), startRedis()]);
  try {
    const [source, target] = servers;
    const rig = await startOn({ source, target, default: { stage: 'shadow' } });
    const clients = servers.map((of) => rig.client({ of }));
    await body(rig, clients).finally(() => rig.stop());
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
}

/** Deleted and trimmed entries, a group that has read some of the rest, a group whose ENTRIESREAD a client has set. */
const COUNTED: readonly (readonly (string | number)[])[] = [
  ...Array.from({ length: 90 }, (_, i) => ['XADD', KEY, `${i + 1}-0`, 'field', `value ${i}`]),
  ['XGROUP', 'CREATE', KEY, 'reads', 0],
  ['XGROUP', 'CREATE', KEY, 'told', '20-0', 'ENTRIESREAD', 7],
  ['XGROUP', 'CREATE', KEY, 'unknown', '30-0'],
  ['XREADGROUP', 'GROUP', 'reads', 'c', 'COUNT', 12, 'STREAMS', KEY, '>'],
  ['XDEL', KEY, '40-0', '89-0', '90-0'],
  ['XTRIM', KEY, 'MAXLEN', 60],
];

async function send(client: Redis, commands = COUNTED): Promise<void> {
  for (const [name, ...args] of commands) await client.call(name as string, args);
}

async function counters(client: Redis): Promise<unknown> {
  const fields = (flat: unknown, names: readonly string[]): unknown[] =>
    names.map((name) => (flat as unknown[])[(flat as unknown[]).indexOf(name) + 1]);
  const stream = fields(await client.xinfo('STREAM', KEY), ['length', 'entries-added', 'max-deleted-entry-id']);
  const groups = (await client.xinfo('GROUPS', KEY)) as unknown[];
  return [stream, groups.map((group) => fields(group, ['name', 'entries-read', 'lag', 'pending']))];
}

async function assertCounters(rig: Rig, [source, target]: readonly Redis[]): Promise<void> {
  await rig.shard.settled();
  const wanted = await counters(source);
  assert.deepEqual(await counters(target), wanted);
  assert.match(JSON.stringify(wanted), /^\[\[60,90,"90-0"\],.*"told",7,/);
}

test('what clients say that a stream and its groups have counted is said on the mirror', async (t) => {
  await betweenTwo(t, async (rig, servers) => {
    const client = rig.client();
    await send(client);
    await assertCounters(rig, servers);
    await client.multi().call('XSETID', KEY, '95-0', 'ENTRIESADDED', 500, 'MAXDELETEDID', '93-0').exec();
    await send(client, [['XGROUP', 'SETID', KEY, 'told', '30-0', 'ENTRIESREAD', 9]]);
    await rig.shard.settled();
    const [source, target] = await Promise.all(servers.map(counters));
    assert.deepEqual(target, source);
    assert.match(JSON.stringify(target), /,500,"93-0".*"told",9,/);
  });
});

test('what a stream and its groups have counted is copied', async (t) => {
  await betweenTwo(t, async (rig, servers) => {
    await send(servers[0]);
    ask(rig, { kind: 'backfill' });
    await ended(rig);
    assert.equal(job(rig).state, 'done');
    await assertCounters(rig, servers);
  });
});

test('what a stream and its groups have counted is copied in chunks', async (t) => {
  await betweenTwo(t, async (rig, servers) => {
    await send(servers[0]);
    const { sequencer, suspects } = partsOf(rig.shard.shard);
    const key = Buffer.from(KEY);
    const workload = sequencer.router.match(key, 0, key.length);
    const { outcome } = await copyLarge({ sequencer, suspects, workload, db: 0, key, limits: SMALL_CHUNKS });
    assert.equal(outcome, 'copied');
    await assertCounters(rig, servers);
  });
});
