/** Suspicions of keys: which end, which stay, and what each says. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { REPLY_LOST } from '../../../src/pipeline/suspicion.js';
import { Router } from '../../../src/route/router.js';
import { Suspects, type Suspect } from '../../../src/suspects/suspects.js';

const REST = { stage: 'shadow', percent: 100 } as const;
const made = () => {
  const marked: string[] = [];
  const router = new Router([], REST);
  const suspects = new Suspects(router, ({ reason }) => marked.push(reason));
  const { default: workload } = router;
  const mark = (key: string, reason: string, db = 0): Suspect => {
    suspects.mark(db, Buffer.from(key), workload, reason);
    return suspects.get(`${db}:${key}`)!;
  };
  return { suspects, workload, marked, mark };
};

test('a repair that began before the newest suspicion does not end it', () => {
  const { suspects, mark } = made();
  const suspect = mark('a', 'mismatch');
  const began = suspect.generation;
  mark('a', 'overflow');
  assert.equal(suspects.clear(suspect, began), false);
  assert.equal(suspects.size, 1);
  assert.equal(suspects.clear(suspect, suspect.generation), true);
  assert.equal(suspects.size, 0);
});

test('a repair of a suspicion that was ended ends none that came after', () => {
  const { suspects, mark } = made();
  const first = mark('a', 'mismatch');
  suspects.clear(first, first.generation);
  const second = mark('a', 'mismatch');
  assert.notEqual(second, first);
  assert.equal(suspects.clear(first, first.generation), false);
  assert.equal(suspects.has(0, Buffer.from('a')), true);
});

test('an effect that may be missing stays so, whatever is suspected later', () => {
  const { mark } = made();
  assert.equal(mark('a', REPLY_LOST).acknowledged, false);
  assert.equal(mark('a', 'overflow').acknowledged, true);
  assert.equal(mark('a', REPLY_LOST).acknowledged, true);
});

test('a key counts as written only where a write or a copy is the reason', () => {
  const { mark } = made();
  for (const reason of ['mismatch', 'inconclusive', 'evicted', 'not-copied', 'swapped', 'process-ended-unwritten'])
    assert.equal(mark(reason, reason).touched, false, reason);
  assert.equal(mark('mismatch', 'evicted').touched, false, 'for two such reasons');
  assert.equal(mark('mismatch', 'derived').touched, true);
  assert.equal(mark('in flight', 'process-ended').touched, true);
  assert.equal(mark('mismatch', 'mismatch').touched, true);
});

test('a key that a command only reads does not count as written, whatever the reason', () => {
  const { suspects, workload } = made();
  const named = (reason: string, written: boolean): boolean => {
    suspects.mark(0, Buffer.from('read'), workload, reason, null, written);
    return suspects.get('0:read')!.touched;
  };
  assert.equal(named('derived', false), false);
  assert.equal(named('expiry-edge', false), false);
  assert.equal(named('mismatch', true), true);
});

test('the key is a copy, and the same name in two databases is two keys', () => {
  const { suspects, workload } = made();
  const frame = Buffer.from('abc');
  suspects.mark(0, frame, workload, 'mismatch');
  frame.fill('x');
  assert.equal(suspects.get('0:abc')?.key.toString(), 'abc');
  assert.equal(suspects.has(1, Buffer.from('abc')), false);
});

test('100,000 keys are listed; one more makes its workload suspect, and a known one is marked all the same', () => {
  const { suspects, workload, mark, marked } = made();
  for (let i = 0; i < 100_000; i++) suspects.mark(0, Buffer.from(`k${i}`), workload, 'overflow');
  assert.deepEqual([suspects.size, suspects.workloads.of(workload)], [100_000, null]);
  suspects.mark(0, Buffer.from('one more'), workload, 'overflow');
  assert.deepEqual([suspects.size, suspects.workloads.of(workload)], [100_000, 'more than 100000 suspects (overflow)']);
  mark('k5', 'mismatch');
  assert.deepEqual([marked.length, marked.at(-1)], [100_001, 'mismatch']);
});

test('keys are counted by workload and by reason', () => {
  const { suspects, workload, mark } = made();
  mark('a', 'mismatch');
  mark('b', REPLY_LOST);
  mark('c', 'mismatch');
  assert.deepEqual(suspects.byReason(), { mismatch: 2, [REPLY_LOST]: 1 });
  assert.deepEqual([...suspects.byWorkload()], [[workload, { total: 3, acknowledged: 2 }]]);
  assert.equal(suspects.count(workload), 3);
  assert.equal(
    suspects.count(workload, ({ acknowledged }) => !acknowledged),
    1,
  );
  assert.equal(suspects.count(new Router([], REST).default), 0);
});
