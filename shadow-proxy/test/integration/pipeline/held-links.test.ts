/**
 * Orderings between connections: one link to a server is held, and what depends on its answers must wait.
 *
 * Not simulated yet: each order by name, on a link that a test holds; runs have such orders by chance.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Link } from '../../../src/local/relay.js';
import type { KeyLocks } from '../../../src/pipeline/key-locks.js';
import type { Argument } from '../../../src/resp/encode.js';
import { changeStage, partsOf, until as holds } from '../../support/shard.js';
import { tap, tapOf, Tap } from '../../support/taps.js';
import type { Wire } from '../../support/wire.js';
import { withScene, type Scene, type SceneOptions } from '../rules/scene.js';

const until = (condition: () => boolean | Promise<boolean>): Promise<void> => holds(condition, 10_000);

/** Clients on two lanes to the source, and the links that carry them and the mirror's effects. */
interface Stand {
  readonly scene: Scene;
  readonly two: Wire;
  readonly three: Wire;
  /** To the source, of RESP2 and of RESP3. */
  readonly lane2: Tap;
  readonly lane3: Tap;
  readonly mirror: Tap;
  /** The order of keys in database 0. */
  readonly locks: KeyLocks;
  /** The proxy has had every chance to send what it may: whatever it was about to do is done. */
  chance(): Promise<void>;
}

async function withStand(body: (stand: Stand) => Promise<void>, options: SceneOptions = {}): Promise<void> {
  // A link that is held is not to be taken for one that went silent.
  const limits = { silentMs: 60_000, ...options.limits };
  await withScene({ ...options, limits }, async (scene) => {
    const [two, three] = [await scene.wire(), await scene.wire()];
    await three.ask('HELLO', 3);
    await Promise.all([two, three].map((wire) => wire.ask('GET', 'first')));
    await scene.shard.settled();
    let lane2!: Tap;
    const mirror = await tapOf(scene.toTarget, 'SET mark 2', async () => {
      lane2 = await tapOf(scene.toSource, 'SET mark 2', () => two.ask('SET', 'mark', 2));
      await scene.shard.settled();
    });
    const lane3 = await tapOf(scene.toSource, 'SET mark 3', () => three.ask('SET', 'mark', 3));
    assert.notEqual(lane2.link, lane3.link);
    await scene.shard.settled();
    const server = scene.client({ of: scene.source });
    await body({
      ...{ scene, two, three, lane2, lane3, mirror },
      locks: partsOf(scene.shard.shard).sequencer.lanes.source.locks(0),
      async chance() {
        for (let i = 0; i < 5; i++) await server.ping();
      },
    });
  });
}

const toLive = { workload: 'default', stage: 'live' } as const;

test('a flip waits for the mirror’s confirmations, and times out without them', () =>
  withStand(
    async ({ scene, two, mirror }) => {
      const { shard } = scene.shard;
      // Only the confirmations are missing: the target itself answers other connections.
      mirror.link.hold('down');
      assert.equal(await two.ask('SET', 'k', 'v'), '+OK');
      await mirror.saw('SET k v');
      await assert.rejects(shard.changeStage(toLive), { code: 'deadline' });
      assert.deepEqual([scene.shard.snapshot().workloads[0].stage, shard.snapshot().flips], ['shadow', 0]);
      mirror.link.release();
      const { suspects } = partsOf(shard).sequencer;
      for (const change of [async () => undefined, () => changeStage(shard, toLive)]) {
        await change();
        // Whether it has ended well or not, what is suspect is copied again.
        suspects.key(0, Buffer.from('k'), 'copy');
        await scene.assertEqual();
      }
      assert.equal(await two.ask('GET', 'k'), '$1\r\nv');
    },
    { limits: { flipMs: 500 } },
  ));

