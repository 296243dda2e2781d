/** An authority that has restarted without its keys answers clients until the operator decides. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

/** Takes an element, as the scripts of queues do. */
const TAKES = "return redis.call('LPOP', KEYS[1])";

const FOUND = [
  ['0 k', 'value'],
  ['0 q', ['1', '2', '3']],
  ['0 z', new Map(['1', '2', '3'].map((member) => [member, Number(member)]))],
] as const;

const COMMANDS: readonly (readonly (readonly string[])[])[] = [
  [['LPOP', 'q']],
  [['RPOP', 'q', '2']],
  [['LMOVE', 'q', 'r', 'LEFT', 'LEFT']],
  [['RPOPLPUSH', 'q', 'r']],
  [['BLPOP', 'q', '0.1']],
  [['ZPOPMIN', 'z']],
  [['ZPOPMAX', 'z', '2']],
  [['EVAL', TAKES, '1', 'q']],
  [['GETDEL', 'k']],
  [['MULTI'], ['LPOP', 'q'], ['EXEC']],
];

const addScript = ({ source, target }: KeptWorld): void => {
  for (const { model } of [source, target]) model.addScript(TAKES, ({ call, keys }) => call('LPOP', keys[0]));
};

/** The values that a server has of the keys that were there before. */
const left = (kept: KeptWorld, side: 'source' | 'target'): unknown[] =>
  FOUND.map(([key]) => {
    const value = kept[side].entry(key)?.value ?? null;
    return typeof value === 'object' && value !== null && 'scores' in value
      ? (value as { scores: unknown }).scores
      : value;
  });

async function lose(kept: KeptWorld): Promise<void> {
  const client = await kept.client();
  for (const command of ['SET k value', 'RPUSH q 1 2 3', 'ZADD z 1 1 2 2 3 3']) await client.ask(command);
  await kept.pass(100);
  kept.target.stop();
  await kept.until(() => !kept.proxy.snapshot()!.target.up, 'the target is down');
  kept.target.start(false);
  await kept.until(() => kept.proxy.condition()!.frozen !== null, 'repairs are frozen');
}

for (const commands of COMMANDS) {
  const name = commands.map(([word]) => word).join(' ');
  test(`${name} finds nothing at an authority that lost its keys, and takes nothing from the mirror`, () =>
    KeptWorld.run(
      async (kept) => {
        await lose(kept);
        const client = await kept.client();
        for (let i = 0; i < 2; i++) for (const command of commands) await client.ask(command);
        await kept.pass(500);
        assert.deepEqual(
          left(kept, 'source'),
          FOUND.map(([, value]) => value),
        );
      },
      { default: { stage: 'live' } },
      addScript,
    ));
}

test('What a client looked for in vain is restored from the mirror', () =>
  KeptWorld.run(
    async (kept) => {
      await lose(kept);
      const client = await kept.client();
      assert.equal(await client.ask('LPOP q'), null);
      await kept.pass(100);
      kept.startJob({ kind: 'restore' });
      await kept.until(() => kept.proxy.condition()!.job?.state === 'done', 'the keys are restored');
      assert.deepEqual(
        left(kept, 'target'),
        FOUND.map(([, value]) => value),
      );
      kept.proxy.within(({ shard }) => shard.acceptAuthority(null));
      await kept.until(() => kept.isClean, 'the workload is clean');
      assert.equal(await client.ask('LPOP q'), '$1');
    },
    { default: { stage: 'live' } },
  ));
