/** Which shard owns a key where shards share a target. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Owners, type Owns } from '../../../src/route/owner.js';
import { isPart } from '../../../src/route/counter-keys.js';

const A: Owns = { patterns: ['a:*', 'aa:*'] };
const B: Owns = { patterns: ['b:*'] };
const ask = (owners: Owners, keys: readonly string[]): readonly string[] =>
  keys.map((key) => owners.of(Buffer.from(key), 0, Buffer.byteLength(key)));
const areOthers = (owners: Owners, keys: readonly string[]): readonly boolean[] | null =>
  owners.ofOtherShards && keys.map((key) => owners.ofOtherShards!(Buffer.from(key), 0, Buffer.byteLength(key)));
const KEYS = ['a:1', 'aa:1', 'b:1', 'c:1'];

test('a key belongs to the shard whose patterns match it, or to no shard', () => {
  assert.deepEqual(ask(new Owners(A, [B]), KEYS), ['mine', 'mine', 'another', 'nobody']);
  assert.deepEqual(ask(new Owners(null, [B]), KEYS), ['nobody', 'nobody', 'another', 'nobody']);
  assert.deepEqual(ask(new Owners(A, [null]), KEYS), ['mine', 'mine', 'nobody', 'nobody']);
  assert.deepEqual(ask(new Owners(A, [A, B]), ['a:1']), ['mine'], 'its own word comes first');
});

test('a key that a shard does not name is another’s; if the shard names no keys, only keys that another names are', () => {
  assert.deepEqual(areOthers(new Owners(A, [B]), KEYS), [false, false, true, true]);
  assert.deepEqual(areOthers(new Owners(null, [B]), KEYS), [false, false, true, false]);
  assert.deepEqual(areOthers(new Owners(A, []), KEYS), [false, false, true, true]);
  assert.equal(areOthers(new Owners(null, []), KEYS), null);
  assert.equal(areOthers(new Owners(null, [null]), KEYS), null);
  assert.equal(new Owners(null, [B]).mine, null);
  assert.equal(new Owners(A, [B]).mine!(Buffer.from('a:1'), 0, 3), true);
});

test('slots are owned from the first to the last of each range', () => {
  // 'foo' has slot 12182.
  const owners = (first: number, last: number): readonly string[] =>
    ask(
      new Owners(
        {
          slots: [
            [0, 0],
            [first, last],
          ],
        },
        [],
      ),
      ['foo'],
    );
  assert.deepEqual(owners(12182, 12182), ['mine']);
  assert.deepEqual(owners(12183, 16383), ['nobody']);
  assert.deepEqual(owners(1, 12181), ['nobody']);
  assert.deepEqual(owners(12000, 12182), ['mine']);
});

test('the parts of counters are recognized by their name', () => {
  assert.deepEqual(
    ['shadow-proxy:counters:a', 'shadow-proxy:counters:', 'shadow-proxy:counters', 'shadow-proxy:counter:a', 'x'].map(
      (key) => isPart(Buffer.from(key)),
    ),
    [true, true, false, false, false],
  );
});
