/** The keys of a command frame, those of scripts among them, and the databases that it writes to. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Command } from '../../../src/command/command.js';
import { CommandTable } from '../../../src/command/table.js';
import { encodeCommand } from '../../../src/resp/encode.js';
import { Scripts } from '../../../src/script/catalog.js';
import { FrameKeys, otherDatabase } from '../../../src/script/frame-keys.js';

const keys = new FrameKeys(new CommandTable(), new Scripts());
const frame = (args: readonly string[]): Buffer => encodeCommand(args);
const command = (...args: readonly string[]): Command => new Command(frame(args), 0);

/** `a1 b2`, and whether these are all. */
function each(...args: readonly string[]): readonly [string, boolean] {
  const found: string[] = [];
  // Behind another frame.
  const before = frame(['PING']);
  const all = keys.each(Buffer.concat([before, frame(args)]), before.length, (key, access) =>
    found.push(`${String(key)}${access}`),
  );
  return [found.join(' '), all];
}

test('the keys of a frame come with what it does to them, and whether they are all', () => {
  assert.deepEqual(each('GET', 'a'), ['a1', true]);
  assert.deepEqual(each('SUNIONSTORE', 'd', 'a', 'b'), ['d2 a1 b1', true]);
  assert.deepEqual(each('PING'), ['', true]);
  assert.deepEqual(each('PUBLISH', 'channel', '0'), ['', true], 'no script with a number of keys');
  assert.deepEqual(each('NOSUCH', 'a'), ['', false]);
  assert.deepEqual(each('GET'), ['', false], 'one that the server refuses');
  assert.deepEqual(each('SORT', 'a', 'BY', 'w_*'), ['a1', false]);
  assert.deepEqual(keys.ids(frame(['MGET', 'a', 'b']), 0), ['a', 'b']);
  assert.equal(keys.specOf(frame(['get', 'a']), 0)?.name, 'get');
});

test('a script without declared keys has those that its text names', () => {
  assert.deepEqual(each('EVAL', "redis.call('SET', 'a', redis.call('GET', 'b'))", '0'), ['b1 a3', true]);
  assert.deepEqual(each('EVAL', "redis.call('SET', 'a' .. ARGV[1], 1)", '0', 'x'), ['', false]);
  assert.deepEqual(each('EVAL', "redis.call('GET', 'a' .. ARGV[1]) redis.call('SET', 'b', 1)", '0', 'x'), [
    'b3',
    false,
  ]);
  assert.deepEqual(each('EVAL', 'return 1', '1', 'a'), ['a3', true]);
});

test('written keys come with the database that they are in afterwards', () => {
  const written = (...args: readonly string[]): readonly [string, boolean] => {
    const found: string[] = [];
    const all = keys.eachWritten(1, command(...args), (db, key) => found.push(`${db}:${String(key)}`));
    return [found.join(' '), all];
  };
  assert.deepEqual(written('SET', 'a', '1'), ['1:a', true]);
  assert.deepEqual(written('GET', 'a'), ['', true]);
  assert.deepEqual(written('SUNIONSTORE', 'd', 'a'), ['1:d', true]);
  assert.deepEqual(written('MOVE', 'a', '2'), ['1:a 2:a', true]);
  assert.deepEqual(written('COPY', 'a', 'b', 'DB', '3'), ['3:b', true]);
  assert.deepEqual(written('COPY', 'a', 'b'), ['1:b', true]);
  assert.deepEqual(written('PING'), ['', true]);
  assert.deepEqual(written('FLUSHALL'), ['', false]);
  assert.deepEqual(written('SCRIPT', 'FLUSH'), ['', true], 'it is about code');
  assert.deepEqual(written('NOSUCH'), ['', false]);
  assert.deepEqual(written('EVAL', 'return 1', '0'), ['', true]);
  assert.deepEqual(written('EVAL', "redis.call('SET', 'a' .. ARGV[1], 1)", '0', 'x'), ['', false]);
});

test('each key comes with the databases in which the command looks for it', () => {
  const placed = (...args: readonly string[]): readonly [string, boolean] => {
    const found: string[] = [];
    const all = keys.eachPlaced(1, command(...args), (db, key, access) => found.push(`${db}:${String(key)}${access}`));
    return [found.join(' '), all];
  };
  assert.deepEqual(placed('MOVE', 'a', '2'), ['1:a3 2:a3', true]);
  assert.deepEqual(placed('COPY', 'a', 'b', 'DB', '3'), ['1:a1 3:b3', true]);
  assert.deepEqual(placed('COPY', 'a', 'a', 'REPLACE', 'DB', '3'), ['1:a1 3:a3', true]);
  assert.deepEqual(placed('COPY', 'a', 'b'), ['1:a1 1:b3', true]);
  assert.deepEqual(placed('RENAME', 'a', 'b'), ['1:a3 1:b2', true]);
  assert.deepEqual(placed('NOSUCH', 'a'), ['', false]);
});

test('the other database is that of MOVE, or that behind DB of COPY', () => {
  const other = (text: string): number | null => otherDatabase(command(...text.split(' ')));
  assert.deepEqual(
    ['MOVE a 2', 'move a 0', 'COPY a b DB 3', 'copy a b REPLACE db 4', 'COPY a DB', 'COPY DB DB REPLACE'].map(other),
    [2, 0, 3, 4, null, null],
  );
  assert.deepEqual(
    ['COPY a b DB 3 REPLACE REPLACE REPLACE REPLACE REPLACE', 'SET a b DB 3', '*2\r\n$4\r\nmove\r a b DB 3'].map(other),
    [3, null, null],
  );
  assert.deepEqual(['SET a DB', 'MOVED a 2', 'GET move', 'MGET move a b'].map(other), [null, null, null, null]);
});
