/**
 * Several shards of one plan that keep their keys on one target.
 *
 * Needs real servers: SCAN, KEYS, DBSIZE and RANDOMKEY of a KeyDB that several shards share.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import { StageError } from '../../../src/stages/stage-change.js';
import { direct, withSharedTarget, type Shared } from '../../support/shared.js';
import { until } from '../../support/shard.js';
import { Wire, withWire } from '../../support/wire.js';

/** `a:0` … on the first shard, `b:0` … on the second, three of a kind to one. */
async function fill(shared: Shared, count = 300): Promise<void> {
  for (const [i, name] of ['a', 'b'].entries())
    await shared.wire(i).pipeline(Array.from({ length: count / (i * 2 + 1) }, (_, n) => ['SET', `${name}:${n}`, n]));
  await shared.settled();
}

/** Keys as SCAN gives them, from the beginning to the end. */
async function scanned(wire: Wire, ...options: string[]): Promise<string[]> {
  const keys = new Set<string>();
  for (let cursor = '0'; ;) {
    const reply = await wire.ask('SCAN', cursor, ...options);
    const [head, ...rest] = [...reply.matchAll(/\$\d+\r\n([^\r]*)/g)].map(([, text]) => text);
    for (const key of rest) keys.add(key);
    cursor = head;
    if (cursor === '0') return [...keys].sort();
  }
}

const bulks = (reply: string): string[] => [...reply.matchAll(/\$\d+\r\n([^\r]*)/g)].map(([, text]) => text).sort();

test('the keys of both are on the target, and what would take the other’s is refused', async () => {
  await withSharedTarget({ owns: [undefined, undefined] }, async (shared) => {
    const [one, two] = [shared.wire(0), shared.wire(1)];
    await Promise.all(
      [one, two].map((wire, i) => wire.pipeline(Array.from({ length: 200 }, (_, n) => ['SET', `s${i}:${n}`, n]))),
    );
    await Promise.all(
      [one, two].map((wire, i) =>
        wire.pipeline([
          ['SELECT', 1],
          ['LPUSH', `s${i}:list`, 1],
          ['SELECT', 0],
        ]),
      ),
    );
    await shared.settled();
    const before = await shared.keys();
    assert.equal(before.target.length, 402);
    assert.deepEqual(before.target, before.sources.flat().sort());
    for (const args of [['FLUSHALL'], ['FLUSHDB'], ['FLUSHALL', 'ASYNC'], ['SWAPDB', '0', '1']]) {
      assert.match(
        await one.ask(...args),
        /^-ERR shadow-proxy: (FLUSHALL|FLUSHDB|SWAPDB) is refused: other shards keep their keys on the same target/,
      );
    }
    const inMulti = await two.pipeline([['MULTI'], ['FLUSHALL'], ['EXEC']]);
    assert.match(inMulti[2], /^-EXECABORT/);
    for (const keys of [[0], [1, 's1:1']]) {
      const script = ['EVAL', "return redis.call('FLUSHALL')", ...keys];
      const refused = /^-ERR shadow-proxy: EVAL of a script with FLUSHALL, FLUSHDB or SWAPDB is refused/;
      assert.match(await two.ask(...script), refused);
      assert.match((await two.pipeline([['MULTI'], script, ['EXEC']]))[2], refused);
    }
    assert.deepEqual(await shared.keys(), before);
    assert.equal(await one.ask('DEL', 's0:1'), ':1');
    assert.equal(await two.ask('MOVE', 's1:2', 2), ':1');
    await shared.settled();
    const after = await shared.keys();
    assert.deepEqual(after.target, after.sources.flat().sort());
  });
});

test('no stage beyond shadow without a word on which keys each shard owns', async () => {
  await withSharedTarget({ owns: [['a:*'], undefined] }, async (shared) => {
    const silent = shared.shards[1].shard;
    await assert.rejects(
      silent.changeStage({ workload: 'default', stage: 'live' }),
      (error: unknown) => error instanceof StageError && error.code === 'refused' && /owns/.test(error.message),
    );
    assert.equal(silent.snapshot().workloads[0].stage, 'shadow');
    await silent.changeStage({ workload: 'default', stage: 'dualwrite' });
    assert.equal(await shared.wire(0).ask('SET', 'a:1', 1), '+OK');
  });
  await withSharedTarget({ owns: [['a:*'], ['b:*']] }, async (shared) => {
    await fill(shared);
    await shared.moveAll('live');
    for (const i of [0, 1]) await shared.wire(i).ask('INCR', `${'ab'[i]}:1`);
    await shared.settled();
    const { sources, target } = await shared.keys();
    assert.deepEqual(target, sources.flat().sort());
    assert.deepEqual(
      shared.shards.map(({ shard }) => shard.snapshot().mismatches),
      [{}, {}],
    );
    // Nor does a start with another plan: the stage holds, and the keys are where they are.
    await assert.rejects(
      shared.start([['a:*'], undefined]),
      /s1 shares its target and has no owns, but workload default is live/,
    );
    await assert.rejects(
      shared.start([['a:*', 'c:*'], ['b:*']]),
      /owns of shard s0 changed .*, and workload default is live: roll it back to shadow first/,
    );
    await shared.start();
  });
});

