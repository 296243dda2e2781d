/** Scripts: which run by their keys, which run alone, which only at the authority, and which are refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, settled, type FakeOptions, type Stages } from '../../../support/context.js';

const READS = "return redis.call('GET', ARGV[1])";
const WRITES = "return redis.call('SET', ARGV[1], 1)";

async function runs(stages: Stages, args: readonly string[], options: FakeOptions = {}) {
  const { client, proxy } = await connect(stages, options);
  client.send(...args);
  await settled();
  return { client, proxy, sent: proxy.sent.map(({ side, command, follow }) => [side, command, follow]) };
}

test('a script that declares its keys goes the way of its keys', async () => {
  const { sent } = await runs({ w: 'live', default: 'shadow' }, ['EVAL', "redis.call('SET', KEYS[1], 1)", '1', 'w:k']);
  assert.deepEqual(sent, [['target', "EVAL redis.call('SET', KEYS[1], 1) 1 w:k", 'write']]);
});

test('without declared keys, a script that only reads is answered by the authority alone', async () => {
  const { sent, proxy } = await runs({ default: 'shadow' }, ['EVAL', READS, '0', 'k']);
  assert.deepEqual(sent, [['source', `EVAL ${READS} 0 k`, 'nothing']]);
  assert.equal(proxy.suspects.length, 0);
});

test('without declared keys, a script that may write runs when nothing else is in flight', async () => {
  const { client, proxy } = await connect({ default: 'shadow' });
  const other = await proxy.connect();
  other.send('SET', 'k', 'v');
  client.send('EVAL', WRITES, '0', 'k');
  await settled();
  assert.deepEqual(proxy.took(), ['source SET k v']);
  proxy.answer('+OK');
  for (let i = 0; i < 200 && proxy.sent.length === 0; i++) await settled();
  assert.deepEqual(proxy.took(), [`source EVAL ${WRITES} 0 k`]);
});

test('while workloads have different authorities, a script that hides its keys is refused', async () => {
  const { client, proxy, sent } = await runs({ w: 'live', default: 'shadow' }, ['EVAL', WRITES, '0', 'k']);
  assert.deepEqual([sent, proxy.clients.counts.refused], [[], 1]);
  assert.match(
    client.replies[0],
    /^-ERR shadow-proxy: EVAL without declared keys is refused while workloads have diff/,
  );
  // One that calls no command at all cannot touch a key.
  assert.equal((await runs({ w: 'live', default: 'shadow' }, ['EVAL', 'return 1', '0'])).sent.length, 1);
  const swaps = await runs({ w: 'live', default: 'shadow' }, ['EVAL', "redis.call('SWAPDB', 0, 1)", '1', 'k']);
  assert.match(swaps.client.replies[0], /^-ERR shadow-proxy: EVAL of a script with SWAPDB is refused while/);
});

test('a script that flushes is refused where the target holds keys of others', async () => {
  const FLUSHES = ['EVAL', "redis.call('FLUSHALL')", '1', 'k'];
  const shared = await runs({ default: 'shadow' }, FLUSHES, { sharedTarget: true });
  assert.match(shared.client.replies[0], /FLUSHALL, FLUSHDB or SWAPDB is refused: other shards keep their keys/);
  const foreign = await runs({ default: 'shadow' }, FLUSHES, { ours: false });
  assert.match(foreign.client.replies[0], /is refused: the target may hold keys that the proxy did not write/);
  assert.deepEqual([shared.sent, foreign.sent], [[], []]);
  assert.equal((await runs({ default: 'shadow' }, FLUSHES)).sent.length, 1);
});

test('a script that lists all keys is refused on a shared target that answers', async () => {
  const LISTS = ['EVAL', "return redis.call('KEYS', '*')", '1', 'k'];
  const { client, sent } = await runs({ default: 'complete' }, LISTS, { sharedTarget: true });
  assert.deepEqual(sent, []);
  assert.match(client.replies[0], /a script with SCAN, KEYS, DBSIZE or RANDOMKEY is refused: other shards/);
  assert.equal((await runs({ default: 'off' }, LISTS, { sharedTarget: true })).sent.length, 1);
  assert.equal((await runs({ default: 'complete' }, LISTS)).sent.length, 1);
});

test('what a user may do is asked before a script runs that is written twice', async () => {
  const { client, proxy } = await connect({ default: 'shadow' });
  let known: Promise<unknown> | null = new Promise((resolve) => setImmediate(resolve));
  proxy.servers.source.privileges.learn = () => {
    const asked = known;
    known = null;
    return asked;
  };
  client.send('EVAL', "redis.call('SET', KEYS[1], 1)", '1', 'k');
  assert.deepEqual([client.waits, proxy.took()], [['promise'], []]);
  await settled();
  assert.equal(proxy.took().length, 1);
});
