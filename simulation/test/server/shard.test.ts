/** The proxy between two models: it starts, replicates and copies, and asks for nothing that they lack. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTestShard } from '../../../shadow-proxy/test/support/shard.js';
import { withWire } from '../../../shadow-proxy/test/support/wire.js';
import { listen } from './listen.js';

test('a shard serves clients between a model of Redis and a model of KeyDB', async () => {
  const [source, target] = [await listen('redis'), await listen('keydb')];
  const shard = await startTestShard({
    source: `redis://127.0.0.1:${source.port}`,
    target: `redis://127.0.0.1:${target.port}`,
  });
  try {
    await withWire(shard.port, async (wire) => {
      const replies = await wire.pipeline([
        ['SET', 'k', 'v'],
        ['INCR', 'n'],
        ['EXPIRE', 'n', '100', 'NX'],
        ['MULTI'],
        ['APPEND', 'k', 'w'],
        ['GET', 'k'],
        ['EXEC'],
        ['GET', 'k'],
      ]);
      assert.deepEqual(replies.slice(-1), ['$2\r\nvw']);
    });
    await shard.settled();
    assert.deepEqual(shard.findings(), []);
    const held = ({ model }: typeof source): unknown =>
      [...model.keyspace()].map(([id, keys]) => [id, [...keys].map(([key, { value }]) => [key, value]).sort()]);
    assert.deepEqual(held(target), held(source));
    assert.deepEqual(held(source), [[0, [['k', 'vw'], ['n', '1']]]]); // prettier-ignore
    assert.deepEqual([...source.model.lacking, ...target.model.lacking], []);
  } finally {
    await shard.stop();
    await source.stop();
    await target.stop();
  }
});
