/**
 * Rule 19: no reservation outlives its operation, and one that grows old is seen.
 *
 * Not simulated yet: a script without keys that wakes a client whose reply is late.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Link } from '../../../src/local/relay.js';
import type { Argument } from '../../../src/resp/encode.js';
import { until } from '../../support/shard.js';
import type { Wire } from '../../support/wire.js';
import { withScene, type Scene } from './scene.js';

/** Sends a command that blocks, on a new client; resolves once it blocks at the source, with its connection there. */
async function block(scene: Scene, ...command: readonly Argument[]): Promise<{ client: Wire; link: Link }> {
  const client = await scene.wire();
  // The shared lane of its database is open before the private one.
  await client.ask('PING');
  client.send(...command);
  const source = scene.client({ of: scene.source });
  let port = 0;
  await until(async () => {
    const list = (await source.call('CLIENT', 'LIST')) as string;
    port = Number(/^id=\d+ addr=127\.0\.0\.1:(\d+) .* flags=b /m.exec(list)?.[1]);
    return port > 0;
  });
  // The proxy opens others at the same time: a lane of the client's, one that watches the server.
  const link = scene.toSource.links.find(({ server }) => server.localPort === port)!;
  return { client, link };
}

const HIDDEN = "return redis.call('SET', ARGV[1] .. ':x', '1')";

for (const [name, wakes] of [
  ['a transaction that runs alone', [['MULTI'], ['EVAL', HIDDEN, 0, 'a'], ['RPUSH', 'q', 'job'], ['EXEC']]],
  ['a script that runs alone', [['EVAL', "return redis.call('RPUSH', ARGV[1], 'job')", 0, 'q']]],
] as const) {
  test(`a key is free again after ${name} has woken a client whose reply comes late`, async () => {
    await withScene({}, async (scene) => {
      const { client, link } = await block(scene, 'BLPOP', 'q', 0);
      link.hold('down');
      const pusher = await scene.wire();
      const pushed = pusher.pipeline(wakes);
      await until(() => {
        const { byAge, oldestMs } = scene.shard.snapshot().reservations;
        return oldestMs > 0 && byAge['under-1s'] + byAge['under-10s'] > 0;
      });
      link.release();
      await pushed;
      assert.match(await client.frame(2_000), /job$/);
      assert.equal(await (await scene.wire()).pipeline([['RPUSH', 'q', 'next']], 2_000).then(([reply]) => reply), ':1');
      assert.equal(await (await scene.wire()).pipeline([['SWAPDB', 4, 5]], 2_000).then(([reply]) => reply), '+OK');
      await scene.shard.shard.changeStage({ workload: 'default', stage: 'dualwrite' });
      await scene.assertEqual();
      assert.deepEqual(scene.shard.snapshot().reservations, {
        byAge: { 'under-1s': 0, 'under-10s': 0, older: 0 },
        oldestMs: 0,
        longestWaitMs: 0,
      });
    });
  });
}
