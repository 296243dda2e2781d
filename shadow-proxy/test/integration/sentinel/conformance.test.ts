/**
 * The same commands to this Sentinel and to one of Redis 7.0: each answers with the same bytes, or the same fields.
 *
 * Needs real servers: the bytes of a Redis Sentinel.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Redis } from 'ioredis';
import { freePort } from '../../../src/local/port.js';
import { startRedis, startSentinel, type LocalServer } from '../../../src/local/servers.js';
import { encodeCommand } from '../../../src/resp/encode.js';
import { Sentinel } from '../../../src/sentinel/sentinel.js';
import { answers, type Line } from '../../support/dialogue.js';
import { missing } from '../../support/needs.js';
import { smallPlan, toPlan } from '../../support/plans.js';
import { until } from '../../support/shard.js';
import { Wire } from '../../support/wire.js';

const PASSWORD = 'of-Sentinels';

/** A master, and two Sentinels that know each other; and a master whose only Sentinel has a password. */
let [redis, real, other, lockedRedis, locked]: LocalServer[] = [];
let [ours, oursLocked]: Sentinel[] = [];

/** A Sentinel of this kit that knows the master at that server, and the Sentinel there. */
async function sentinelFor(server: LocalServer, sentinels: readonly LocalServer[], password: string | null) {
  const port = await freePort();
  const sentinel = { listen: `redis://127.0.0.1:${port}`, masters: [{ name: 'main', shard: 'a' }] };
  const plan = toPlan({ ...smallPlan(), sentinel });
  const made = new Sentinel({ ...plan.sentinel!, password }, plan.limits, plan.name);
  await made.open();
  const places = { service: `127.0.0.1:${server.port}`, sentinel: '' };
  made.masters.looked('a', { holder: { process: 'p', places }, isDown: false });
  made.masters.discovered(
    'a',
    sentinels.map((each) => `127.0.0.1:${each.port}`),
  );
  return made;
}

describe('a Sentinel of this kit', { skip: await missing('redis=7.0') }, () => {
  before(async () => {
    [redis, lockedRedis] = await Promise.all([startRedis(), startRedis()]);
    const main = { main: { server: redis } };
    [real, other, locked] = await Promise.all([
      startSentinel(main),
      startSentinel(main),
      startSentinel({ main: { server: lockedRedis } }, { config: { requirepass: PASSWORD } }),
    ]);
    const client = new Redis(real.port, '127.0.0.1');
    await until(async () => ((await client.call('SENTINEL', 'SENTINELS', 'main')) as unknown[]).length > 0, 20_000);
    client.disconnect();
    ours = await sentinelFor(redis, [other], null);
    oursLocked = await sentinelFor(lockedRedis, [], PASSWORD);
  });
  after(async () => {
    await Promise.all([ours, oursLocked].map((each) => each.stop()));
    await Promise.all([real, other, locked, redis, lockedRedis].map((each) => each.stop()));
  });

  const same = async (lines: readonly Line[], [kit, reference] = [ours, real] as readonly [Sentinel, LocalServer]) =>
    assert.deepEqual(
      (await answers(kit.port, lines)).map(masked),
      (await answers(reference.port, lines)).map(masked),
      lines.map((line) => (Buffer.isBuffer(line) ? line.toString() : line.join(' '))).join(' ⏎ '),
    );

  for (const protocol of ['2', '3'])
    test(`answers for masters as Redis's does, in RESP${protocol}`, async () => {
      for (const line of MASTERS) await same([['HELLO', protocol], line]);
    });

  test('answers for the connection as Redis does', async () => {
    for (const line of CONNECTION) await same([line]);
    await same([
      ['CLIENT', 'SETNAME', 'app'],
      ['CLIENT', 'GETNAME'],
      ['CLIENT', 'SETNAME', ''],
      ['CLIENT', 'GETNAME'],
    ]);
    await same([
      ['HELLO', '3', 'SETNAME', 'app'],
      ['CLIENT', 'GETNAME'],
      ['HELLO', '2'],
      ['CLIENT', 'GETNAME'],
    ]);
    await same([['HELLO', '3'], ['HELLO'], ['HELLO', '4'], ['CLIENT', 'GETNAME']]);
  });

  test('refuses with the words of Redis what Sentinels do not know, and a wrong number of arguments', async () => {
    for (const line of REFUSED) await same([line]);
  });

  test('closes with the words of Redis where the bytes are no command', async () => {
    for (const bytes of ['*1\r\n$1x\r\n', '*x\r\n', '*1\r\n:1\r\n', '"a\r\n'])
      await same([Buffer.from(bytes), ['PING']]);
    await same([Buffer.from('PING\r\n'), Buffer.from('\r\nSENTINEL get-master-addr-by-name "main"\r\n')]);
  });

  for (const hello of [[], [['HELLO', '3']]])
    test(`lets clients subscribe as Redis does, in RESP${hello.length === 0 ? 2 : 3}`, async () => {
      for (const lines of SUBSCRIBING) await same([...hello, ...lines]);
      // With several channels Redis leaves them in any order.
      const lines = [...hello, ['SUBSCRIBE', 'a', 'a'], ['PSUBSCRIBE', '*'], ['UNSUBSCRIBE'], ['PUNSUBSCRIBE']];
      const both = await Promise.all([ours.port, real.port].map((port) => frames(port, lines, hello.length + 5)));
      assert.deepEqual(both[0], both[1]);
    });

  test('wants the password as Redis does', async () => {
    const pair = [oursLocked, locked] as const;
    for (const lines of [
      ...[...MASTERS, ...CONNECTION, ...REFUSED].map((line) => [line]),
      [['AUTH', 'wrong'], ['PING']],
      [
        ['AUTH', PASSWORD],
        ['SENTINEL', 'get-master-addr-by-name', 'main'],
      ],
      [['AUTH', 'default', PASSWORD], ['PING']],
      [['AUTH', 'other', PASSWORD], ['PING']],
      [['HELLO', '3', 'AUTH', 'default', 'wrong'], ['PING']],
      [
        ['HELLO', '3', 'AUTH', 'default', PASSWORD],
        ['SENTINEL', 'get-master-addr-by-name', 'nobody'],
      ],
      [['HELLO', '3'], ['PING']],
      [['AUTH', PASSWORD], ['AUTH', 'wrong'], ['PING']],
    ])
      await same(lines, pair);
  });

  test('shows the fields of Redis for masters, for other Sentinels and in INFO', async () => {
    for (const hello of [[], [['HELLO', '3']]])
      for (const line of [
        ['SENTINEL', 'MASTER', 'main'],
        ['SENTINEL', 'MASTERS'],
        ['SENTINEL', 'SENTINELS', 'main'],
      ]) {
        const [kit, reference] = await Promise.all([ours, real].map(({ port }) => answers(port, [...hello, line])));
        assert.deepEqual(shapeOf(kit.at(-1)!), shapeOf(reference.at(-1)!), line.join(' '));
      }
    for (const line of [['INFO'], ['INFO', 'SENTINEL'], ['INFO', 'server', 'sentinel'], ['INFO', 'all']]) {
      const [kit, reference] = await Promise.all([ours, real].map(({ port }) => answers(port, [line])));
      const known = namesIn(reference[0]);
      const named = namesIn(kit[0]);
      assert.ok(named.length > 6);
      assert.deepEqual(
        named,
        known.filter((name) => named.includes(name)),
        `${line.join(' ')} has fields of Redis, in its order`,
      );
    }
  });
});