test('a flip sends no command to the new authority before the effects of those before it', () =>
  withStand(async ({ scene, two, three, mirror, chance }) => {
    mirror.link.hold('up');
    assert.equal(await two.ask('SET', 'n', 41), '+OK');
    await mirror.saw('SET n 41');
    const flip = scene.shard.shard.changeStage(toLive);
    await until(() => partsOf(scene.shard.shard).router.default.position.held);
    // Held by the flip: it is the target that answers it.
    three.send('INCR', 'n');
    await chance();
    assert.deepEqual(three.unread, []);
    mirror.link.release();
    await flip;
    assert.equal(await three.frame(), ':42');
    await scene.assertEqual();
  }));

test('a flip waits for the answers of every lane, though all others are idle', () =>
  withStand(
    async ({ scene, three, lane3 }) => {
      lane3.link.hold('down');
      three.send('SET', 'k', 'v');
      await lane3.saw('SET k v');
      await assert.rejects(scene.shard.shard.changeStage(toLive), { code: 'deadline' });
      lane3.link.release();
      assert.equal(await three.frame(), '+OK');
      await changeStage(scene.shard.shard, toLive);
      await scene.assertEqual();
    },
    { limits: { flipMs: 500 } },
  ));

test('a flip waits for copies that begin while its commands are held', () =>
  withStand(
    async ({ scene, two, mirror }) => {
      const { sequencer, flipper } = partsOf(scene.shard.shard);
      await two.ask('SET', 'k', 'v');
      await scene.shard.settled();
      const asks = await tapOf(scene.toTarget, 'INFO server', () => sequencer.servers.target.identify());
      mirror.link.hold('down');
      asks.link.hold('down');
      const timesOut = assert.rejects(flipper.change({ ...toLive, force: true }), { code: 'deadline' });
      await until(() => partsOf(scene.shard.shard).router.default.position.held);
      // It asks the new authority who it is: what was on its way is confirmed.
      const asked = asks.sent.length;
      await until(() => asks.sent.length > asked || asks.link.waiting('down') > 0);
      sequencer.suspects.key(0, Buffer.from('k'), 'mismatch');
      await until(() => mirror.sent.some((command) => /^SET k v/.test(command)) && mirror.link.waiting('down') > 0);
      asks.link.release();
      await timesOut;
      mirror.link.release();
      await scene.assertEqual();
    },
    { limits: { flipMs: 600 } },
  ));

test('a write waits for a write of another lane on the same key, and for no other', () =>
  withStand(async ({ scene, two, three, lane2, lane3, mirror, locks, chance }) => {
    const other = await scene.wire();
    await other.ask('HELLO', 3);
    const several = await scene.wire();
    await several.ask('HELLO', 3);
    lane2.link.hold('down');
    two.send('APPEND', 'k', '1');
    await lane2.saw('APPEND k 1');
    three.send('APPEND', 'k', '2');
    await until(() => locks.waitsSince() !== null);
    // One with several keys, for any of them; and a read of what is being written.
    several.send('MSET', 'free', 1, 'k', 3);
    await chance();
    assert.equal(await other.ask('APPEND', 'j', '2'), ':1');
    other.send('GET', 'k');
    await chance();
    assert.deepEqual(lane3.only('APPEND k 2', 'MSET free 1 k 3', 'GET k'), []);
    lane2.link.release();
    assert.deepEqual(
      [await two.frame(), await three.frame(), await several.frame(), await other.frame()],
      [':1', ':2', '+OK', '$1\r\n3'],
    );
    await scene.shard.settled();
    const inOrder = ['APPEND k 1', 'APPEND k 2', 'MSET free 1 k 3'];
    assert.deepEqual(mirror.only(...inOrder), inOrder);
    await scene.assertEqual();
  }));

