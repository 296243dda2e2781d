/**
 * Rule 14: percent only where no command spans slots; commands over several authorities are split or refused.
 *
 * Needs real servers: hash slots of keys, and the errors of commands that cannot be split.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StageError } from '../../../src/stages/stage-change.js';
import { differences } from '../../support/keyspace.js';
import { withRig, type Rig } from '../../support/rig.js';

const WORKLOADS = [
  { name: 'sessions', keys: ['s:*'], stage: 'live' as const },
  { name: 'pages', keys: ['p:*'], stage: 'shadow' as const },
  { name: 'quiet', keys: ['q:*'], stage: 'off' as const },
];

const toHalf = (rig: Rig): Promise<unknown> =>
  rig.shard.shard.changeStage({ workload: 'w', stage: 'live', percent: 50 });
const refusedForSpanning = (error: unknown): boolean =>
  error instanceof StageError && error.code === 'refused' && /spanned hash slots/.test(error.message);

for (const [what, commands] of Object.entries({
  'a command over several slots': [['MSET', 'w:a', 1, 'w:b', 2]],
  'a read over several slots': [['MGET', 'w:a', 'w:b']],
  'a transaction over several slots': [['MULTI'], ['SET', 'w:a', 1], ['SET', 'w:b', 2], ['EXEC']],
  'a script with keys of several slots': [['EVAL', "return redis.call('SET', KEYS[1], KEYS[2])", 2, 'w:a', 'w:b']],
  'a rename to another slot': [
    ['SET', 'w:a', 1],
    ['RENAME', 'w:a', 'w:b'],
  ],
})) {
  test(`percent is refused after ${what}`, async () => {
    await withRig({ workloads: [{ name: 'w', keys: ['w:*'], stage: 'shadow' }] }, async (rig) => {
      const proxy = await rig.wire();
      const replies = await proxy.pipeline(commands);
      assert.ok(
        replies.every((reply) => !reply.startsWith('-')),
        replies.join(),
      );
      await rig.shard.settled();
      await assert.rejects(toHalf(rig), refusedForSpanning);
      assert.equal(rig.shard.snapshot().workloads[0].stage, 'shadow');
      await rig.shard.shard.changeStage({ workload: 'w', stage: 'live' });
    });
  });
}

test('percent goes by the slot of the key, and a half is about half', async () => {
  await withRig({ workloads: [{ name: 'w', keys: ['w:*'], stage: 'shadow' }] }, async (rig) => {
    const { wire, client, source, target, shard } = rig;
    const proxy = await wire();
    await proxy.pipeline([
      ['SET', 'w:{x}a', 1],
      ['MGET', 'w:{x}a', 'w:{x}b'],
      ['RENAME', 'w:{x}a', 'w:{x}b'],
    ]);
    await shard.settled();
    await toHalf(rig);
    await proxy.pipeline(Array.from({ length: 400 }, (_, i) => ['SET', `w:${i}`, i]));
    await shard.settled();
    // What only the target has is seen by those keys alone whose authority it is.
    const behind = client({ of: target });
    await behind.mset(Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`w:${i}`, 'target'])));
    const replies = await proxy.pipeline(Array.from({ length: 400 }, (_, i) => ['GET', `w:${i}`]));
    const live = replies.filter((reply) => reply.endsWith('target')).length;
    assert.ok(live > 150 && live < 250, `${live}`);
    assert.equal(
      await proxy
        .ask('MGET', ...Array.from({ length: 400 }, (_, i) => `w:${i}`))
        .then((reply) => reply.split('target').length - 1),
      live,
    );
    assert.match(
      await proxy.ask('MSET', 'w:0', 1, 'w:1', 1, 'w:2', 1, 'w:3', 1, 'w:4', 1, 'w:5', 1, 'w:6', 1, 'w:7', 1),
      /^-ERR shadow-proxy: MSET spans workload "w" \(stage live at 50 %\)/,
    );
    // A tag keeps keys together.
    assert.equal(await proxy.ask('MSET', '{w:1}a', 1, '{w:1}b', 2), '+OK');
    // After the repair each key has its authority's value on both servers.
    await shard.settled();
    assert.deepEqual(await differences(source, target), []);
  });
});

test('MGET, DEL, UNLINK, EXISTS and TOUCH over several authorities are split, and answered in the order of the keys', async () => {
  await withRig({ workloads: WORKLOADS }, async ({ wire, source, target, client, shard }) => {
    for (const protocol of [2, 3]) {
      const [proxy, plain] = [await wire(), await wire()];
      await proxy.ask('HELLO', protocol);
      const nil = protocol === 3 ? '_' : '$-1';
      await plain.pipeline([
        ['SET', 's:1', 'one'],
        ['SET', 'p:1', 'two'],
        ['SET', 'q:1', 'three'],
        ['SET', 'x', 'four'],
        ['LPUSH', 's:list', 1],
      ]);
      assert.equal(
        await proxy.ask('MGET', 'p:1', 's:1', 's:none', 'x', 'p:none', 's:list', 'q:1', 's:1'),
        `*8\r\n$3\r\ntwo\r\n$3\r\none\r\n${nil}\r\n$4\r\nfour\r\n${nil}\r\n${nil}\r\n$5\r\nthree\r\n$3\r\none`,
      );
      assert.equal(await proxy.ask('EXISTS', 's:1', 'p:1', 'p:1', 's:none', 'q:1'), ':4');
      assert.equal(await proxy.ask('TOUCH', 's:1', 'p:1', 'none'), ':2');
      assert.equal(await proxy.ask('DEL', 's:1', 'p:1', 'p:1', 'none'), ':2');
      assert.equal(await proxy.ask('UNLINK', 's:list', 'q:1', 'x', 's:none'), ':3');
      // In its place among other commands of the same client.
      const many = Array.from({ length: 50 }, (_, i) => [
        ['SET', 's:n', i],
        ['SET', 'p:n', i],
        ['MGET', 's:n', 'p:n'],
        ['DEL', 's:n', 'p:n'],
        ['EXISTS', 's:n', 'p:n'],
      ]).flat();
      const replies = await proxy.pipeline(many);
      for (let i = 0; i < 50; i++) {
        const value = `$${String(i).length}\r\n${i}`;
        assert.deepEqual(replies.slice(i * 5, i * 5 + 5), ['+OK', '+OK', `*2\r\n${value}\r\n${value}`, ':2', ':0']);
      }
      await shard.settled();
    }
    assert.deepEqual(await differences(source, target), []);
    assert.equal(shard.snapshot().crossWorkload.split, 2 * (5 + 150));
    assert.equal(await client({ of: source }).dbsize(), 0);
    assert.deepEqual(shard.snapshot().mismatches, {});
  });
});

test('what cannot be split is refused with the names of both workloads, and does nothing', async () => {
  await withRig({ workloads: WORKLOADS }, async ({ wire, source, target, shard }) => {
    const proxy = await wire();
    const both =
      /^-ERR shadow-proxy: .* spans workload "(sessions|pages)" \(stage (live|shadow)\) and workload "(sessions|pages)" \(stage (live|shadow)\)/;
    for (const args of [
      ['MSET', 's:1', 1, 'p:1', 2],
      ['MSETNX', 'p:1', 1, 's:1', 2],
      ['RENAME', 's:1', 'p:1'],
      ['SUNIONSTORE', 's:set', 'p:set', 's:other'],
      ['SINTER', 's:set', 'p:set'],
      ['EVAL', 'return 1', 2, 's:1', 'p:1'],
      ['LMOVE', 's:1', 'p:1', 'LEFT', 'LEFT'],
      ['COPY', 's:1', 'p:1'],
      ['BITOP', 'AND', 's:1', 'p:1'],
      ['PFMERGE', 's:1', 'p:1'],
      ['ZRANGESTORE', 's:1', 'p:1', 0, 1],
    ]) {
      assert.match(await proxy.ask(...args), both, args.join(' '));
    }
    const replies = await proxy.pipeline([['MULTI'], ['SET', 's:1', 1], ['SET', 'p:1', 1], ['EXEC']]);
    assert.equal(replies[1], '+QUEUED');
    assert.match(replies[2], both);
    assert.match(replies[3], /^-EXECABORT/);
    // Different stages with one authority are no obstacle.
    assert.equal(await proxy.ask('MSET', 'q:1', 1, 'p:1', 2, 'x', 3), '+OK');
    await shard.settled();
    assert.equal(shard.snapshot().crossWorkload.refused, 12);
    assert.deepEqual(await differences(source, target), ['0:q:1 is not on the target: "1"']);
  });
});
