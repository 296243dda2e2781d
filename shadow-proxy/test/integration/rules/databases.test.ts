/**
 * No effect runs in another database than its own: a database that the mirror refuses is dropped by name.
 *
 * Needs real servers: servers with fewer databases, or a user who may not SELECT.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { attentionOf } from '../../../src/page/attention.js';
import type { ServerConfig } from '../../../src/local/servers.js';
import type { Argument } from '../../../src/resp/encode.js';
import type { Stage } from '../../../src/route/stage.js';
import { differences } from '../../support/keyspace.js';
import { ask, ended, job } from '../../support/jobs.js';
import { startOn, withRig, type Rig } from '../../support/rig.js';
import { withServers } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import type { Wire } from '../../support/wire.js';

type Commands = (readonly Argument[])[];

/** By what a server does not let the kit's user into database 5, and lets it into database 0. */
const REFUSALS: Readonly<Record<string, ServerConfig>> = {
  'fewer databases': { databases: '2' },
  'SELECT renamed': { 'rename-command': 'SELECT ""' },
  'a user without SELECT': { user: ['default on nopass ~* &* +@all -select'] },
};

/** A client that is in the database already when its commands begin to be written to both servers. */
async function clientIn(rig: Rig, db: number, stage: Stage): Promise<Wire> {
  const wire = await rig.wire();
  assert.equal(await wire.ask('SELECT', db), '+OK');
  await rig.shard.shard.changeStage({ workload: 'default', stage });
  return wire;
}

/** What the target holds, which has strings in database 0 alone; read without SELECT. */
async function stringsOf(rig: Rig): Promise<Record<string, string | null>> {
  const client = rig.client({ of: rig.target });
  assert.deepEqual((await client.info('keyspace')).match(/^db\d+/gm), ['db0']);
  const keys = (await client.keys('*')).sort();
  return Object.fromEntries(await Promise.all(keys.map(async (key) => [key, await client.get(key)] as const)));
}

const WRITES: Commands = [
  ['SET', 'k', 'five'],
  ['INCR', 'counter'],
  ['EVAL', "return redis.call('SET', KEYS[1], ARGV[1])", 1, 'scripted', 'five'],
  ['MULTI'],
  ['SET', 'in multi', 'five'],
  ['EXEC'],
];

for (const [how, config] of Object.entries(REFUSALS)) {
  test(`what is written in a database that the target refuses (${how}) reaches no other, and is suspect`, async () => {
    await withRig({ default: { stage: 'off' }, servers: { target: { config } } }, async (rig) => {
      const wire = await clientIn(rig, 5, 'dualwrite');
      const zero = await rig.wire();
      await zero.pipeline([
        ['SET', 'k', 'zero'],
        ['SET', 'counter', 100],
      ]);
      await wire.pipeline(WRITES);
      await zero.ask('SET', 'later', 'zero');
      await until(async () => (await rig.client({ of: rig.target }).get('later')) === 'zero');
      assert.deepEqual(await stringsOf(rig), { counter: '100', k: 'zero', later: 'zero' });
      const { suspects, target, mirror } = rig.shard.snapshot();
      assert.equal(suspects.byReason['database-refused'], 4, JSON.stringify(suspects));
      assert.deepEqual(
        target.refusedDatabases.map(({ db }) => db),
        [5],
      );
      assert.match(target.refusedDatabases[0].why, /index|SELECT|select/);
      const { text } = attentionOf(rig.shard.snapshot()).find((each) => /refuses database/.test(each.text))!;
      assert.match(text, /^The target refuses database 5 \(.+\)\. Keys that are written there are suspect/);
      assert.equal(mirror.connected, true);
    });
  });
}

