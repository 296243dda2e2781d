/** Slots that leave their master, as CLUSTER NODES shows them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { movedSlots } from '../../../src/health/slot-watch.js';
import { parseSlots } from '../../../src/plan/owns.js';
import { nodesOf } from '../../../src/upstream/slots.js';

const [A, B, R] = ['a', 'b', 'c'].map((digit) => digit.repeat(40));
const nodes = (own: string, other: string): ReturnType<typeof nodesOf> =>
  nodesOf(
    [
      `${A} 127.0.0.1:7001@17001 myself,master - 0 0 1 connected ${own}`,
      `${B} 127.0.0.1:7002@17002,host-b master - 0 1 2 connected ${other}`,
      `${R} 127.0.0.1:7003@17003 slave ${A} 0 1 1 connected`,
      '',
    ].join('\n'),
  );

test('nodes are taken apart: flags, ranges, slots that leave', () => {
  const [a, b, r] = nodes(`0-99 102 [100->-${B}] [500-<-${B}]`, '103-16383');
  assert.deepEqual(a, {
    id: A,
    address: { host: '127.0.0.1', port: 7001 },
    isAsked: true,
    isMaster: true,
    masterId: null,
    isFailed: false,
    slots: [
      [0, 99],
      [102, 102],
    ],
    leaving: [100],
  });
  assert.deepEqual([b.isAsked, b.isMaster, b.slots], [false, true, [[103, 16383]]]);
  assert.deepEqual([r.isMaster, r.slots, r.leaving], [false, [], []]);
});

test('a slot is where it belongs, leaving, or with another master', () => {
  const slots = parseSlots('0-5460');
  assert.deepEqual(movedSlots(nodes('0-5460', '5461-16383'), slots), { leaving: [], moved: [] });
  assert.deepEqual(movedSlots(nodes(`0-5460 [7->-${B}]`, '5461-16383'), slots), { leaving: [7], moved: [] });
  assert.deepEqual(movedSlots(nodes('0-6 8-5460', '7 5461-16383'), slots), { leaving: [], moved: [[7, 7]] });
});

test('slots of other shards say nothing, and after a failover the new master is in its place', () => {
  const slots = parseSlots('0-99');
  assert.deepEqual(movedSlots(nodes(`0-5460 [700->-${B}]`, '5461-16383'), slots), { leaving: [], moved: [] });
  assert.deepEqual(movedSlots(nodes('', '0-16383'), slots), { leaving: [], moved: [] });
  assert.equal(movedSlots(nodes('', '100-16383'), slots), null, 'nobody has them');
});
