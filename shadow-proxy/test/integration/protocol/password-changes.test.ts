/**
 * Passwords and users of the servers change while clients are connected: each client keeps what Redis would let it
 * keep.
 *
 * Needs real servers: which connections a server keeps when ACL SETUSER or CONFIG SET changes a password.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import { withServers, type Pair } from '../../support/servers.js';
import { startTestShard, until, type TestShard, type TestShardOptions } from '../../support/shard.js';
import { Wire } from '../../support/wire.js';

const KIT = 'kit on >kitpw ~* &* +@all';
const V = '$1\r\nv';
const NOAUTH = '-NOAUTH Authentication required.';

interface Case extends Pair {
  readonly shard: TestShard;
  /** A new client of the proxy. */
  connect(): Promise<Wire>;
  /** Changes something on a server directly, bypassing the proxy. */
  admin(server: 'source' | 'target', ...command: string[]): Promise<string>;
}

async function withCase(options: Partial<TestShardOptions>, body: (test: Case) => Promise<void>): Promise<void> {
  const config = { user: [KIT, 'alice on >pw ~* &* +@all'] };
  await withServers(
    async (servers) => {
      const url = (port: number): string => `redis://kit:kitpw@127.0.0.1:${port}`;
      const shard = await startTestShard({
        source: url(servers.source.port),
        target: url(servers.target.port),
        ...options,
      });
      const open: Wire[] = [];
      const connect = async (port = shard.port): Promise<Wire> => {
        const wire = await Wire.open({ port });
        open.push(wire);
        return wire;
      };
      const admins = { source: await connect(servers.source.port), target: await connect(servers.target.port) };
      for (const each of Object.values(admins)) await each.ask('AUTH', 'kit', 'kitpw');
      try {
        await body({
          ...servers,
          shard,
          connect: () => connect(),
          admin: (server, ...command) => admins[server].ask(...command),
        });
      } finally {
        for (const each of open) each.destroy();
        await shard.stop();
      }
    },
    { source: { config }, target: { config } },
  );
}

const CLOSE = [
  ['CONFIG', 'SET', 'requirepass', 'secret'],
  ['ACL', 'SETUSER', 'default', 'off'],
  ['ACL', 'SETUSER', 'default', 'resetpass'],
];

for (const [i, command] of CLOSE.entries()) {
  test(`after ${command.join(' ')}, a new client must log in at once, and one that was there goes on`, async () => {
    await withCase({}, async ({ connect, admin }) => {
      const before = await connect();
      assert.equal(await before.ask('SET', 'k', 'v'), '+OK');
      const third = await connect();
      assert.equal((await third.ask('HELLO', '3'))[0], '%');
      assert.equal(await third.ask('GET', 'k'), V);
      assert.equal(await admin('source', ...command), '+OK');
      for (const asked of [
        ['GET', 'k'],
        ['SET', 'k', 'x'],
        ['MULTI'],
        ['SELECT', '1'],
        ['CLIENT', 'ID'],
        ['BLPOP', 'q', '0.1'],
        ['SUBSCRIBE', 'c'],
        ['WATCH', 'k'],
        ['EVAL', 'return 1', '0'],
        ['FLUSHALL'],
        ['PUBLISH', 'c', 'x'],
        ['MGET', 'k', 'j'],
      ]) {
        const after = await connect();
        assert.equal(await after.ask(...asked), NOAUTH, asked.join(' '));
        assert.equal(await after.ask('GET', 'k'), NOAUTH, asked.join(' '));
      }
      assert.equal(await before.ask('GET', 'k'), V);
      assert.equal(await third.ask('GET', 'k'), V);
      // As if it had just connected.
      assert.equal(await before.ask('RESET'), '+RESET');
      assert.equal(await before.ask('GET', 'k'), NOAUTH);
      const login = await connect();
      assert.equal(await login.ask('AUTH', 'alice', 'pw'), '+OK');
      assert.equal(await login.ask('GET', 'k'), V);
      if (i === 0) assert.equal(await before.ask('AUTH', 'secret'), '+OK');
    });
  });
}

test('a password that is set and removed again: clients without a login may do everything again, at most a second later', async () => {
  await withCase({}, async ({ connect, admin }) => {
    await admin('source', 'CONFIG', 'SET', 'requirepass', 'secret');
    const waiting = await connect();
    assert.equal(await waiting.ask('MULTI'), NOAUTH);
    const login = await connect();
    assert.equal(await login.ask('AUTH', 'secret'), '+OK');
    assert.equal(await login.ask('SET', 'k', 'v'), '+OK');
    await admin('source', 'CONFIG', 'SET', 'requirepass', '');
    await until(async () => (await waiting.ask('GET', 'k')) !== NOAUTH, 5_000);
    const many = Array.from({ length: 30 }, (_, i) => `m${i}`);
    for (const client of [waiting, await connect()]) {
      assert.equal(await client.ask('MSET', ...many), '+OK');
      assert.deepEqual(await client.pipeline([['MULTI'], ['SET', 'k', 'x'.repeat(20_000)], ['EXEC']]), [
        '+OK',
        '+QUEUED',
        '*1\r\n+OK',
      ]);
      assert.deepEqual(await client.pipeline([['MULTI'], ['SET', 'k', 'y'], ['DISCARD']]), ['+OK', '+QUEUED', '+OK']);
      assert.equal(await client.ask('EXEC'), '-ERR EXEC without MULTI');
    }
    // Redis: who came while a password was needed has never been let in.
    const between = await connect();
    await between.ask('GET', 'k');
    await admin('source', 'CONFIG', 'SET', 'requirepass', 'again');
    await until(async () => (await waiting.ask('GET', 'm0')) === NOAUTH, 5_000);
    assert.equal(await between.ask('GET', 'm0'), '$2\r\nm1');
    assert.equal(await login.ask('GET', 'm0'), '$2\r\nm1');
  });
});