test('reads of one key on two lanes do not wait for each other; a write waits for both', () =>
  withStand(async ({ scene, two, three, lane2, lane3, locks, chance }) => {
    await two.ask('SET', 'k', 1);
    lane2.link.hold('down');
    two.send('GET', 'k');
    await lane2.saw('GET k');
    assert.equal(await three.ask('GET', 'k'), '$1\r\n1');
    three.send('SET', 'k', 2);
    await until(() => locks.waitsSince() !== null);
    await chance();
    assert.equal(lane3.has('SET k 2'), false);
    lane2.link.release();
    assert.deepEqual([await two.frame(), await three.frame()], ['$1\r\n1', '+OK']);
    await scene.assertEqual();
  }));

test('a key is held until the second read of a command is answered, too', () =>
  withStand(async ({ scene, two, three, lane2, lane3, mirror, locks, chance }) => {
    await two.pipeline(Array.from({ length: 300 }, (_, i) => ['XADD', 'x', `${i + 1}-0`, 'i', i]));
    await scene.shard.settled();
    // The reply of XADD passes, that of XLEN behind it does not.
    const add = ['XADD', 'x', 'MAXLEN', '~', '100', '1000-0', 'f', 'v'] as const;
    const passed = lane2.link.holdAfter('down', '$6\r\n1000-0\r\n'.length);
    two.send(...add);
    await passed;
    assert.equal(await two.frame(), '$6\r\n1000-0');
    assert.ok(lane2.has('XLEN x'));
    three.send('XADD', 'x', '1001-0', 'f', 'v');
    await until(() => locks.waitsSince() !== null);
    await chance();
    assert.equal(lane3.has('XADD x 1001-0 f v'), false);
    assert.equal(
      mirror.sent.some((command) => command.includes('1000-0')),
      false,
    );
    lane2.link.release();
    assert.equal(await three.frame(), '$6\r\n1001-0');
    await scene.assertEqual();
  }));

test('a lane that is opened beside another is not used before what that one has in flight is answered', () =>
  withStand(async ({ scene, chance }) => {
    // The first lane to another database: nobody asks whether its keys are free, nor notes that they are not.
    const [first, second] = [await scene.wire(), await scene.wire()];
    await first.ask('SELECT', 7);
    await first.ask('GET', 'k');
    const lane = await tapOf(scene.toSource, 'SET mark 7', () => first.ask('SET', 'mark', 7));
    await second.ask('HELLO', 3);
    lane.link.hold('down');
    first.send('APPEND', 'k', 1);
    await lane.saw('APPEND k 1');
    const before = new Set(scene.toSource.links);
    // New connections get no answer until there is a tap on them.
    scene.toSource.holdLater('down');
    const appended = second.pipeline([
      ['SELECT', 7],
      ['APPEND', 'k', 2],
    ]);
    const opened = new Map<Link, Tap>();
    await until(() => {
      for (const link of scene.toSource.links) {
        if (before.has(link) || opened.has(link)) continue;
        opened.set(link, new Tap(link));
        link.release();
      }
      return [...opened.values()].some((each) => each.has('SELECT 7'));
    });
    await chance();
    assert.equal(
      [...opened.values()].some((each) => each.has('APPEND k 2')),
      false,
    );
    scene.toSource.release();
    assert.deepEqual([await first.frame(), await appended], [':1', ['+OK', ':2']]);
    await scene.assertEqual();
  }));

test('a command that runs alone waits for every lane, and all others wait for it', () =>
  withStand(async ({ scene, two, three, lane2, lane3, mirror, chance }) => {
    const { sequencer } = partsOf(scene.shard.shard);
    const late = await scene.wire();
    await late.ask('GET', 'k');
    lane3.link.hold('down');
    three.send('SET', 'k', 1);
    await lane3.saw('SET k 1');
    two.send('FLUSHDB');
    await until(() => sequencer.blocked);
    late.send('SET', 'j', 1);
    await chance();
    assert.deepEqual(lane2.only('FLUSHDB', 'SET j 1'), []);
    lane3.link.release();
    assert.deepEqual([await three.frame(), await two.frame(), await late.frame()], ['+OK', '+OK', '+OK']);
    await scene.shard.settled();
    assert.deepEqual(lane2.only('FLUSHDB', 'SET j 1'), ['FLUSHDB', 'SET j 1']);
    const inOrder = ['SET k 1', 'FLUSHDB', 'SET j 1'];
    assert.deepEqual(mirror.only(...inOrder), inOrder);
    await scene.assertEqual();
  }));

