/** A client's own connection to the server is lost while the client waits to be given it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { needsKeydb } from '../support/servers.js';
import { until } from '../support/shard.js';
import { withScene } from '../rules/scene.js';

test('a WATCH whose connection is lost before it was sent is answered, and its EXEC does nothing', async (t) => {
  if (!(await needsKeydb(t))) return;
  await withScene({}, async ({ wire, toSource }) => {
    const [first, second] = [await wire(), await wire()];
    await first.pipeline([['SELECT', 1], ['GET', 'k']]);
    await second.ask('GET', 'k');
    const before = new Set(toSource.links);
    await second.pipeline([['WATCH', 'k'], ['UNWATCH']]);
    const idle = toSource.links.filter((link) => !before.has(link));
    assert.equal(idle.length, 1, 'it has a connection of its own, which the next one takes');
    // Connections are given in turn: the second client waits for the first, whose connection is being opened.
    toSource.holdLater('up', 'down');
    const open = toSource.links.length;
    const watched = first.ask('WATCH', 'k');
    await until(() => toSource.links.length > open);
    const answers = second.pipeline([['WATCH', 'k'], ['MULTI'], ['SET', 'k', 'v'], ['EXEC']]);
    // What the proxy receives is handled in turn: it has the second client's WATCH by now.
    await (await wire()).ask('PING');
    idle[0].cut();
    await until(() => !toSource.links.includes(idle[0]));
    await (await wire()).ask('PING');
    toSource.release();
    assert.equal(await watched, '+OK');
    assert.deepEqual(await answers, ['+OK', '+OK', '+QUEUED', '*-1']);
  });
});
