/**
 * A command that has ended, however that was, leaves nothing for its client's next command.
 *
 * Not simulated yet: MASTERDOWN for one command on each way to a server, by a peer that is scripted.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../../support/shard.js';
import type { Wire } from '../../support/wire.js';
import { withScene, type Scene } from '../rules/scene.js';

const NARROW = { failover: 'manual', limits: { downAfterMs: 500 } } as const;
const MASTERDOWN = /^-MASTERDOWN the source /;

/** The source is down, and the proxy answers that to its clients. */
async function stopSource({ source, shard }: Scene): Promise<void> {
  await source.kill('SIGKILL');
  await until(() => shard.snapshot().outage !== null);
}

/** The source is up again, and serves clients of the proxy. */
async function startSource(scene: Scene): Promise<void> {
  await scene.source.start();
  await until(async () => {
    const wire = await scene.wire();
    const reply = await wire.ask('GET', 'none');
    wire.destroy();
    return reply === '$-1';
  });
}

/** A client that connects while the source is down. */
async function connectDown(scene: Scene): Promise<Wire> {
  const wire = await scene.wire();
  assert.match(await wire.ask('GET', 'none'), MASTERDOWN);
  return wire;
}

const READS = {
  XREAD: (stream: string) => ['XREAD', 'BLOCK', 5_000, 'STREAMS', stream, '0'],
  XREADGROUP: (stream: string) => ['XREADGROUP', 'GROUP', 'g', 'c', 'BLOCK', 5_000, 'STREAMS', stream, '>'],
};

for (const [name, read] of Object.entries(READS))
  test(`${name} that is answered MASTERDOWN is not read for the client that asks for another stream`, async () => {
    await withScene(NARROW, async (scene) => {
      await stopSource(scene);
      const wire = await connectDown(scene);
      assert.match(await wire.ask(...read('first')), MASTERDOWN);
      await startSource(scene);
      const writer = await scene.wire();
      for (const stream of ['first', 'second'])
        assert.equal(await writer.ask('XGROUP', 'CREATE', stream, 'g', '0', 'MKSTREAM'), '+OK');
      wire.send(...read('second'));
      await until(async () => (await scene.client({ of: scene.source }).info('clients')).includes('blocked_clients:1'));
      await writer.ask('XADD', 'first', '*', 'for', 'nobody');
      await writer.ask('XADD', 'second', '*', 'for', 'this-client');
      const reply = await wire.frame();
      assert.match(reply, /second\r\n.*this-client/s);
      assert.doesNotMatch(reply, /nobody/);
      assert.equal((await writer.ask('XPENDING', 'first', 'g')).split('\r\n')[1], ':0');
    });
  });

test('a command inside MULTI that is answered MASTERDOWN aborts EXEC, and none of the transaction runs by itself', async () => {
  await withScene(NARROW, async (scene) => {
    const client = await scene.wire();
    assert.equal(await client.ask('MULTI'), '+OK');
    await stopSource(scene);
    assert.match(await client.ask('CLIENT', 'GETNAME'), MASTERDOWN);
    await startSource(scene);
    assert.equal(await client.ask('SET', 'k', 'v'), '+QUEUED');
    assert.match(await client.ask('EXEC'), /^-EXECABORT /);
    assert.equal(await client.ask('GET', 'k'), '$-1');
  });
});

test('AUTH is answered MASTERDOWN, and the client stays connected', async () => {
  await withScene(NARROW, async (scene) => {
    await stopSource(scene);
    const wire = await connectDown(scene);
    assert.match(await wire.ask('AUTH', 'pw'), MASTERDOWN);
    assert.match(await wire.ask('HELLO', 3, 'AUTH', 'default', 'pw'), MASTERDOWN);
    await startSource(scene);
    assert.equal(await wire.ask('SET', 'k', 'v'), '+OK');
  });
});

test('a WATCH that the server refuses is not watched: EXEC runs after a change of stage', async () => {
  await withScene({}, async (scene) => {
    for (const of of [scene.source, scene.target])
      await scene.client({ of }).call('ACL', 'SETUSER', 'u', 'on', '>pw', '+@all', '~k', '~j');
    const wire = await scene.wire();
    assert.equal(await wire.ask('AUTH', 'u', 'pw'), '+OK');
    assert.match(await wire.ask('WATCH', 'none'), /^-NOPERM/);
    await scene.shard.shard.promote({
      ...{ workload: 'default', to: 'live', percent: 100 },
      ...{ force: true, forceUsers: true, reason: 'the test' },
    });
    assert.deepEqual(await wire.pipeline([['MULTI'], ['SET', 'k', 'v'], ['EXEC']]), ['+OK', '+QUEUED', '*1\r\n+OK']);
  });
});

test('what comes behind CLIENT UNBLOCK is answered behind it', async () => {
  await withScene({}, async (scene) => {
    const wire = await scene.wire();
    const id = (await wire.ask('CLIENT', 'ID')).slice(1);
    const other = await scene.wire();
    for (let i = 0; i < 20; i++) {
      wire.send('BLPOP', 'l', 0);
      await until(async () => /flags=b /.test(await other.ask('CLIENT', 'LIST', 'ID', id)));
      const replies = await other.pipeline([
        ['CLIENT', 'UNBLOCK', id],
        ['ECHO', 'behind'],
      ]);
      assert.deepEqual(replies, [':1', '$6\r\nbehind']);
      assert.equal(await wire.frame(), '*-1');
    }
  });
});