test('a client’s command for another server waits until those it has in flight are answered', () =>
  withStand(
    async ({ scene, two, lane2, chance }) => {
      await two.ask('GET', 'there:mark');
      const toTarget = await tapOf(scene.toTarget, 'SET there:mark 1', () => two.ask('SET', 'there:mark', 1));
      lane2.link.hold('down');
      const replies = two.pipeline([
        ['SET', 'k', 1],
        ['SET', 'there:k', 1],
        ['SET', 'k', 2],
      ]);
      await lane2.saw('SET k 1');
      const other = await scene.wire();
      assert.equal(await other.ask('SET', 'there:j', 1), '+OK');
      await chance();
      assert.equal(toTarget.has('SET there:k 1'), false);
      lane2.link.release();
      assert.deepEqual(await replies, ['+OK', '+OK', '+OK']);
      await scene.assertEqual();
    },
    { workloads: [{ name: 'there', keys: ['there:*'], stage: 'live' }] },
  ));

test('what a lost lane had in flight is suspect, and its keys are free', () =>
  withStand(async ({ scene, two, three, lane3, locks }) => {
    lane3.link.hold('down');
    three.send('SET', 'k', 'unanswered');
    three.send('SET', 'j', 'unanswered');
    const server = scene.client({ of: scene.source });
    await until(async () => (await server.get('j')) === 'unanswered');
    two.send('APPEND', 'k', '!');
    await until(() => locks.waitsSince() !== null);
    lane3.link.cut();
    await three.closed;
    assert.equal(await two.frame(), ':11');
    await scene.assertEqual();
  }));

/** A client that blocks on `q`, and the private link that its command is on. */
async function blocked(
  scene: Scene,
  command: readonly Argument[] = ['BLPOP', 'q', 0],
): Promise<{ readonly client: Wire; readonly link: Tap }> {
  const client = await scene.wire();
  const before = new Set(scene.toSource.links);
  client.send(...command);
  const server = scene.client({ of: scene.source });
  await until(async () => /cmd=bl(pop|move)/.test((await server.client('LIST')) as string));
  const link = tap(scene.toSource).find((each) => !before.has(each.link) && !each.link.client.destroyed);
  assert.ok(link !== undefined, 'it has a link of its own');
  const { sequencer } = partsOf(scene.shard.shard);
  await until(() => sequencer.lanes.source.locks(0).reservedSince().length === 0);
  return { client, link };
}

test('the mirror gets what a woken client took behind the push, and before what comes next on the key', () =>
  withStand(async ({ scene, two, lane2, mirror, locks, chance }) => {
    const { client, link } = await blocked(scene);
    const later = await scene.wire();
    await later.ask('GET', 'k');
    link.link.hold('down');
    assert.equal(await two.ask('RPUSH', 'q', 'a', 'b'), ':2');
    later.send('RPUSH', 'q', 'c');
    await until(() => locks.waitsSince() !== null);
    assert.equal(await two.ask('RPUSH', 'other', 'c'), ':1');
    await chance();
    assert.equal(lane2.has('RPUSH q c'), false);
    assert.deepEqual(client.unread, []);
    link.link.release();
    assert.equal(await client.frame(), '*2\r\n$1\r\nq\r\n$1\r\na');
    assert.equal(await later.frame(), ':2');
    await scene.shard.settled();
    const inOrder = ['RPUSH q a b', 'LPOP q', 'RPUSH q c'];
    assert.deepEqual(mirror.only(...inOrder), inOrder);
    assert.equal(scene.shard.snapshot().suspects.total, 0);
    await scene.assertEqual();
  }));

