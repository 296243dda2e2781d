/** What a server's `COMMAND` says: read once for all connections and shards whose servers give the same reply. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { array, bulk, integer, simple } from '../../../src/resp/encode.js';
import { commandsIn, type Commands } from '../../../src/upstream/server-commands.js';

const entry = (name: string, ...categories: readonly string[]): Buffer =>
  array([
    ...[bulk(name), integer(2), array([simple('readonly')]), integer(1), integer(1), integer(1)],
    array(categories.map(simple)),
  ]);
const read = (reply: Buffer): Commands => {
  const commands = commandsIn(reply);
  assert.ok(typeof commands !== 'string', 'it is no error');
  return commands;
};

test('a reply names the commands with their categories and keys', () => {
  const { names, categories, listed } = read(array([entry('GET', '@read', '@fast')]));
  assert.ok(names.has('get'));
  assert.deepEqual([...categories.get('get')!], ['read', 'fast']);
  assert.deepEqual(listed.get('get')!.keys(2), [1]);
});

test('the same bytes are read once, and other ones are read for themselves', () => {
  const reply = array([entry('get')]);
  const first = read(reply);
  const other = read(array([entry('set')]));
  assert.equal(read(Buffer.from(reply)), first);
  assert.deepEqual([other.names.has('set'), other.names.has('get')], [true, false]);
});

test('what was read is kept apart from the buffer that it came in', () => {
  const reply = array([entry('get')]);
  const before = read(reply);
  reply.write('set', reply.indexOf('get'));
  assert.ok(read(reply).names.has('set'));
  assert.equal(read(array([entry('get')])), before);
});

test('after several other replies, the first one is read again', () => {
  const reply = array([entry('get')]);
  const before = read(reply);
  for (const name of ['a', 'b', 'c', 'd']) read(array([entry(name)]));
  const again = read(reply);
  assert.notEqual(again, before);
  assert.deepEqual(again.names, before.names);
});

test('an error is returned as it is, and never kept', () => {
  assert.equal(commandsIn(Buffer.from('-NOPERM no\r\n')), 'NOPERM no');
  assert.equal(commandsIn(Buffer.from('-NOPERM no\r\n')), 'NOPERM no');
});
