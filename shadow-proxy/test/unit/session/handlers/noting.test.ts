/** A script counts as accepted when a server has taken its text from a client, and not before. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { argumentsOf } from '../../../../src/resp/decode.js';
import { encodeCommand } from '../../../../src/resp/encode.js';
import type { Script } from '../../../../src/script/catalog.js';
import { connect, settled } from '../../../support/context.js';

const TEXT = "return redis.call('GET', KEYS[1])";
const scriptOf = (proxy: Awaited<ReturnType<typeof connect>>['proxy']): Script =>
  proxy.sequencer.scripts.find(argumentsOf(encodeCommand(['EVAL', TEXT, '1', 'k']))) as Script;

test('EVAL notes its script when the server has answered without an error', async () => {
  for (const [reply, accepted] of [
    ['$1 v', true],
    ['$-1', true],
    ['-NOPERM this user has no permissions', false],
  ] as const) {
    const { client, proxy } = await connect();
    client.send('EVAL', TEXT, '1', 'k');
    await settled();
    assert.equal(scriptOf(proxy).accepted, false);
    proxy.answer(reply);
    assert.deepEqual([scriptOf(proxy).accepted, client.replies], [accepted, [reply]], reply);
  }
});

test('a connection that is lost accepts nothing, and closes the client', async () => {
  const { client, proxy } = await connect();
  client.send('EVAL', TEXT, '1', 'k');
  await settled();
  proxy.lose('source');
  assert.deepEqual([scriptOf(proxy).accepted, client.destroyed], [false, true]);
});