test('the key that a woken client writes is held until its reply is in', () =>
  withStand(async ({ scene, two, three, lane3, locks, chance }) => {
    const { client, link } = await blocked(scene, ['BLMOVE', 'q', 'r', 'LEFT', 'RIGHT', 0]);
    link.link.hold('down');
    assert.equal(await two.ask('RPUSH', 'q', 'a'), ':1');
    three.send('LLEN', 'r');
    await until(() => locks.waitsSince() !== null);
    await chance();
    assert.equal(lane3.has('LLEN r'), false);
    link.link.release();
    assert.deepEqual([await client.frame(), await three.frame()], ['$1\r\na', ':1']);
    await scene.assertEqual();
  }));

test('a push whose connection is lost leaves no key held', () =>
  withStand(async ({ scene, two, three, lane2, locks }) => {
    const { client } = await blocked(scene);
    lane2.link.hold('down');
    two.send('RPUSH', 'q', 'a', 'b');
    assert.equal(await client.frame(), '*2\r\n$1\r\nq\r\n$1\r\na');
    three.send('RPUSH', 'q', 'c');
    await until(() => locks.waitsSince() !== null);
    lane2.link.cut();
    assert.equal(await three.frame(), ':2');
    await scene.assertEqual();
  }));

test('nor does the mirror get it before the push, whose reply is late', () =>
  withStand(async ({ scene, two, lane2, mirror, chance }) => {
    const { client } = await blocked(scene);
    lane2.link.hold('down');
    two.send('RPUSH', 'q', 'a', 'b');
    assert.equal(await client.frame(), '*2\r\n$1\r\nq\r\n$1\r\na');
    await chance();
    partsOf(scene.shard.shard).sequencer.mirrors.target.flush();
    await chance();
    assert.deepEqual(mirror.only('RPUSH q a b', 'LPOP q'), []);
    lane2.link.release();
    assert.equal(await two.frame(), ':2');
    await scene.shard.settled();
    assert.deepEqual(mirror.only('RPUSH q a b', 'LPOP q'), ['RPUSH q a b', 'LPOP q']);
    await scene.assertEqual();
  }));

test('the effects of a transaction are one block on the mirror, whatever other lanes write meanwhile', () =>
  withStand(async ({ scene, two, three, mirror }) => {
    mirror.link.hold('up');
    const around = Array.from({ length: 50 }, (_, i) => ['INCR', `n:${i}`]);
    const replies = [
      three.pipeline(around),
      two.pipeline([
        ['INCR', 'a'],
        ['MULTI'],
        ['SET', 'b', 1],
        ['SPOP', 'none'],
        ['GET', 'b'],
        ['INCR', 'a'],
        ['EXEC'],
      ]),
      three.pipeline(around),
    ];
    assert.equal((await replies[1]).at(-1), '*4\r\n+OK\r\n$-1\r\n$1\r\n1\r\n:2');
    await Promise.all(replies);
    mirror.link.release();
    await scene.shard.settled();
    const at = mirror.sent.indexOf('MULTI');
    assert.deepEqual(mirror.sent.slice(at, at + 5), ['MULTI', 'SET b 1', 'GET b', 'INCR a', 'EXEC']);
    assert.ok(mirror.sent.indexOf('INCR a') < at);
    await scene.assertEqual();
  }));