const MASTERS: readonly Line[] = [
  ['SENTINEL', 'get-master-addr-by-name', 'main'],
  ['sentinel', 'GET-MASTER-ADDR-BY-NAME', 'nobody'],
  ['SENTINEL', 'MASTER', 'nobody'],
  ['SENTINEL', 'REPLICAS', 'main'],
  ['SENTINEL', 'SLAVES', 'main'],
  ['SENTINEL', 'SLAVES', 'nobody'],
  ['SENTINEL', 'SENTINELS', 'nobody'],
  ['SENTINEL', 'CKQUORUM', 'nobody'],
  ['SENTINEL', 'MYID'],
  ['SENTINEL', 'IS-MASTER-DOWN-BY-ADDR', '127.0.0.1', '1', '0', '*'],
  ['SENTINEL', 'IS-MASTER-DOWN-BY-ADDR', '127.0.0.1', 'x', '0', '*'],
  ['SENTINEL', 'IS-MASTER-DOWN-BY-ADDR', '127.0.0.1', '1', 'x', '*'],
  ['SENTINEL', 'FAILOVER', 'main'],
  ['SENTINEL', 'FAILOVER', 'nobody'],
  ['SENTINEL', 'REMOVE', 'nobody'],
  ['SENTINEL', 'SET', 'nobody', 'quorum', '1'],
  ['SENTINEL', 'RESET', 'nobody*'],
  ['SENTINEL', 'PENDING-SCRIPTS'],
  ['SENTINEL', 'FLUSHCONFIG'],
  ['ROLE'],
  ['PUBLISH', 'a', 'b'],
  ['INFO', 'nothing'],
];
const CONNECTION: readonly Line[] = [
  ['PING'],
  ['PING', 'a'],
  ['HELLO'],
  ['HELLO', '2'],
  ['HELLO', '3'],
  ['HELLO', '4'],
  ['HELLO', 'x'],
  ['HELLO', '3', 'OTHER'],
  ['HELLO', '3', 'AUTH', 'a', 'b'],
  ['HELLO', '3', 'AUTH', 'a'],
  ['HELLO', '3', 'SETNAME', 'a b'],
  ['AUTH', 'a'],
  ['AUTH', 'a', 'b'],
  ['AUTH', 'default', 'b'],
  ['AUTH', 'a', 'b', 'c'],
  ['CLIENT', 'ID'],
  ['CLIENT', 'GETNAME'],
  ['CLIENT', 'SETNAME', 'a b'],
  ['CLIENT', 'SETINFO', 'LIB-NAME', 'a'],
  ['CLIENT', 'NO-EVICT', 'on'],
  ['CLIENT', 'NO-EVICT', 'x'],
];
const REFUSED: readonly Line[] = [
  ['GET', 'a'],
  ['ECHO', 'a'],
  ['SET', 'a', 'b'],
  ['MULTI'],
  ['SELECT', '0'],
  ['QUIT'],
  ['RESET'],
  ['CONFIG', 'GET', 'port'],
  ['SSUBSCRIBE', 'a'],
  ['PUBSUB', 'CHANNELS'],
  ['GET', 'x'.repeat(200), 'b'],
  ['GET', ...Array.from({ length: 100 }, () => 'a')],
  ['constructor'],
  ['SENTINEL', 'constructor'],
  ['SENTINEL', 'nothing'],
  ['CLIENT', 'nothing'],
  ['SENTINEL'],
  ['CLIENT'],
  ['PING', 'a', 'b'],
  ['ROLE', 'a'],
  ['AUTH'],
  ['SUBSCRIBE'],
  ['PSUBSCRIBE'],
  ['PUBLISH', 'a'],
  ['CLIENT', 'ID', 'a'],
  ['CLIENT', 'SETNAME'],
  ...['MASTER', 'REPLICAS', 'SLAVES', 'SENTINELS', 'CKQUORUM', 'GET-MASTER-ADDR-BY-NAME', 'FAILOVER', 'RESET'].flatMap(
    (word) => [
      ['SENTINEL', word],
      ['SENTINEL', word, 'main', 'x'],
    ],
  ),
  ['SENTINEL', 'MASTERS', 'a'],
  ['SENTINEL', 'MYID', 'a'],
  ['SENTINEL', 'FLUSHCONFIG', 'a'],
  ['SENTINEL', 'MONITOR', 'a'],
  ['SENTINEL', 'REMOVE'],
  ['SENTINEL', 'SET', 'main', 'a'],
  ['SENTINEL', 'INFO-CACHE'],
  ['SENTINEL', 'SIMULATE-FAILURE'],
  ['SENTINEL', 'IS-MASTER-DOWN-BY-ADDR', '127.0.0.1', '1', '0'],
];
const SUBSCRIBING: readonly (readonly Line[])[] = [
  [['SUBSCRIBE', 'a'], ['PING'], ['PING', 'x'], ['CLIENT', 'ID'], ['SENTINEL', 'MYID'], ['FOO'], ['HELLO', '2']],
  [['SUBSCRIBE', 'a'], ['SUBSCRIBE'], ['ROLE'], ['UNSUBSCRIBE', 'a'], ['ROLE'], ['PING']],
  [['PSUBSCRIBE', '+*'], ['PUNSUBSCRIBE', 'none'], ['PUNSUBSCRIBE', '+*'], ['PUNSUBSCRIBE'], ['UNSUBSCRIBE', 'x']],
];

