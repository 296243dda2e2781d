/**
 * Rule 9, transactions: writes that succeeded are on both servers, also when the client has disconnected.
 *
 * Needs real servers: EXEC with errors, and approximate trims of streams, which servers store differently.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeCommand, type Argument } from '../../../src/resp/encode.js';
import { withRig } from '../../support/rig.js';

/** A target whose streams are stored in much smaller nodes: what `~` leaves over is not the same there. */
const SMALL_NODES = { target: { config: { 'stream-node-max-entries': 7 } } };

test('EXEC repeats the commands that succeeded, and only those', async () => {
  await withRig({}, async ({ wire, source, client, shard, assertEqual }) => {
    for (const protocol of [2, 3]) {
      const proxy = await wire();
      await proxy.ask('HELLO', protocol);
      await proxy.pipeline([
        ['SET', 'text', 'abc'],
        ['SADD', 'set', 'a', 'b', 'c', 'd', 'e'],
        ['DEL', 'n', 'list'],
      ]);
      const replies = await proxy.pipeline([
        ['MULTI'],
        ['INCR', 'n'],
        ['LPUSH', 'text', 'x'],
        ['INCR', 'text'],
        ['RPUSH', 'list', 'a', 'b'],
        ['SPOP', 'set', '2'],
        ['HINCRBYFLOAT', 'hash', 'f', '0.1'],
        ['EVAL', "redis.call('SET', KEYS[1], 'kept') return redis.call('INCR', KEYS[1])", '1', 'script'],
        ['SET', 'text', 'new', 'EX', '100'],
        ['GET', 'text'],
        ['XADD', 'stream', '*', 'f', 'v'],
        ['EXEC'],
      ]);
      assert.deepEqual(replies.slice(0, 11), ['+OK', ...new Array<string>(10).fill('+QUEUED')]);
      const [, , wrongType, notInteger] = replies[11].split('\r\n');
      assert.match(wrongType, /^-WRONGTYPE/);
      assert.equal(notInteger, '-ERR value is not an integer or out of range');
      assert.match(replies[11], /\$3\r\nnew\r\n/);
      await assertEqual();
      assert.equal(await client({ of: source }).get('script'), 'kept');
      assert.equal(await client({ of: source }).get('n'), '1');
    }
    assert.equal(shard.snapshot().unmirroredErrors, 6);
  });
});

test('an approximate trim leaves exactly the same entries on a target that stores streams differently', async () => {
  await withRig({ servers: SMALL_NODES }, async ({ wire, source, client, shard, assertEqual }) => {
    const proxy = await wire();
    const add = (key: string, ...trim: Argument[]): Argument[] => ['XADD', key, ...trim, '*', 'f', 'v'];
    await proxy.pipeline(Array.from({ length: 700 }, () => add('s', 'MAXLEN', '~', 250)));
    await proxy.pipeline(Array.from({ length: 300 }, () => add('t')));
    await proxy.pipeline([
      ['XTRIM', 't', 'MAXLEN', '~', 130],
      ['XTRIM', 't', 'MAXLEN', '~', 130],
    ]);
    for (let i = 0; i < 10; i++) {
      const replies = await proxy.pipeline([
        ['MULTI'],
        ...Array.from({ length: 40 }, () => add('m', 'MAXLEN', '~', 120)),
        ['XTRIM', 's', 'MAXLEN', '~', 200 - i],
        ['XLEN', 'm'],
        ['EXEC'],
      ]);
      assert.match(replies.at(-1)!, /^\*42\r\n/);
    }
    const { length } = await client({ of: source }).xrange('m', '-', '+');
    assert.ok(length > 120 && length < 400, `${length}`);
    assert.equal(shard.snapshot().suspects.total, 0);
    await assertEqual();
  });
});