for (const [how, owns, stage] of [
  ['patterns', [['a:*'], ['b:*']], 'live'],
  // a:… and b:… by their tags: slots 15495 and 3300.
  ['hash slots', [{ slots: '12000-16383' }, { slots: '0-7000, 8000' }], 'live'],
  ['patterns, when the source is left', [['a:*'], ['b:*']], 'complete'],
] as const) {
  test(`SCAN, KEYS, DBSIZE and RANDOMKEY tell of the shard’s own keys: by ${how}`, async () => {
    await withSharedTarget({ owns }, async (shared) => {
      const tag = how === 'hash slots' ? (name: string): string => `{${name}}` : (name: string): string => `${name}:`;
      const keysOf = (i: number): string[] =>
        Array.from({ length: i === 0 ? 3_000 : 40 }, (_, n) => `${tag('ab'[i])}${n}`).sort();
      for (const i of [0, 1]) await shared.wire(i).pipeline(keysOf(i).map((key) => ['SET', key, 1]));
      await shared.wire(1).pipeline([
        ['SELECT', 3],
        ['SET', `${tag('b')}in-3`, 1],
        ['SELECT', 0],
      ]);
      await shared.settled();
      // In shadow each source answers, and the target's other keys are no difference.
      for (const i of [0, 1]) assert.equal(await shared.wire(i).ask('DBSIZE'), `:${keysOf(i).length}`);
      await shared.moveAll('live');
      if (stage === 'complete') for (const next of ['rampdown', 'complete'] as const) await shared.moveAll(next);
      if (stage === 'complete') for (const source of shared.sources) await direct(source, ['FLUSHALL']);
      for (const i of [0, 1]) {
        const wire = shared.wire(i);
        assert.equal(await wire.ask('DBSIZE'), `:${keysOf(i).length}`);
        assert.deepEqual(bulks(await wire.ask('KEYS', '*')), keysOf(i));
        assert.deepEqual(await scanned(wire), keysOf(i));
        assert.deepEqual(
          await scanned(wire, 'MATCH', '*1*', 'COUNT', '500'),
          keysOf(i).filter((key) => key.includes('1')),
        );
        const random = await wire.pipeline(Array.from({ length: 40 }, () => ['RANDOMKEY']));
        const seen = new Set(random.flatMap(bulks));
        assert.ok(seen.size > 5 && [...seen].every((key) => keysOf(i).includes(key)), [...seen].join(' '));
        // Behind and before what the same client asks.
        assert.deepEqual(
          await wire.pipeline([
            ['SET', `${tag('ab'[i])}new`, 1],
            ['DBSIZE'],
            ['DEL', `${tag('ab'[i])}new`],
            ['DBSIZE'],
            ['PING'],
          ]),
          ['+OK', `:${keysOf(i).length + 1}`, ':1', `:${keysOf(i).length}`, '+PONG'],
        );
        assert.match(await wire.ask('DBSIZE', 'x'), /^-ERR wrong number of arguments/);
        assert.match(await wire.ask('SCAN', 'x'), /^-ERR/);
        assert.match(
          (await wire.pipeline([['MULTI'], ['DBSIZE'], ['EXEC']]))[2],
          /^-ERR shadow-proxy: DBSIZE inside MULTI is refused: other shards/,
        );
        assert.match(
          await wire.ask('EVAL', "return redis.call('KEYS', '*')", 0),
          /^-ERR shadow-proxy: EVAL of a script with SCAN, KEYS, DBSIZE or RANDOMKEY is refused/,
        );
      }
      const [first] = [shared.wire(0)];
      assert.deepEqual(
        await first
          .pipeline([['SELECT', 3], ['DBSIZE'], ['RANDOMKEY'], ['KEYS', '*'], ['HELLO', 3], ['RANDOMKEY'], ['DBSIZE']])
          .then((all) => all.filter((_, i) => i !== 4)),
        ['+OK', ':0', '$-1', '*0', '_', ':0'],
      );
      assert.equal(
        await shared
          .wire(1)
          .pipeline([['SELECT', 3], ['DBSIZE']])
          .then(([, size]) => size),
        ':1',
      );
    });
  });
}

test('DBSIZE is refused for a user without the right to it; RANDOMKEY and GET still answer', async () => {
  await withSharedTarget({ owns: [['a:*'], ['b:*']] }, async (shared) => {
    await fill(shared, 30);
    await shared.moveAll('live');
    const acl = ['ACL', 'SETUSER', 'app', 'on', '>pw', '~*', '+@all', '-dbsize'];
    for (const server of [...shared.sources, shared.target]) await direct(server, acl);
    await withWire(shared.shards[0].shard.port, async (wire) => {
      assert.equal(await wire.ask('AUTH', 'app', 'pw'), '+OK');
      assert.match(await wire.ask('DBSIZE'), /^-NOPERM/);
      assert.match(await wire.ask('RANDOMKEY'), /^\$\d+\r\na:/);
      assert.equal(await wire.ask('GET', 'a:1'), '$1\r\n1');
    });
  });
});

