/**
 * One order over several lanes: users, protocols and databases at once on the same keys.
 *
 * Needs real servers: users in both protocols and databases: lanes with logins of their own at KeyDB.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import type { Argument } from '../../../src/resp/encode.js';
import { redisSince } from '../../support/servers.js';
import { withRig, type Rig } from '../../support/rig.js';
import type { Wire } from '../../support/wire.js';
import { withScene } from './scene.js';

const USER = 'app on >app-password ~* &* +@all';
const SERVERS = { source: { config: { user: USER } }, target: { config: { user: USER } } };
const KINDS = ['default in RESP2', 'default in RESP3', 'app in RESP2', 'app in RESP3'] as const;

async function open({ wire }: Rig, kind: (typeof KINDS)[number]): Promise<Wire> {
  const client = await wire();
  const login = kind.startsWith('app') ? ['AUTH', 'app', 'app-password'] : [];
  assert.match(await client.ask('HELLO', kind.at(-1)!, ...login), /^[*%]/);
  return client;
}

const random = (n: number): number => Math.floor(Math.random() * n);
const pick = <T>(items: readonly T[]): T => items[random(items.length)];

/** Commands whose order shows in the values that they leave. */
const command = (who: number): Argument[] =>
  pick<() => Argument[]>([
    () => ['INCR', 'n'],
    () => ['APPEND', `a:${random(3)}`, `${who},`],
    () => ['LPUSH', `l:${random(3)}`, `${who}:${random(1000)}`],
    () => ['LPOP', `l:${random(3)}`],
    () => ['SET', `a:${random(3)}`, who],
    () => ['GETSET', 'n', random(1000)],
    () => ['LMOVE', `l:${random(3)}`, `l:${random(3)}`, 'LEFT', 'RIGHT'],
    () => ['MSET', 'a:0', who, 'a:1', who],
    () => ['XADD', 'x', 'MAXLEN', '~', 200, '*', 'who', who],
    () => [
      'EVAL',
      "return redis.call('APPEND', KEYS[1], redis.call('STRLEN', KEYS[2]))",
      2,
      `a:${random(3)}`,
      `a:${random(3)}`,
    ],
    () => ['INCRBYFLOAT', 'f', '0.1'],
    () => ['SPOP', 'set'],
    () => ['SADD', 'set', random(100)],
    () => ['GET', `a:${random(3)}`],
    () => ['LRANGE', `l:${random(3)}`, 0, -1],
  ])();

async function hammer(client: Wire, who: number, until: number): Promise<number> {
  let sent = 0;
  for (; performance.now() < until; sent += 30) {
    const commands = Array.from({ length: 30 }, () => command(who));
    const replies = await (random(4) === 0
      ? client.pipeline([['MULTI'], ...commands, ['EXEC']])
      : client.pipeline(commands));
    const failed = replies.find((reply) => /^-(?!WRONGTYPE|ERR value is not)/.test(reply));
    assert.equal(failed, undefined);
  }
  return sent;
}

test('two users, in both protocols, on the same keys at once', async () => {
  await withRig({ servers: SERVERS }, async (rig) => {
    const clients = await Promise.all([...KINDS, ...KINDS].map((kind) => open(rig, kind)));
    // Until it is known what a user may do, its scripts are copied.
    for (const client of clients) await client.ask('EVAL', 'return 1', 1, 'k');
    const until = performance.now() + 2500;
    const sent = await Promise.all(clients.map((client, i) => hammer(client, i, until)));
    assert.ok(Math.min(...sent) > 20, `one of the clients was starved: ${sent.join(' ')}`);
    await rig.assertEqual();
    // Since 7.2 a script with numbers is not replayed on KeyDB, but its keys are copied.
    if (!(await redisSince(7, 2))) assert.equal(rig.shard.snapshot().inconclusive.suspect ?? 0, 0);
  });
});