test('a suspect is not copied while another lane has a write to its key in flight', () =>
  withStand(async ({ scene, two, three, lane2, lane3, locks, chance }) => {
    const { sequencer, suspects } = partsOf(scene.shard.shard);
    await two.ask('SET', 'k', 1);
    await scene.shard.settled();
    lane3.link.hold('down');
    three.send('SET', 'k', 2);
    await lane3.saw('SET k 2');
    // Repairs are asked for on the lane of RESP2.
    sequencer.suspects.key(0, Buffer.from('k'), 'copy');
    await until(() => locks.waitsSince() !== null);
    await chance();
    assert.deepEqual([lane2.has('DUMP k'), suspects.size], [false, 1]);
    lane3.link.release();
    assert.equal(await three.frame(), '+OK');
    await scene.assertEqual();
    assert.ok(lane2.has('DUMP k'));
  }));

test('nor is a difference judged by what the servers say of the key meanwhile', () =>
  withStand(async ({ scene, two, three, lane2, lane3, mirror, chance, locks }) => {
    await two.ask('SET', 'k', 1);
    await scene.shard.settled();
    await scene.client({ of: scene.target }).del('k');
    mirror.link.hold('up');
    assert.equal(await two.ask('GET', 'k'), '$1\r\n1');
    lane3.link.hold('down');
    three.send('SET', 'k', 2, 'PX', 60_000);
    await lane3.saw('SET k 2 PX 60000');
    mirror.link.release();
    await until(() => locks.waitsSince() !== null);
    await chance();
    assert.deepEqual([lane2.has('PTTL k'), scene.shard.snapshot().undecided], [false, 1]);
    lane3.link.release();
    assert.equal(await three.frame(), '+OK');
    await scene.assertEqual();
    assert.ok(lane2.has('PTTL k'));
  }));

test('what one lane shows of a key that a script on another has changed, and that is not named yet, is no mismatch', () =>
  withStand(async ({ scene, two, three, lane2 }) => {
    const hiding = "for i = 1, 1 do redis.call('SET', ARGV[i], 'new') end";
    const direct = scene.client({ of: scene.source });
    await two.pipeline([
      ['SET', 'k', 'old'],
      ['EVAL', hiding, 1, 'declared', 'other'],
    ]);
    await scene.shard.settled();
    lane2.link.hold('down');
    two.send('EVAL', hiding, 1, 'declared', 'k');
    await until(async () => (await direct.get('k')) === 'new');
    assert.equal(await three.ask('GET', 'k'), '$3\r\nnew');
    await until(() => scene.shard.snapshot().mirror.queuedEffects === 0);
    lane2.link.release();
    await two.frame();
    await scene.assertEqual();
    const { mismatches, inconclusive } = scene.shard.snapshot();
    assert.deepEqual([mismatches, inconclusive], [{}, {}]);
  }));

test('a flip waits for the last confirmation, not for the next', () =>
  withStand(
    async ({ scene, two, mirror, chance }) => {
      // The mirror's connection speaks this client's protocol from here on.
      await two.ask('SET', 'k', 0);
      await scene.shard.settled();
      mirror.link.hold('down');
      await two.pipeline([1, 2, 3, 4].map((value) => ['SET', 'k', value]));
      const confirmation = '+OK\r\n'.length;
      await until(() => mirror.link.waiting('down') === 4 * confirmation);
      const timesOut = assert.rejects(scene.shard.shard.changeStage(toLive), { code: 'deadline' });
      const { router, sequencer } = partsOf(scene.shard.shard);
      await until(() => router.default.position.held);
      for (const left of [3, 2, 1]) {
        await chance();
        await mirror.link.holdAfter('down', confirmation);
        await until(() => sequencer.mirrors.target.queued === left);
      }
      await timesOut;
      mirror.link.release();
      await scene.assertEqual();
    },
    { limits: { flipMs: 500 } },
  ));