test('what a client does with a key that is another shard’s stays at its own source', async () => {
  for (const owns of [
    [['a:*'], ['b:*']],
    [['a:*'], undefined],
  ]) {
    await withSharedTarget({ owns }, async (shared) => {
      await fill(shared, 30);
      const wrong = shared.wire(1);
      // Its source has none of them: a difference, were it looked for, and a copy would delete them.
      assert.deepEqual(
        await wrong.pipeline([
          ['GET', 'a:1'],
          ['DEL', 'a:2'],
          ['SET', 'a:3', 'wrong'],
          ['MGET', 'b:1', 'a:4'],
          ['RENAME', 'a:3', 'b:new'],
          ['SET', 'a:5', 'mine'],
        ]),
        ['$-1', ':0', '+OK', '*2\r\n$1\r\n1\r\n$-1', '+OK', '+OK'],
      );
      await shared.settled();
      // Nothing may be repaired: it would have been by now.
      await sleep(600);
      assert.deepEqual(await direct(shared.target, ['MGET', 'a:1', 'a:2', 'a:3', 'a:5', 'b:new']), [
        '*5\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n5\r\n$5\r\nwrong',
      ]);
      const { mismatches, otherShardCommands, suspects } = shared.shards[1].shard.snapshot();
      assert.deepEqual([mismatches, otherShardCommands > 0, suspects.total], [{}, true, 0]);
      if (owns[1] === undefined) return;
      await shared.moveAll('live');
      assert.deepEqual(
        await wrong.pipeline([
          ['GET', 'a:5'],
          ['SET', 'a:6', 'wrong'],
          ['MGET', 'a:5', 'b:1'],
        ]),
        ['$4\r\nmine', '+OK', '*2\r\n$4\r\nmine\r\n$1\r\n1'],
      );
      assert.match(
        await wrong.ask('MSET', 'a:1', 1, 'b:1', 1),
        /^-ERR shadow-proxy: MSET spans workload "other shards" \(stage off\) and workload "default" \(stage live\)/,
      );
      assert.deepEqual(await direct(shared.target, ['MGET', 'a:5', 'a:6']), ['*2\r\n$1\r\n5\r\n$1\r\n6']);
    });
  }
});

test('if the plan does not set owns, a key that another source holds is not repaired', async () => {
  await withSharedTarget({ owns: [undefined, undefined] }, async (shared) => {
    await fill(shared, 30);
    assert.equal(await shared.wire(1).ask('GET', 'a:1'), '$-1');
    await until(() => shared.shards[1].shard.snapshot().suspects.total === 1);
    // Nothing may be repaired: it would have been by now.
    await sleep(600);
    assert.deepEqual(await direct(shared.target, ['GET', 'a:1']), ['$1\r\n1']);
    // A finding, until one of them has it no more.
    assert.equal(
      Object.values(shared.shards[1].shard.snapshot().mismatches).reduce((sum, n) => sum + n, 0),
      1,
    );
    await shared.wire(0).ask('DEL', 'a:1');
    await shared.settled();
    assert.deepEqual(await direct(shared.target, ['EXISTS', 'a:1']), [':0']);
  });
});

test('a message arrives once', async () => {
  await withSharedTarget({ owns: [['a:*'], ['b:*']] }, async (shared) => {
    await shared.shards[0].shard.changeStage({ workload: 'default', stage: 'live' });
    // The first one's subscriber is at the target, the second one's at its source.
    const heard = await Promise.all(shared.shards.map(({ shard }) => Wire.open({ port: shard.port })));
    for (const wire of heard) await wire.ask('SUBSCRIBE', 'news');
    const publish = async (of: number, text: string): Promise<string> =>
      (
        await shared
          .wire(of)
          .pipeline([['PUBLISH', 'news', text], ['MULTI'], ['PUBLISH', 'news', `${text} in EXEC`], ['EXEC']])
      ).join(' ');
    // As many shards tell it as there are.
    for (const of of [0, 1]) await publish(of, 'told by all');
    await shared.settled();
    await until(() => heard.every((wire) => wire.unread.length >= 2));
    // No message comes a second time.
    await sleep(100);
    const messages = (wire: Wire): string[] => wire.unread.map((frame) => frame.split('\r\n').at(-1)!);
    assert.deepEqual(heard.map(messages), [
      ['told by all', 'told by all in EXEC'],
      ['told by all', 'told by all in EXEC'],
    ]);
    for (const wire of heard) wire.destroy();
  });
});
