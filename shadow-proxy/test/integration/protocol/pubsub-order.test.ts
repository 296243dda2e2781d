/**
 * SUBSCRIBE takes effect where it was received, as at the server: what comes after it is heard, by whomever it is sent.
 *
 * Not simulated yet: a PUBLISH less than a millisecond behind another client's SUBSCRIBE, without a fault.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Argument } from '../../../src/resp/encode.js';
import { withScene } from '../rules/scene.js';
import { until } from '../../support/shard.js';

const ROUNDS = 15;

for (const [how, subscribe, publish] of [
  ['PUBLISH', ['SUBSCRIBE', 'c'], [['PUBLISH', 'c', 'hi']]],
  ['PUBLISH behind a pattern', ['PSUBSCRIBE', '[bc]*'], [['PUBLISH', 'c', 'hi']]],
  ['PUBLISH inside MULTI', ['SUBSCRIBE', 'c'], [['MULTI'], ['PUBLISH', 'c', 'hi'], ['EXEC']]],
  ['a script', ['SUBSCRIBE', 'c'], [['EVAL', "return redis.call('PUBLISH', KEYS[1], ARGV[1])", 1, 'c', 'hi']]],
] as const) {
  test(`${how} 0.5 ms after another client's ${subscribe[0]} is heard, ${ROUNDS} of ${ROUNDS}`, async () => {
    await withScene({}, async (scene) => {
      scene.toSource.delayMs = 5;
      const publisher = await scene.wire();
      await publisher.ask('PING');
      for (let i = 0; i < ROUNDS; i++) {
        const subscriber = await scene.wire();
        await subscriber.ask('PING');
        // Behind a command whose reply is still to come, every other time.
        const first: Argument[][] = i % 2 === 0 ? [] : [['GET', 'k']];
        for (const command of [...first, [...subscribe]]) subscriber.send(...command);
        await sleep(0.5);
        const replies = await publisher.pipeline(publish);
        assert.match(replies.at(-1)!, /(^|\n):1$/, `round ${i}: ${replies.join(' ')}`);
        const heard = await subscriber.frames(first.length + 2);
        assert.match(heard.at(-1)!, /message\r\n[^]*hi$/);
        subscriber.destroy();
        await scene.shard.settled();
      }
    });
  });
}

test('a client that has sent UNSUBSCRIBE gets no message that is published later, and PUBSUB counts each SUBSCRIBE that the proxy has received', async () => {
  await withScene({}, async (scene) => {
    scene.toSource.delayMs = 5;
    const [subscriber, publisher] = [await scene.wire(), await scene.wire()];
    await Promise.all([subscriber.ask('PING'), publisher.ask('PING')]);
    for (let i = 0; i < ROUNDS; i++) {
      subscriber.send('SUBSCRIBE', 'c');
      await sleep(0.5);
      assert.equal(await publisher.ask('PUBSUB', 'NUMSUB', 'c'), '*2\r\n$1\r\nc\r\n:1');
      await subscriber.frame();
      subscriber.send('UNSUBSCRIBE', 'c');
      await sleep(0.5);
      assert.equal(await publisher.ask('PUBLISH', 'c', 'hi'), ':0');
      assert.match(await subscriber.frame(), /unsubscribe/);
    }
    assert.deepEqual(subscriber.unread, []);
  });
});

test('a PUBLISH waits neither for subscribers of other channels nor for those that came later', async () => {
  await withScene({}, async (scene) => {
    const publisher = await scene.wire();
    await publisher.ask('PING');
    scene.toSource.holdLater('down');
    const stuck = await scene.wire();
    await stuck.ask('PING');
    stuck.send('SUBSCRIBE', 'other');
    await until(() => scene.toSource.waiting('down') > 0);
    assert.equal(await publisher.ask('PUBLISH', 'c', 'hi'), ':0');
    publisher.send('PUBLISH', 'other', 'hi');
    // No reply may come: it would have by now.
    await sleep(20);
    assert.deepEqual(publisher.unread, []);
    stuck.destroy();
    assert.equal(await publisher.frame(), ':0');
    scene.toSource.release();
  });
});