test('from dualwrite on, the proxy refuses by name a database that the other server does not have', async () => {
  const servers = { source: { config: { databases: '64' } }, target: { config: { databases: '16' } } };
  await withRig({ default: { stage: 'off' }, servers }, async (rig) => {
    const wire = await rig.wire();
    const commands: Commands = [
      ['SET', 'k', 1],
      ['COPY', 'k', 'l', 'DB', 20],
      ['MOVE', 'l', 20],
      ['SWAPDB', 30, 20],
      ['SELECT', 20],
      ['SELECT', 0],
    ];
    assert.deepEqual(await wire.pipeline(commands), ['+OK', ':1', ':0', '+OK', '+OK', '+OK']);
    await rig.client({ of: rig.source }).flushall();
    await rig.shard.shard.changeStage({ workload: 'default', stage: 'dualwrite' });
    const refused = (name: string): string =>
      `-ERR shadow-proxy: ${name} is refused: the target lets the proxy into databases 0 to 15 only (ERR DB index is out of range), and writes go to both servers`;
    assert.deepEqual(await wire.pipeline([...commands, ['SELECT', 15], ['SELECT', 64], ['PING']]), [
      '+OK',
      refused('COPY'),
      refused('MOVE'),
      refused('SWAPDB'),
      refused('SELECT'),
      '+OK',
      '+OK',
      '-ERR DB index is out of range',
      '+PONG',
    ]);
    for (const [name, command] of [
      ['SELECT', ['SELECT', 20]],
      ['MOVE', ['MOVE', 'k', 20]],
      ['COPY', ['COPY', 'k', 'l', 'DB', 20]],
    ] as const)
      assert.deepEqual(await wire.pipeline([['MULTI'], ['SET', 'in multi', 1], command, ['EXEC']]), [
        '+OK',
        '+QUEUED',
        refused(name),
        '-EXECABORT Transaction discarded because of previous errors.',
      ]);
    await rig.assertEqual();
    assert.deepEqual(rig.shard.snapshot().target.refusedDatabases, []);
  });
});

test('the gate servers names a user of the proxy who may not SELECT', async () => {
  const servers = { target: { config: REFUSALS['a user without SELECT'] } };
  await withRig({ default: { stage: 'off' }, servers }, async ({ shard }) => {
    const { gates } = await shard.shard.promote({ workload: 'default', dryRun: true });
    const { answer, evidence } = gates.find(({ name }) => name === 'servers')!;
    assert.equal(answer, 'no');
    assert.match(
      evidence,
      /the target lets the proxy's user into database 0 only \(NOPERM .*allow SELECT to this user/,
    );
  });
});

test('in live, the proxy refuses a database that the source does not have', async () => {
  const servers = { source: { config: { databases: '4' } } };
  await withRig({ default: { stage: 'live' }, servers }, async (rig) => {
    await until(() => rig.shard.snapshot().mirror.connected);
    const wire = await rig.wire();
    assert.match(await wire.ask('SELECT', 5), /^-ERR shadow-proxy: SELECT is refused: the source lets the proxy into/);
    assert.equal(await wire.ask('SELECT', 3), '+OK');
    assert.equal(await wire.ask('SET', 'k', 3), '+OK');
    await rig.assertEqual();
  });
});

test('a backfill and a verification end at a database that the target refuses, and name it', async () => {
  const servers = { source: { config: { databases: '64' } } };
  await withRig({ default: { stage: 'off' }, servers }, async (rig) => {
    await rig.shard.shard.changeStage({ workload: 'default', stage: 'dualwrite' });
    for (const db of [0, 1, 20, 21]) await rig.client({ of: rig.source, db }).mset('k', `in ${db}`, 'l', `in ${db}`);
    await rig.client({ of: rig.source, db: 20 }).rpush('large', ...Array.from({ length: 20_000 }, (_, i) => i));
    for (const request of [
      { kind: 'backfill', repair: false },
      { kind: 'verify', repair: true },
    ] as const) {
      ask(rig, request);
      await ended(rig);
      const { state, failed, failures } = job(rig);
      assert.deepEqual([state, failed], ['done', 5], JSON.stringify(job(rig)));
      assert.match(failures[0].why, /^the target refuses database 2[01]: ERR DB index is out of range$/);
    }
    assert.equal(await rig.client({ of: rig.target, db: 1 }).get('k'), 'in 1');
    assert.equal(await rig.client({ of: rig.target }).get('k'), 'in 0');
    assert.equal(await rig.client({ of: rig.target }).dbsize(), 2);
    const { workloads, target } = rig.shard.snapshot();
    assert.equal(workloads[0].clean, false);
    assert.deepEqual(target.refusedDatabases.map(({ db }) => db).sort(), [20, 21]);
  });
});