/** Hides what belongs to the process, or to the connection: their IDs. No other number has two digits. */
const masked = (frame: string): string =>
  frame.replace(/\$40\r\n[0-9a-f]{40}/, '$40\r\n(id)').replace(/^:\d\d+$/, ':(id)');

/** The first frames that come when all lines are sent at once. */
async function frames(port: number, lines: readonly Line[], count: number): Promise<string[]> {
  const wire = await Wire.open({ port });
  wire.sendBytes(Buffer.concat(lines.map((line) => (Buffer.isBuffer(line) ? line : encodeCommand(line)))));
  const got: string[] = [];
  while (got.length < count) got.push(await wire.frame());
  wire.destroy();
  return got.map((frame) => frame.replace(/(\$2\r\nid\r\n):\d+/, '$1:(id)'));
}

/** A reply with `x` instead of numbers and IDs, and without what Redis's Sentinels know of each other alone. */
const shapeOf = (frame: string): string =>
  frame
    .replace(/\$\d+\r\n([0-9a-f]{40}|\d+)(?=\r\n|$)/g, '$$\r\nx')
    .replace(/(\r\nvoted-leader\r\n)\$\d+\r\n\S+/g, '$1?');

const namesIn = (info: string): string[] => [...info.matchAll(/^(# \w+|\w+)(?=:|\r?$)/gm)].map(([, name]) => name!);
