/** Found in profile `foreign` (seed 913): a write to a key that only the target had left what it had there. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';
import type { KeyName } from '../../world/server-host.js';

const COMMANDS = ['HSET h field v', 'SADD s own', 'ZADD z 1 own', 'COPY h copy REPLACE', 'SUNIONSTORE union s other'];

/** The target has keys that the source lacks, and is written to; they are kept. */
async function admit(kept: KeptWorld): Promise<void> {
  const consent = { overwrite: true, deleteForeign: false, confirm: 4 };
  let isOver = false;
  kept.proxy.within(({ shard }) => {
    void shard.changeStage({ workload: 'default', stage: 'dualwrite', consent }).then(() => (isOver = true));
  });
  await kept.until(() => isOver, 'the stage is dualwrite');
  await copyAll(kept);
}

async function copyAll(kept: KeptWorld): Promise<void> {
  kept.startJob({ kind: 'backfill' });
  await kept.until(() => kept.proxy.condition()?.job?.state === 'done', 'all keys are copied');
}

/** @returns what both servers have once no key is a suspect */
async function assertAlike(kept: KeptWorld, key: KeyName): Promise<unknown> {
  await kept.until(() => kept.isClean, 'no key is a suspect');
  const [source, target] = kept.values(key);
  assert.deepEqual(target, source);
  return source;
}

for (const isTransaction of [false, true])
  test(`What a client adds to a foreign key ${isTransaction ? 'in a transaction ' : ''}ends it`, () =>
    KeptWorld.run(
      async (kept) => {
        for (const command of ['HSET h foreign f', 'SADD s foreign', 'ZADD z 7 foreign', 'SADD other foreign'])
          kept.bypass(kept.target, command);
        await admit(kept);
        assert.ok(kept.isClean);
        const client = await kept.client();
        if (isTransaction) await client.ask('MULTI');
        for (const command of COMMANDS) await client.ask(command);
        if (isTransaction) await client.ask('EXEC');
        await kept.until(() => kept.isClean, 'no key is a suspect');
        for (const key of ['h', 's', 'z', 'copy', 'union']) {
          const [source, target] = kept.values(`0 ${key}`);
          assert.notEqual(source, null, key);
          assert.deepEqual(target, source, key);
        }
        // Only read.
        assert.deepEqual(kept.values('0 other')[0], null);
        assert.notEqual(kept.values('0 other')[1], null);
      },
      { default: { stage: 'off' } },
    ));

test('A key that a flush left on the target alone is asked about again', () =>
  KeptWorld.run(
    async (kept) => {
      kept.bypass(kept.target, 'HSET h foreign f');
      await admit(kept);
      const client = await kept.client();
      await client.ask('HSET known a 1');
      await client.ask('HSET known b 2');
      await client.ask('FLUSHDB');
      await copyAll(kept);
      assert.deepEqual(kept.values('0 known')[0], null);
      await kept.until(() => kept.isClean, 'no key is a suspect');
      await client.ask('HSET known c 3');
      await assertAlike(kept, '0 known');
    },
    { default: { stage: 'off' } },
  ));

test('A key that the target alone has lost is copied when a client adds to it', () =>
  KeptWorld.run(async (kept) => {
    for (const server of [kept.source, kept.target]) kept.bypass(server, 'HSET h a 1');
    const client = await kept.client();
    await kept.until(() => kept.isClean, 'the keys are compared');
    kept.bypass(kept.target, 'DEL h');
    await client.ask('HSET h b 2');
    assert.equal(((await assertAlike(kept, '0 h')) as Map<unknown, unknown>).size, 2);
  }));

/** Of a script that gives a key a time to live if it exists. */
const LIVES_ON = "if redis.call('EXISTS', KEYS[1]) == 2 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end return 1";

test('A client that looks for an element in vain takes none of a foreign list', () =>
  KeptWorld.run(
    async (kept) => {
      kept.bypass(kept.target, 'RPUSH q 1 2 3');
      await admit(kept);
      const client = await kept.client();
      for (const command of ['LPOP q', 'RPOP q 2', 'LMOVE q other LEFT LEFT', 'BLPOP q 0.1'])
        assert.equal(await client.ask(command), null);
      await kept.until(() => kept.isClean, 'no key is a suspect');
      assert.deepEqual(kept.values('0 q'), [null, ['1', '2', '3']]);
    },
    { default: { stage: 'off' } },
  ));

test('A foreign key that expires is only read by a write: it is kept', () =>
  KeptWorld.run(
    async (kept) => {
      kept.bypass(kept.target, 'SADD other foreign');
      kept.bypass(kept.target, 'PEXPIRE other 100000');
      await admit(kept);
      const client = await kept.client();
      await client.ask('SUNIONSTORE union other');
      await kept.until(() => kept.isClean, 'no key is a suspect');
      assert.deepEqual(kept.values('0 other'), [null, new Set(['foreign'])]);
      assert.deepEqual(kept.values('0 union'), [null, null]);
    },
    { default: { stage: 'off' } },
  ));

test('A foreign key that a script has named is asked about again', () =>
  KeptWorld.run(
    async (kept) => {
      kept.bypass(kept.target, 'SADD s foreign');
      await admit(kept);
      const client = await kept.client();
      await client.ask(['EVAL', LIVES_ON, '1', 's', '100']);
      await kept.until(() => kept.isClean, 'no key is a suspect');
      await client.ask('SADD s own');
      await assertAlike(kept, '0 s');
    },
    { default: { stage: 'off' } },
    ({ source, target }) => {
      for (const { model } of [source, target]) model.addScript(LIVES_ON, () => 1);
    },
  ));
