/** What parts say, and what they add up to: no server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  decodeCounter,
  decodeWindow,
  encodeCounter,
  encodeWindow,
  EMPTY_COUNTER,
  newEpoch,
  resetAll,
  totals,
  writerId,
  type CounterPart,
} from '../src/layout.js';

const count = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
const id = fc.constantFrom('eu.app.1', 'eu.app.2', 'us.app.1', 'us-2.web_1.mf3k-1a');
const plain = { noNullPrototype: true };
const tally = fc.record({ up: count, down: count }, plain);
const counterPart = fc.record(
  { up: count, down: count, reset: fc.dictionary(id, tally).map((each) => new Map(Object.entries(each))) },
  plain,
);
const windowPart = fc.array(fc.tuple(count, count)).map((buckets) => new Map(buckets));

const key = (): string => 'the:key';
const code = (expected: string) => (error: unknown) => (error as { code?: string }).code === expected;

test('a part reads as it was written, and no server takes it for an integer', () => {
  fc.assert(
    fc.property(counterPart, windowPart, (counter, window) => {
      assert.deepEqual(decodeCounter(encodeCounter(counter), key), counter);
      assert.deepEqual(decodeWindow(encodeWindow(window), key), window);
      for (const value of [encodeCounter(counter), encodeWindow(window)]) assert.ok(Number.isNaN(Number(value)));
    }),
  );
});

test('what is no part of ours is an error that names the key', () => {
  const wrong = [
    '',
    '5',
    'c',
    'c 1',
    'c 1 x',
    'c -1 2',
    'c 1 2 eu.a.b',
    'c 1 2 eu.a.b=1',
    'w 1',
    'w 1=',
    'w =1',
    'x 1 2',
    'c 1 99999999999999999',
  ];
  for (const value of wrong) {
    if (!value.startsWith('w'))
      assert.throws(
        () => decodeCounter(value, key),
        (error) => code('FOREIGN_VALUE')(error) && /the:key/.test(String(error)),
        value,
      );
    if (!value.startsWith('c')) assert.throws(() => decodeWindow(value, key), code('FOREIGN_VALUE'), value);
  }
});

/** One writer adds; everybody sees of it what they see; any may reset what it sees. */
type Step = { readonly by: number; readonly add: number } | { readonly by: number; readonly resets: readonly number[] };
const WRITERS = 3;
const writer = fc.integer({ min: 0, max: WRITERS - 1 });
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ by: writer, add: fc.integer({ min: -9, max: 9 }) }),
  fc.record({ by: writer, resets: fc.uniqueArray(writer) }),
);

test('a reset takes off what it saw, and nothing else, in whatever order it is seen', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const parts: CounterPart[] = Array.from({ length: WRITERS }, () => EMPTY_COUNTER);
      /** What of each writer was not yet reset: up and down. */
      const live = Array.from({ length: WRITERS }, () => ({ up: 0, down: 0 }));
      for (const each of steps) {
        if ('add' in each) {
          const side = each.add > 0 ? 'up' : 'down';
          parts[each.by] = { ...parts[each.by], [side]: parts[each.by][side] + Math.abs(each.add) };
          live[each.by][side] += Math.abs(each.add);
        } else {
          parts[each.by] = resetAll(parts[each.by], new Map(each.resets.map((i) => [`w${i}`, parts[i]])));
          for (const i of each.resets) live[i] = { up: 0, down: 0 };
        }
      }
      const sum = {
        up: live.reduce((all, { up }) => all + up, 0),
        down: live.reduce((all, { down }) => all + down, 0),
      };
      assert.deepEqual(totals(new Map(parts.map((part, i) => [`w${i}`, part]))), sum);
      assert.deepEqual(totals(new Map(parts.map((part, i): [string, CounterPart] => [`w${i}`, part]).reverse())), sum);
    }),
  );
});

test('a part that a server has set back counts as nothing below what was reset, and never as less', () => {
  const reset = resetAll(EMPTY_COUNTER, new Map([['w', { ...EMPTY_COUNTER, up: 10 }]]));
  assert.deepEqual(
    totals(
      new Map([
        ['w', { ...EMPTY_COUNTER, up: 4 }],
        ['me', reset],
      ]),
    ),
    { up: 0, down: 0 },
  );
  assert.deepEqual(
    totals(
      new Map([
        ['w', { ...EMPTY_COUNTER, up: 12 }],
        ['me', reset],
      ]),
    ),
    { up: 2, down: 0 },
  );
});

test('a writer is named by what may stand in a key, and no two starts are one', () => {
  assert.equal(writerId({ region: 'eu', writer: 'app-1', epoch: newEpoch(0, 0.5) }), 'eu.app-1.0-zik0zk');
  for (const region of ['', 'e.u', 'e u', 'x'.repeat(65), 'é'])
    assert.throws(() => writerId({ region, writer: 'w', epoch: '1' }), code('OPTION'));
  assert.notEqual(newEpoch(1, 0.1), newEpoch(1, 0.2));
  assert.notEqual(newEpoch(1, 0.1), newEpoch(2, 0.1));
});