test('a client that was never let in, and subscribed while no password was needed, is disconnected when one is again', async () => {
  await withCase({}, async ({ connect, admin }) => {
    const early = await connect();
    await early.ask('SUBSCRIBE', 'c');
    await admin('source', 'CONFIG', 'SET', 'requirepass', 'secret');
    const late = await connect();
    assert.equal(await late.ask('SUBSCRIBE', 'c'), NOAUTH);
    await admin('source', 'CONFIG', 'SET', 'requirepass', '');
    await until(async () => (await late.ask('SUBSCRIBE', 'c')) !== NOAUTH, 5_000);
    await admin('source', 'CONFIG', 'SET', 'requirepass', 'again');
    assert.equal(await Promise.race([late.closed.then(() => 'closed'), sleep(5_000, 'open')]), 'closed');
    assert.match(await early.ask('SUBSCRIBE', 'd'), /d\r\n:2$/);
  });
});

test('a user that is changed: who is logged in goes on, who comes needs the new password; one that is deleted is disconnected', async () => {
  await withCase({}, async ({ connect, admin }) => {
    const login = async (password: string): Promise<[string, Wire]> => {
      const client = await connect();
      return [await client.ask('AUTH', 'alice', password), client];
    };
    const [, alice] = await login('pw');
    assert.equal(await alice.ask('SET', 'k', 'v'), '+OK');
    await admin('source', 'ACL', 'SETUSER', 'alice', 'resetpass', '>new');
    assert.equal(await alice.ask('GET', 'k'), V);
    assert.match((await login('pw'))[0], /^-WRONGPASS/);
    const [welcome, newer] = await login('new');
    assert.equal(welcome, '+OK');
    assert.equal(await newer.ask('GET', 'k'), V);
    await admin('source', 'ACL', 'SETUSER', 'alice', 'off');
    assert.equal(await newer.ask('GET', 'k'), V);
    assert.match((await login('new'))[0], /^-WRONGPASS/);
    // What the user may do is looked at for each command.
    await admin('source', 'ACL', 'SETUSER', 'alice', '-set');
    assert.match(await alice.ask('SET', 'k', 'x'), /^-NOPERM/);
    await admin('source', 'ACL', 'DELUSER', 'alice');
    for (const client of [alice, newer]) {
      client.send('GET', 'k');
      await client.closed;
    }
  });
});

test('the target has its own users and passwords for the workloads that it answers', async () => {
  const workloads = [{ name: 'moved', keys: ['m:*'], stage: 'live' as const }];
  await withCase({ workloads }, async ({ connect, admin }) => {
    const guest = await connect();
    const alice = await connect();
    await alice.ask('AUTH', 'alice', 'pw');
    for (const client of [guest, alice]) assert.equal(await client.ask('SET', 'm:1', 'v'), '+OK');
    await admin('target', 'CONFIG', 'SET', 'requirepass', 'secret');
    await admin('target', 'ACL', 'SETUSER', 'alice', 'resetpass', '>new');
    for (const client of [guest, alice]) assert.equal(await client.ask('GET', 'm:1'), V);
    const later = await connect();
    assert.equal(await later.ask('SET', 's', 'v'), '+OK');
    assert.equal(await later.ask('GET', 'm:1'), NOAUTH);
    assert.equal(await later.ask('GET', 's'), V);
    const laterAlice = await connect();
    assert.equal(await laterAlice.ask('AUTH', 'alice', 'pw'), '+OK');
    assert.match(await laterAlice.ask('GET', 'm:1'), /^-WRONGPASS/);
    assert.equal(await laterAlice.ask('GET', 's'), V);
  });
});

test('what a client has begun when a password is set, it ends: MULTI, WATCH, a blocking command, a subscription', async () => {
  await withCase({}, async ({ connect, admin }) => {
    const [multi, watch, blocked, subscriber] = [await connect(), await connect(), await connect(), await connect()];
    await multi.pipeline([['MULTI'], ['SET', 'a', '1']]);
    await watch.pipeline([['WATCH', 'b'], ['MULTI'], ['SET', 'b', '1']]);
    blocked.send('BLPOP', 'q', '10');
    await subscriber.ask('SUBSCRIBE', 'c');
    await until(async () => (await admin('source', 'INFO', 'clients')).includes('blocked_clients:1'));
    await admin('source', 'CONFIG', 'SET', 'requirepass', 'secret');
    assert.equal(await multi.ask('EXEC'), '*1\r\n+OK');
    assert.equal(await watch.ask('EXEC'), '*1\r\n+OK');
    assert.equal(await multi.ask('RPUSH', 'q', 'job'), ':1');
    assert.match(await blocked.frame(), /job/);
    assert.equal(await multi.ask('PUBLISH', 'c', 'hello'), ':1');
    assert.match(await subscriber.frame(), /hello/);
  });
});
