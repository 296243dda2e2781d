/** A difference is judged by what is known at its place in the order. Real servers answer too fast to show it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

const LATE_MS = 100;

/** Writes a key that only the server can name. */
const HIDES = "redis.call('SET', KEYS[1] .. ARGV[1], ARGV[2]) return 1";

const addScript = ({ source, target }: KeptWorld): void => {
  for (const { model } of [source, target])
    model.addScript(HIDES, ({ call, keys, args }) => {
      call('SET', keys[0] + args[0], args[1]);
      return 1;
    });
};

test('What a script has changed that is not answered yet is no mismatch', () =>
  KeptWorld.run(
    async (kept) => {
      const [writer, reader] = [await kept.client(), await kept.client()];
      await reader.ask('HELLO 3');
      await writer.ask(['EVAL', HIDES, '1', 'k', ':', 'one']);
      await reader.ask('GET k:');
      await kept.until(() => kept.isClean, 'the workload is clean');
      kept.holdReplies(kept.source, LATE_MS, ([name]) => name === 'EVAL');
      writer.send(['EVAL', HIDES, '1', 'k', ':', 'two']);
      await kept.pass(5);
      assert.equal(await reader.ask('GET k:'), '$two');
      await kept.pass(2 * LATE_MS);
      await kept.until(() => kept.isClean, 'the workload is clean');
      assert.deepEqual(kept.proxy.snapshot()!.mismatches, {});
      assert.deepEqual(kept.values('0 k:'), ['two', 'two']);
    },
    {},
    addScript,
  ));

test('A key that expired on the mirror first is no mismatch while a write of it is on its way', () =>
  KeptWorld.run(async (kept) => {
    const [reader, writer] = [await kept.client(), await kept.client()];
    await writer.ask('HELLO 3');
    await writer.ask('GET k');
    await reader.ask('GET k');
    await kept.pass(10);
    // The proxy does not know when it expires.
    for (const server of [kept.source, kept.target]) kept.bypass(server, 'SET k one PX 50');
    const { expireAt } = kept.source.entry('0 k')!;
    await kept.pass(expireAt! - kept.source.unixMs - 1);
    kept.holdReplies(kept.source, LATE_MS, ([name]) => name === 'SET');
    reader.send('GET k');
    await kept.pass(2);
    writer.send('SET k two');
    await kept.pass(5 * LATE_MS);
    assert.deepEqual(reader.replies.at(-1), '$one');
    await kept.until(() => kept.isClean, 'the workload is clean');
    assert.deepEqual(kept.proxy.snapshot()!.mismatches, {});
    assert.deepEqual(kept.values('0 k'), ['two', 'two']);
  }));