test('XADD and XTRIM are answered as by Redis, errors too', async () => {
  const user = 'narrow on >pw ~* &* +xadd +xtrim +select +hello';
  await withRig(
    { servers: { source: { config: { user } }, target: { config: { user } } } },
    async ({ wire, shard, source, target, client, assertEqual }) => {
      const [proxy, direct] = [await wire(), client({ of: source, db: 9 })];
      const both = [direct, client({ of: target, db: 9 })];
      await Promise.all(both.map((each) => each.set('text', 'x')));
      await proxy.ask('SELECT', 9);
      for (const args of [
        ['XADD', 's', '1-1', 'f', 'v'],
        ['XADD', 's', '1-1', 'f', 'v'],
        ['XADD', 's', 'MAXLEN', '~', '10', '2-1', 'f'],
        ['XADD', 's', 'MAXLEN', '~', 'ten', '2-1', 'f', 'v'],
        ['XADD', 's', 'MAXLEN', '~', '10', '0-0', 'f', 'v'],
        ['XADD', 'text', 'MAXLEN', '~', '10', '2-1', 'f', 'v'],
        ['XADD', 'none', 'NOMKSTREAM', 'MAXLEN', '~', '10', '2-1', 'f', 'v'],
        ['XADD', 's'],
        ['XADD', 's', '3-1', 'f'],
        ['XTRIM', 's', 'MAXLEN'],
        ['XTRIM', 's', 'MAXLEN', '~'],
        ['XTRIM', 's', 'MAXLEN', '~', '1'],
        ['XTRIM', 'none', 'MAXLEN', '~', '1'],
        ['XTRIM', 'text', 'MINID', '~', '1'],
      ]) {
        // What Redis says is asked on a copy of the keys.
        await direct.copy('s', 's', 'DB', 10, 'REPLACE').catch(() => 0);
        await direct.copy('text', 'text', 'DB', 10, 'REPLACE');
        const twin = client({ of: source, db: 10 });
        const [command, ...rest] = args;
        const expected = await twin.call(command, ...rest).then(
          (value) => String(value),
          (error: Error) => `-${error.message}`,
        );
        const reply = await proxy.ask(...args);
        assert.equal(
          reply.startsWith('$') ? (reply.split('\r\n')[1] ?? 'null') : reply.replace(/^:/, ''),
          expected,
          args.join(' '),
        );
        twin.disconnect();
      }
      // A question about the key is answered by both servers before the key is deleted there.
      await shard.settled();
      await Promise.all(both.map((each) => each.del('text')));
      await client({ of: source, db: 10 }).flushdb();
      await proxy.ask('DEL', 'text');
      const narrow = await wire();
      assert.equal(await narrow.ask('AUTH', 'narrow', 'pw'), '+OK');
      // XLEN would show what the trim left, but this user may not run it.
      assert.equal(await narrow.ask('XADD', 'n', 'MAXLEN', '~', '10', '1-1', 'f', 'v'), '$3\r\n1-1');
      assert.equal((await narrow.ask('XADD', 'n', '2-1', 'f', 'v')).split('\r\n')[1], '2-1');
      assert.match(await narrow.ask('SET', 'n', 'v'), /^-NOPERM/);
      await assertEqual();
    },
  );
});

test('a write is replicated after EXEC although its client has disconnected', async () => {
  await withRig({ servers: SMALL_NODES }, async ({ wire, source, client, shard, assertEqual }) => {
    const direct = client({ of: source });
    const setup = await wire();
    await setup.ask('SADD', 'set', ...Array.from({ length: 500 }, (_, i) => i));
    for (let round = 0; round < 10; round++) {
      const leaver = await wire();
      await leaver.ask('PING');
      await source.kill('SIGSTOP');
      leaver.sendBytes(
        Buffer.concat(
          [
            ['MULTI'],
            ['SPOP', 'set', '3'],
            ['INCR', 'n'],
            ...new Array<string[]>(30).fill(['XADD', 's', 'MAXLEN', '~', '120', '*', 'f', 'v']),
            ['EXEC'],
            ['XADD', 's', 'MAXLEN', '~', '100', '*', 'f', 'v'],
            ['SPOP', 'set'],
          ].map((args) => encodeCommand(args)),
        ),
      );
      await new Promise((resolve) => setTimeout(resolve, 15));
      leaver.destroy();
      await new Promise((resolve) => setTimeout(resolve, 15));
      await source.kill('SIGCONT');
    }
    await setup.ask('PING');
    await assertEqual();
    assert.equal(await direct.get('n'), '10');
    assert.equal(await direct.scard('set'), 500 - 40);
    assert.equal(shard.snapshot().clients, 2 - 1);
  });
});