test('a verification ends at a database that the authority does not have, and names it', async () => {
  const servers = { target: { config: { databases: '64' } } };
  await withRig({ default: { stage: 'dualwrite' }, servers }, async (rig) => {
    await rig.client({ of: rig.target, db: 20 }).set('k', 'of nobody');
    ask(rig, { kind: 'verify', repair: true, deletes: 1 });
    await ended(rig);
    const { state, failed, failures } = job(rig);
    assert.deepEqual([state, failed], ['done', 1], JSON.stringify(job(rig)));
    assert.match(failures[0].why, /^the source refuses database 20: ERR DB index is out of range$/);
    assert.equal(await rig.client({ of: rig.target, db: 20 }).get('k'), 'of nobody');
  });
});

test('a database that the target lets the proxy into again is written to, and repaired', async () => {
  const user = ['kit on >pw ~* &* +@all -select', 'default on nopass ~* &* +@all'];
  await withServers(
    async ({ source, target }) => {
      const url = target.url.replace('://', '://kit:pw@');
      const asKit = Object.create(target, { url: { value: url } }) as typeof target;
      const rig = await startOn({ default: { stage: 'off' }, source, target: asKit });
      try {
        const wire = await clientIn(rig, 5, 'dualwrite');
        await wire.ask('SET', 'k', 'five');
        await until(() => rig.shard.snapshot().suspects.byReason['database-refused'] === 1);
        await rig.client({ of: target }).call('ACL', 'SETUSER', 'kit', '+select');
        await rig.shard.settled();
        assert.equal(await rig.client({ of: target, db: 5 }).get('k'), 'five');
        assert.deepEqual(rig.shard.snapshot().target.refusedDatabases, []);
        // The connection that stands in the database stays there.
        await rig.client({ of: target }).call('ACL', 'SETUSER', 'kit', '-select');
        await wire.ask('SET', 'k', 'again');
        await rig.assertEqual();
        assert.equal(await rig.client({ of: target, db: 5 }).get('k'), 'again');
      } finally {
        await rig.stop();
      }
    },
    { target: { config: { user } } },
  );
});

for (const [name, command] of [
  ['swapdb', ['SWAPDB', 0, 1]],
  ['flushall', ['FLUSHALL']],
  ['flushdb', ['FLUSHDB']],
  ['move', ['MOVE', 'k', 1]],
  ['copy', ['COPY', 'k', 'l', 'DB', 1]],
] as const)
  test(`${name.toUpperCase()} that the mirror refuses leaves suspects until both servers are equal`, async () => {
    const servers = { target: { config: { user: [`default on nopass ~* &* +@all -${name}`] } } };
    await withRig({ default: { stage: 'dualwrite' }, servers }, async (rig) => {
      const wire = await rig.wire();
      await wire.pipeline([
        ['SET', 'k', 0],
        ['SET', 'other', 0],
        ['SELECT', 1],
        ['SET', 'l', 1],
        ['SELECT', 0],
      ]);
      await rig.shard.settled();
      assert.doesNotMatch(await wire.ask(...command), /^-/);
      await until(() => rig.shard.snapshot().workloads.every(({ suspect, clean }) => suspect === null && clean));
      await rig.shard.settled();
      assert.deepEqual(await differences(rig.source, rig.target), []);
    });
  });
