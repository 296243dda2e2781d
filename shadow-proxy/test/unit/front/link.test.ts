/** Two ends of one link in one thread: what one says the other hears, in order, however little room there is. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Link, type Sender } from '../../../src/front/link.js';
import { MOST, ringMemory, type ReceiveRecord } from '../../../src/front/shared-ring.js';

const sender = (): Sender & { emptiedTimes: number } => ({
  queued: 0,
  emptiedTimes: 0,
  emptied() {
    this.emptiedTimes++;
  },
});

function linked(received: ReceiveRecord, drained?: () => void) {
  const [there, back] = [ringMemory(4 * MOST), ringMemory(4 * MOST)];
  const rings = { near: 0, far: 0 };
  const near: Link = new Link({ out: there, in: back }, () => undefined, () => ring('far'), setImmediate, drained); // prettier-ignore
  const far: Link = new Link({ out: back, in: there }, received, () => ring('near'), setImmediate);
  const ring = (at: 'near' | 'far'): void => {
    rings[at]++;
    setImmediate(at === 'near' ? near.rung : far.rung);
  };
  near.open();
  far.open();
  return { near, far, rings };
}

test('what is longer than a record comes in several, in order', async () => {
  const heard: Buffer[] = [];
  const { near } = linked((kind, id, bytes, start, end) => {
    assert.deepEqual([kind, id], [2, 7]);
    heard.push(Buffer.from(bytes.slice(start, end)));
  });
  const long = Buffer.from(Array.from({ length: 3 * MOST + 5 }, (_, i) => (i * 13 + (i >> 9)) & 255));
  const from = sender();
  near.send(2, 7, long, 3, long.length, from);
  for (let i = 0; i < 20; i++) await turn();
  assert.ok(Buffer.concat(heard).equals(long.subarray(3)));
  assert.equal(heard.length, 4);
});

test('what finds no room waits in its order, as a copy; its sender knows how much, and when it is over', async () => {
  const heard: string[] = [];
  let drained = 0;
  const { near } = linked(
    (kind, id, bytes, start, end) => heard.push(`${kind} ${id} ${end - start} ${bytes[start]}`),
    () => drained++,
  );
  const [one, other] = [sender(), sender()];
  const bytes = Buffer.alloc(MOST);
  const expected: string[] = [];
  for (let i = 0; i < 10; i++) {
    bytes.fill(i);
    near.send(1, i, bytes, 0, MOST, i % 2 === 0 ? one : other);
    expected.push(`1 ${i} ${MOST} ${i}`);
  }
  near.say(5, 99, other);
  expected.push('5 99 0 undefined');
  // It is used again at once.
  bytes.fill(255);
  assert.equal(near.isFull, true);
  assert.deepEqual([one.queued, other.queued], [3 * MOST, 4 * MOST]);
  for (let i = 0; i < 30; i++) await turn();
  assert.deepEqual(
    heard.map((each) => each.replace(/^(5 99 0) .*/, '$1 undefined')),
    expected,
  );
  assert.deepEqual([near.isFull, one.queued, other.queued, drained], [false, 0, 0, 1]);
  assert.deepEqual([one.emptiedTimes, other.emptiedTimes > 0], [1, true]);
});

test('bytes that a sender adds when its earlier bytes were sent come after them', async () => {
  const heard: number[] = [];
  const { near } = linked((_kind, id) => heard.push(id));
  const bytes = Buffer.alloc(MOST);
  const again: Sender = { queued: 0, emptied: () => heard.length < 100 && near.send(1, 50, bytes, 0, 1, again) };
  for (let i = 0; i < 6; i++) near.send(1, i, bytes, 0, MOST, again);
  for (let i = 0; i < 20; i++) await turn();
  assert.deepEqual(heard.slice(0, 7), [0, 1, 2, 3, 4, 5, 50]);
});

test('one bell is rung for all that a turn sends; while there is something to take nobody rings', async () => {
  const { near, rings } = linked(() => undefined);
  const from = sender();
  for (let i = 0; i < 5; i++) near.say(1, i, from);
  assert.equal(rings.far, 0, 'at the end of the turn');
  await turn();
  assert.equal(rings.far, 1);
  near.say(1, 9, from);
  await turn();
  assert.equal(rings.far, 1, 'it looks again at the end of its turn');
  for (let i = 0; i < 5; i++) await turn();
  near.say(1, 10, from);
  await turn();
  assert.equal(rings.far, 2);
});
