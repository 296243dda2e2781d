/**
 * Rule 3 for clients that wait: a flip moves those that block, and lets no EXEC pass that watched the old authority.
 *
 * Needs real servers: CLIENT UNBLOCK of both servers, and WATCH behind it.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { until } from '../../support/shard.js';
import { patienceMs } from '../../support/patience.js';
import { withScene } from './scene.js';

const blockedAt = async (server: Redis): Promise<number> =>
  Number(/blocked_clients:(\d+)/.exec(await server.info('clients'))?.[1]);

test('clients that block are woken at the new authority, with the time that they had left', async () => {
  await withScene({}, async (scene) => {
    const [source, target] = [scene.client({ of: scene.source }), scene.client({ of: scene.target })];
    const writer = await scene.wire();
    await writer.ask('XGROUP', 'CREATE', 'x', 'g', '$', 'MKSTREAM');
    const commands = [
      ['BLPOP', 'l', 0],
      ['BLMOVE', 'from', 'to', 'LEFT', 'RIGHT', 0],
      ['BZPOPMIN', 'z', 0],
      ['XREADGROUP', 'GROUP', 'g', 'c', 'BLOCK', 0, 'STREAMS', 'x', '>'],
      ['XREAD', 'BLOCK', 0, 'STREAMS', 'x', '$'],
    ];
    const wires = await Promise.all(commands.map(() => scene.wire()));
    for (const [i, wire] of wires.entries()) wire.send(...commands[i]);
    const short = await scene.wire();
    const began = Date.now();
    short.send('BRPOP', 'never', 1.5);
    await until(async () => (await blockedAt(source)) === 6);
    // A part of what the short one waits is over when the stage changes.
    await sleep(400);
    await scene.shard.shard.changeStage({ workload: 'default', stage: 'live' });
    await until(async () => (await blockedAt(source)) === 0 && (await blockedAt(target)) === 6);
    await writer.pipeline([
      ['RPUSH', 'l', 'a', 'b'],
      ['RPUSH', 'from', 'm'],
      ['ZADD', 'z', 1, 'n'],
      ['XADD', 'x', '1-1', 'f', 'v'],
    ]);
    const replies = await Promise.all(wires.map((wire) => wire.frame()));
    assert.deepEqual(replies.slice(0, 3), [
      '*2\r\n$1\r\nl\r\n$1\r\na',
      '$1\r\nm',
      '*3\r\n$1\r\nz\r\n$1\r\nn\r\n$1\r\n1',
    ]);
    for (const reply of replies.slice(3)) assert.match(reply, /1-1/);
    assert.equal(await short.frame(), '*-1');
    const took = Date.now() - began;
    assert.ok(took >= 1_450 && took < patienceMs(2_500), `it blocked for ${took} ms instead of 1500`);
    await scene.assertEqual();
    assert.deepEqual(scene.shard.snapshot().mismatches, {});
  });
});

test('clients that push and pop notice nothing of flips', async () => {
  await withScene({}, async (scene) => {
    const done = { pushed: 0, popped: 0, ended: false };
    const values = new Set<string>();
    const push = async (n: number): Promise<void> => {
      const wire = await scene.wire();
      while (!done.ended) {
        await wire.ask('RPUSH', `q:${n}`, `${n}-${done.pushed++}`);
        await sleep(1);
      }
    };
    const pop = async (n: number): Promise<void> => {
      const wire = await scene.wire();
      while (!done.ended || done.popped < done.pushed) {
        const reply = await wire.ask('BLPOP', `q:${n % 2}`, `q:${(n + 1) % 2}`, 0.5);
        if (reply === '*-1') continue;
        const value = reply.slice(reply.lastIndexOf('\n') + 1);
        assert.ok(!values.has(value), `${value} was popped twice`);
        values.add(value);
        done.popped++;
      }
    };
    const running = [0, 1, 0, 1].map((n, i) => (i < 2 ? push(n) : pop(n))).concat([pop(0), pop(1)]);
    const flow = (from = done.popped): Promise<void> => until(() => done.popped > from + 50);
    for (const stage of ['live', 'shadow', 'live', 'rampdown', 'live', 'shadow'] as const) {
      await flow();
      await scene.shard.shard.changeStage({ workload: 'default', stage });
    }
    await flow();
    done.ended = true;
    await Promise.all(running);
    assert.equal(values.size, done.pushed);
    await scene.assertEqual();
    assert.deepEqual(scene.shard.snapshot().mismatches, {});
  });
});

test('EXEC does nothing where the watched authority has changed, and the next one works', async () => {
  await withScene({}, async (scene) => {
    for (const protocol of [2, 3]) {
      const wire = await scene.wire();
      await wire.ask('HELLO', protocol);
      const nil = protocol === 2 ? '*-1' : '_';
      for (const stage of ['live', 'shadow'] as const) {
        assert.deepEqual(await wire.pipeline([['WATCH', 'k'], ['GET', 'other'], ['MULTI'], ['INCR', 'k']]), [
          '+OK',
          protocol === 2 ? '$-1' : '_',
          '+OK',
          '+QUEUED',
        ]);
        await scene.shard.shard.changeStage({ workload: 'default', stage });
        assert.equal(await wire.ask('EXEC'), nil);
        assert.deepEqual(
          (await wire.pipeline([['WATCH', 'k'], ['MULTI'], ['SET', 'k', 'v'], ['DEL', 'k'], ['EXEC']])).slice(-1),
          ['*2\r\n+OK\r\n:1'],
        );
      }
    }
    await scene.assertEqual();
    assert.deepEqual(scene.shard.snapshot().mismatches, {});
  });
});

test('counters that are only raised by check-and-set lose nothing to flips', async () => {
  await withScene({}, async (scene) => {
    let ended = false;
    let raised = 0;
    const raise = async (): Promise<void> => {
      const wire = await scene.wire();
      while (!ended) {
        await wire.ask('WATCH', 'n');
        const [, value] = /\r\n(\d+)$/.exec(await wire.ask('GET', 'n')) ?? ['', '0'];
        const replies = await wire.pipeline([['MULTI'], ['SET', 'n', Number(value) + 1], ['EXEC']]);
        if (replies[2].startsWith('*1')) raised++;
      }
    };
    const blind = async (): Promise<void> => {
      const wire = await scene.wire();
      while (!ended)
        await wire.pipeline([
          ['INCR', 'other'],
          ['GET', 'n'],
        ]);
    };
    const running = [raise(), raise(), raise(), raise(), blind()];
    const flow = (from = raised): Promise<void> => until(() => raised > from + 50);
    for (const stage of ['live', 'shadow', 'live', 'shadow'] as const) {
      await flow();
      await scene.shard.shard.changeStage({ workload: 'default', stage });
    }
    await flow();
    ended = true;
    await Promise.all(running);
    assert.equal(await (await scene.wire()).ask('GET', 'n'), `$${String(raised).length}\r\n${raised}`);
    await scene.assertEqual();
    assert.deepEqual(scene.shard.snapshot().mismatches, {});
  });
});

test('a client whose watching connection is lost is answered when it watches more, and its EXEC does nothing', async () => {
  await withScene({}, async (scene) => {
    const wire = await scene.wire();
    assert.equal(await wire.ask('WATCH', 'a'), '+OK');
    await scene.source.kill('SIGKILL');
    await scene.source.start();
    assert.equal(await scene.client().get('a'), null);
    const answers = wire.pipeline([['WATCH', 'b'], ['GET', 'a'], ['MULTI'], ['INCR', 'b'], ['EXEC']]);
    const late = new Promise<string[]>((resolve) => setTimeout(resolve, 5_000, ['no answer']).unref());
    assert.deepEqual(await Promise.race([answers, late]), ['+OK', '$-1', '+OK', '+QUEUED', '*-1']);
    assert.deepEqual((await wire.pipeline([['WATCH', 'b'], ['MULTI'], ['INCR', 'b'], ['EXEC']])).slice(-1), [
      '*1\r\n:1',
    ]);
  });
});
