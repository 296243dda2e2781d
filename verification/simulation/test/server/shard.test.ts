/** The proxy between two models: it starts, replicates and copies, and asks for nothing that they lack. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTestShard } from '../../../../shadow-proxy/test/support/shard.js';
import { withWire } from '../../../../shadow-proxy/test/support/wire.js';
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
      const others = await wire.pipeline([
        ['HELLO', '3'],
        ['RPUSH', 'l', 'a', 'b'],
        ['BLPOP', 'l', '1'],
        ['HSET', 'h', 'f', 'v'],
        ['HINCRBYFLOAT', 'h', 'n', '0.1'],
        ['SADD', 's', 'a', 'b', 'c'],
        ['SPOP', 's'],
        ['ZADD', 'z', '1.5', 'm'],
        ['ZINCRBY', 'z', '1', 'm'],
        ['XADD', 'x', '*', 'f', 'v'],
        ['XGROUP', 'CREATE', 'x', 'g', '0'],
        ['XREADGROUP', 'GROUP', 'g', 'c', 'STREAMS', 'x', '>'],
        ['SET', 'timed', 'v', 'PX', '100000'],
        ['EVAL', "return redis.call('INCRBY', KEYS[1], ARGV[1])", '1', 'n', '5'],
        ['SCAN', '0', 'COUNT', '1000'],
      ]);
      assert.deepEqual(
        others.filter((reply) => reply.startsWith('-')),
        [],
      );
    });
    await shard.settled();
    assert.deepEqual(shard.findings(), []);
    const held = ({ model }: typeof source): unknown =>
      [...model.keyspace()].map(([id, keys]) => [id, [...keys].map(([key, { type }]) => [key, type]).sort()]);
    assert.deepEqual(held(target), held(source));
    const names = ['h', 'k', 'l', 'n', 's', 'timed', 'x', 'z'];
    assert.deepEqual([...source.model.keyspace().get(0)!.keys()].sort(), names);
    assert.deepEqual([...source.model.lacking, ...target.model.lacking], []);
  } finally {
    await shard.stop();
    await source.stop();
    await target.stop();
  }
});