test('lanes come and go while others work on the same keys', async () => {
  await withRig({ servers: SERVERS }, async (rig) => {
    const until = performance.now() + 1500;
    const steady = hammer(await open(rig, 'default in RESP2'), 0, until);
    let lanes = 0;
    for (; performance.now() < until; lanes++) {
      const client = await open(rig, pick(KINDS));
      await hammer(client, lanes, performance.now() + random(30));
      client.destroy();
      // The lanes of the user are ended by the server, as an administrator would.
      if (lanes % 5 === 0) await rig.client({ of: rig.source }).client('KILL', 'USER', 'app');
    }
    assert.ok(lanes > 2 && (await steady) > 50);
    await rig.assertEqual();
  });
});

test('each client in a database of its own', async () => {
  await withRig({ servers: SERVERS }, async (rig) => {
    const clients = await Promise.all(Array.from({ length: 8 }, (_, i) => open(rig, KINDS[i % 4])));
    for (const [i, client] of clients.entries()) assert.equal(await client.ask('SELECT', i), '+OK');
    const until = performance.now() + 1200;
    await Promise.all(clients.map((client, i) => hammer(client, i, until)));
    // And all of them through all databases.
    await Promise.all(
      clients.map(async (client, i) => {
        for (let n = 0; n < 40; n++) {
          await client.ask('SELECT', random(8));
          await hammer(client, i, performance.now() + 1);
        }
      }),
    );
    await rig.assertEqual();
  });
});

test('a client that goes from lane to lane sees its own writes', async () => {
  await withRig({ servers: SERVERS }, async (rig) => {
    const client = await open(rig, 'default in RESP2');
    for (let i = 0; i < 60; i++) {
      const hello: Argument[] = [
        'HELLO',
        2 + (i % 2),
        ...(i % 3 ? ['AUTH', 'app', 'app-password'] : ['AUTH', 'app', 'app-password', 'SETNAME', `c${i}`]),
      ];
      const replies = await client.pipeline([
        ['SET', 'own', i],
        hello,
        ['GET', 'own'],
        ['APPEND', 'own', 'x'],
        ['SELECT', i % 2],
        ['SELECT', 0],
        ['GET', 'own'],
      ]);
      assert.equal(replies[2].split('\r\n')[1], String(i));
      assert.equal(replies[6].split('\r\n')[1], `${i}x`);
    }
    await rig.assertEqual();
  });
});

test('a client whose private lane is lost before the client gets it does not wait forever: its WATCH is broken', async () => {
  await withScene({}, async (scene) => {
    const [slow, client] = [await scene.wire(), await scene.wire()];
    await slow.pipeline([
      ['SELECT', 1],
      ['GET', 'k'],
    ]);
    // Leaves a private lane of database 0 for the next client.
    await client.ask('SET', 'k', 1);
    const before = new Set(scene.toSource.links);
    await client.pipeline([['WATCH', 'k'], ['UNWATCH']]);
    const [link, ...others] = scene.toSource.links.filter((each) => !before.has(each));
    assert.equal(others.length, 0);
    // Lanes are given in the order in which they were asked for, and the first one has to be opened.
    scene.toSource.delayMs = 150;
    slow.send('WATCH', 'k');
    // Shorter than a lane takes to open: nothing shows that one was asked for.
    await sleep(50);
    client.send('WATCH', 'k');
    // As before: both wait now.
    await sleep(50);
    link.cut();
    assert.equal(await Promise.race([client.frame(), sleep(5_000, 'no reply')]), '+OK');
    scene.toSource.delayMs = 0;
    assert.equal(await slow.frame(), '+OK');
    assert.deepEqual(await client.pipeline([['MULTI'], ['INCR', 'k'], ['EXEC'], ['GET', 'k']]), [
      '+OK',
      '+QUEUED',
      '*-1',
      '$1\r\n1',
    ]);
    await scene.assertEqual();
  });
});
