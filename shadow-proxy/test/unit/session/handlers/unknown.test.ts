/** Writes of a server that is newer than the table: they run alone, and what they may have written is suspect. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listedCommands, type ListedCommand } from '../../../../src/command/listed.js';
import { decodeReply } from '../../../../src/resp/decode.js';
import { connect, settled, type FakeProxy } from '../../../support/context.js';

const entry = (name: string, flags: readonly string[], keys: readonly [number, number, number]): ListedCommand => {
  const bulk = (text: string): string => `$${text.length}\r\n${text}\r\n`;
  const reply = `*1\r\n*6\r\n${bulk(name)}:-3\r\n*${flags.length}\r\n${flags.map((flag) => `+${flag}\r\n`).join('')}${keys.map((key) => `:${key}\r\n`).join('')}`;
  return listedCommands(decodeReply(Buffer.from(reply)).reply).get(name)!;
};

function learns(
  proxy: FakeProxy,
  name: string,
  flags: readonly string[],
  keys: readonly [number, number, number],
): void {
  proxy.servers.source.commands.add(name);
  proxy.servers.source.listed.set(name, entry(name, flags, keys));
}

test('its keys are suspect before it is sent, and again afterwards; the client gets its reply', async () => {
  const { client, proxy } = await connect();
  learns(proxy, 'new.set', ['write'], [1, -1, 2]);
  client.send('NEW.SET', 'a', '1', 'b', '2');
  await settled();
  assert.deepEqual(proxy.suspects, ['unknown-command: a', 'unknown-command: b']);
  assert.deepEqual(proxy.took(), ['source NEW.SET a 1 b 2']);
  proxy.answer('+OK');
  await settled();
  assert.deepEqual([client.replies, proxy.suspects.length], [['+OK'], 4]);
});

test('where its keys do not show, every workload is suspect', async () => {
  const { client, proxy } = await connect();
  learns(proxy, 'new.set', ['write', 'movablekeys'], [1, 1, 1]);
  client.send('NEW.SET', 'a');
  await settled();
  assert.deepEqual(proxy.suspects, ['new.set: every key']);
});

test('one that may block, or whose keys have another authority, is refused', async () => {
  const { client, proxy } = await connect({ w: 'live', default: 'shadow' });
  learns(proxy, 'new.pop', ['write', 'blocking'], [1, 1, 1]);
  learns(proxy, 'new.set', ['write'], [1, 1, 1]);
  client.send('NEW.POP', 'a');
  client.send('NEW.SET', 'w:1');
  await settled();
  assert.match(client.replies[0], /^-ERR shadow-proxy: NEW.POP is newer than this version of the proxy, and may block/);
  assert.match(client.replies[1], /^-ERR shadow-proxy: NEW.SET spans workload/);
  assert.deepEqual(proxy.took(), []);
});

test('a read is answered, and nothing is suspect', async () => {
  const { client, proxy } = await connect();
  learns(proxy, 'new.get', ['readonly'], [1, 1, 1]);
  client.send('NEW.GET', 'a');
  assert.deepEqual([proxy.took(), proxy.suspects], [['source NEW.GET a'], []]);
});