test('a command that runs alone waits for what a woken client has taken', () =>
  withStand(async ({ scene, two, three, lane2, mirror, chance }) => {
    const { client, link } = await blocked(scene);
    link.link.hold('down');
    assert.equal(await three.ask('RPUSH', 'q', 'a', 'b'), ':2');
    two.send('FLUSHDB');
    await until(() => partsOf(scene.shard.shard).sequencer.blocked);
    await chance();
    assert.equal(lane2.has('FLUSHDB'), false);
    link.link.release();
    assert.equal(await client.frame(), '*2\r\n$1\r\nq\r\n$1\r\na');
    assert.equal(await two.frame(), '+OK');
    await scene.shard.settled();
    const inOrder = ['RPUSH q a b', 'LPOP q', 'FLUSHDB'];
    assert.deepEqual(mirror.only(...inOrder), inOrder);
    await scene.assertEqual();
  }));

test('a transaction holds its keys until EXEC is answered', () =>
  withStand(async ({ scene, two, three, lane2, lane3, locks, chance }) => {
    // The first MULTI of a lane is confirmed before the rest is sent.
    await two.pipeline([['MULTI'], ['GET', 'j'], ['EXEC']]);
    lane2.link.hold('down');
    const replies = two.pipeline([['MULTI'], ['APPEND', 'k', 1], ['GET', 'j'], ['EXEC']]);
    await lane2.saw('APPEND k 1');
    three.send('APPEND', 'k', 2);
    await until(() => locks.waitsSince() !== null);
    await chance();
    assert.equal(lane3.has('APPEND k 2'), false);
    lane2.link.release();
    assert.deepEqual([(await replies)[3], await three.frame()], ['*2\r\n:1\r\n$-1', ':2']);
    await scene.assertEqual();
  }));

test('a command that blocks is sent when the shared lanes are empty, and has its keys to itself until it blocks', () =>
  withStand(async ({ scene, two, three, lane2, lane3, locks, chance }) => {
    const client = await scene.wire();
    await client.ask('GET', 'k');
    lane3.link.hold('down');
    three.send('SET', 'k', 1);
    await lane3.saw('SET k 1');
    const before = new Set(scene.toSource.links);
    client.send('BLPOP', 'q', 0);
    await until(() => locks.reservedSince().length > 0);
    await until(() => scene.toSource.links.some((link) => !before.has(link)));
    const taps = tap(scene.toSource).filter(({ link }) => !before.has(link));
    two.send('RPUSH', 'q', 'a');
    await until(() => locks.waitsSince() !== null);
    await chance();
    assert.deepEqual([lane2.has('RPUSH q a'), taps.some((each) => each.has('BLPOP q 0'))], [false, false]);
    lane3.link.release();
    assert.equal(await client.frame(), '*2\r\n$1\r\nq\r\n$1\r\na');
    assert.deepEqual([await three.frame(), await two.frame()], ['+OK', ':1']);
    await scene.assertEqual();
  }));

test('a key is held while it is read for a copy, and while both servers are asked about it', () =>
  withStand(async ({ scene, two, three, lane2, lane3, mirror, locks, chance }) => {
    const { sequencer } = partsOf(scene.shard.shard);
    await two.ask('SET', 'k', 1);
    await scene.shard.settled();
    const held = async (question: string, ask: () => void): Promise<void> => {
      const value = question.replace(' ', '-');
      lane2.link.hold('down');
      ask();
      // What comes before it is answered.
      await until(() => {
        if (lane2.has(question)) return true;
        lane2.link.release();
        lane2.link.hold('down');
        return false;
      });
      three.send('SET', 'k', value);
      await until(() => locks.waitsSince() !== null);
      await chance();
      assert.equal(lane3.has(`SET k ${value}`), false);
      lane2.link.release();
      assert.equal(await three.frame(), '+OK');
      await scene.assertEqual();
    };
    await held('DUMP k', () => sequencer.suspects.key(0, Buffer.from('k'), 'copy'));
    // The mirror has lost it, and is seen to have.
    mirror.link.hold('up');
    await scene.client({ of: scene.target }).del('k');
    assert.match(await two.ask('GET', 'k'), /DUMP/);
    lane2.sent.length = 0;
    await held('PTTL k', () => mirror.link.release());
  }));
