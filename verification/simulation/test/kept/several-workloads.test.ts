/** Commands on keys of workloads in different stages. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

const PLAN = {
  workloads: [
    { name: 'off', keys: ['off:*'], stage: 'off' },
    { name: 'moved', keys: ['moved:*'], stage: 'rampdown' },
  ],
  default: { stage: 'shadow' },
};

test('An element that BLMOVE moves at once to a key of a workload in off is not moved there on the mirror', () =>
  KeptWorld.run(async (kept) => {
    const client = await kept.client();
    await client.ask('RPUSH list element');
    assert.equal(await client.ask('BLMOVE list off:list LEFT RIGHT 1'), '$element');
    await kept.until(() => kept.isClean, 'the workloads are clean');
    await kept.pass(50);
    assert.deepEqual(
      [kept.values('0 list'), kept.values('0 off:list')],
      [
        [null, null],
        [['element'], null],
      ],
    );
  }, PLAN));

test('An MGET of a mirrored key and one of a workload in off is no mismatch', () =>
  KeptWorld.run(async (kept) => {
    const client = await kept.client();
    for (const key of ['k', 'off:k']) await client.ask(`SET ${key} v`);
    assert.deepEqual(await client.ask('MGET k off:k'), ['$v', '$v']);
    await kept.pass(1_000);
    assert.deepEqual(kept.proxy.snapshot()!.mismatches, {});
  }, PLAN));

test('A split DEL deletes on the mirror no key of a workload in off', () =>
  KeptWorld.run(async (kept) => {
    const client = await kept.client();
    kept.bypass(kept.target, 'SET off:k own');
    for (const key of ['k', 'off:k', 'moved:k']) await client.ask(`SET ${key} v`);
    await kept.until(() => kept.isClean, 'the workloads are clean');
    assert.equal(await client.ask('DEL k off:k moved:k'), 3);
    await kept.until(() => kept.isClean, 'the workloads are clean');
    await kept.pass(50);
    assert.deepEqual(
      ['k', 'off:k', 'moved:k'].map((key) => kept.values(`0 ${key}`)),
      [
        [null, null],
        [null, 'own'],
        [null, null],
      ],
    );
  }, PLAN));

test('A split command that waits for its lanes waits for a stage change, too', () =>
  KeptWorld.run(async (kept) => {
    const [writer, client] = [await kept.client(), await kept.client()];
    for (const key of ['k', 'moved:k']) await writer.ask(`SET ${key} v`);
    await kept.until(() => kept.isClean, 'the workloads are clean');
    const ran = kept.ranBy(([name, ...keys]) => name.toLowerCase() === 'del' && keys.includes('k'));
    await client.ask('HELLO 3');
    // Its lanes are opened before the change ends, and behind the moment from which it holds commands.
    kept.world.network.options = { ...kept.world.network.options, delayMs: [10, 10] };
    kept.world.diskMs = [300, 300];
    client.send('DEL k moved:k');
    await kept.pass(1);
    const isOver = kept.beginChange('live');
    await kept.until(() => kept.proxy.parts!.router.default.position.held, 'the change holds commands');
    await kept.until(isOver, 'the stage has changed');
    await kept.until(() => client.replies.length > 1, 'the command is answered');
    assert.equal(client.replies.at(-1), 2);
    assert.deepEqual(ran, ['target'], 'the former authority is not sent it');
  }, PLAN));

test('A transaction is refused whose keys have different authorities since they were queued', () =>
  KeptWorld.run(
    async (kept) => {
      const client = await kept.client();
      for (const command of ['MULTI', 'SET k v', 'SET also:k v']) await client.ask(command);
      await kept.change('live');
      assert.match(String(await client.ask('EXEC')), /^-.*workload "(default|also)".*which have different authorities/);
      assert.deepEqual(kept.values('0 also:k'), [null, null]);
    },
    { workloads: [{ name: 'also', keys: ['also:*'], stage: 'shadow' }] },
  ));
