/** Pairs of replies that wait until their key is no suspect any more. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Router } from '../../../src/route/router.js';
import { DeferredPairs, type DeferredPair } from '../../../src/suspects/deferred.js';
import { Suspects } from '../../../src/suspects/suspects.js';

const router = new Router([], { stage: 'shadow', percent: 100 });
const workload = router.default;
const keyed = (name: string): Buffer => Buffer.from(name);
const pair = (change: Partial<DeferredPair> = {}): DeferredPair => ({
  ...{ db: 0, workload, read: keyed('GET k'), keys: [keyed('k')], pairs: 1, tries: 1 },
  ...change,
});

function scene(...keys: string[]) {
  const suspects = new Suspects(
    router,
    () => undefined,
    (suspect) => deferred.cleared(suspect),
  );
  const deferred = new DeferredPairs(suspects);
  const marked = keys.map((key) => {
    suspects.mark(0, keyed(key), workload, 'script');
    return deferred.suspectOf(0, [keyed(key)])!;
  });
  return { suspects, deferred, marked };
}

test('a read that clients repeat is compared once, and stands for all of its pairs', () => {
  const { deferred, marked } = scene('k');
  for (let i = 0; i < 5; i++) assert.equal(deferred.add(marked[0], pair()), true);
  assert.equal(deferred.pending, 1);
  const taken = deferred.take(0, keyed('k'));
  assert.deepEqual([taken.length, taken[0].pairs, deferred.pending], [1, 5, 1]);
});

test('beyond 16 different reads of a key its values are compared; of several keys, nothing can stand for the read', () => {
  const { deferred, marked } = scene('k');
  for (let i = 0; i < 20; i++) assert.equal(deferred.add(marked[0], pair({ read: keyed(`GET k ${i}`) })), true);
  const two = pair({ read: keyed('MGET k l'), keys: [keyed('k'), keyed('l')] });
  assert.equal(deferred.add(marked[0], two), false);
  const taken = deferred.take(0, keyed('k'));
  assert.deepEqual([taken.length, taken.at(-1)!.read, taken.at(-1)!.pairs], [17, null, 4]);
});

test('a pair that was compared again five times waits no more, not even behind a new one of the same read', () => {
  const { deferred, marked } = scene('k');
  deferred.add(marked[0], pair({ tries: 5 }));
  deferred.add(marked[0], pair());
  assert.equal(deferred.take(0, keyed('k'))[0].tries, 5);
  assert.equal(deferred.add(marked[0], pair({ tries: 6 })), false);
});

test('pairs of a key that is no suspect any more are compared at once', () => {
  const { suspects, deferred, marked } = scene('k', 'l');
  const ready: string[] = [];
  deferred.ready = (_db, key) => ready.push(key.toString());
  deferred.add(marked[0], pair());
  for (const suspect of marked) assert.ok(suspects.clear(suspect, suspect.generation));
  assert.deepEqual(ready, ['k']);
});
