/** Databases keep their ids as SWAPDB moves them, and what was read meanwhile is read again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getEventListeners } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { DatabaseIds, swappedBy, Swaps } from '../../../src/pipeline/swaps.js';

test('the arguments of SWAPDB name two databases', () => {
  assert.deepEqual(swappedBy(['SWAPDB', '3', '12'].map((arg) => Buffer.from(arg))), [3, 12]);
});

test('an id follows its database through every swap, and back', () => {
  const ids = new DatabaseIds();
  /** What each database held in the beginning is its id. */
  const model = [0, 1, 2, 3, 4];
  for (let step = 0; step < 500; step++) {
    const [a, b] = [(step * 7) % model.length, (step * step + 3) % model.length];
    ids.swap([a, b]);
    [model[a], model[b]] = [model[b], model[a]];
    for (const [db, id] of model.entries()) assert.deepEqual([ids.idOf(db), ids.numberOf(id)], [id, db]);
  }
  assert.deepEqual([ids.idOf(9), ids.numberOf(9)], [9, 9]);
});

test('a swap gives other numbers when both servers have run it; a refused one, and one of unknown outcome, none', () => {
  const swaps = new Swaps();
  const heard: boolean[] = [];
  const unlisten = swaps.listen(() => heard.push(swaps.underWay));
  const [first, second] = [swaps.begin(), swaps.begin()];
  assert.deepEqual([swaps.underWay, swaps.ids.numberOf(1)], [true, 1]);
  first([1, 2]);
  assert.deepEqual([swaps.underWay, swaps.ids.numberOf(1), heard], [true, 2, [true, true, true]]);
  second('none');
  assert.deepEqual([swaps.underWay, swaps.ids.numberOf(1), swaps.unknown, heard.at(-1)], [false, 2, 0, false]);
  swaps.begin()('unknown');
  assert.deepEqual([swaps.underWay, swaps.ids.numberOf(1), swaps.unknown, heard.length], [false, 2, 1, 6]);
  unlisten();
  swaps.begin()('none');
  assert.equal(heard.length, 6);
});

test('what is read waits for the end of all swaps, and is read again where one began meanwhile', async () => {
  const swaps = new Swaps();
  const ends = [swaps.begin(), swaps.begin()];
  const reads: ((value: string) => void)[] = [];
  let done: string | null = null;
  const work = swaps
    .undisturbed(() => new Promise<string>((resolve) => reads.push(resolve)))
    .then((value) => (done = value));
  await nextTurn();
  ends[0]([0, 1]);
  await nextTurn();
  assert.equal(reads.length, 0, 'the other one is under way');
  ends[1]([0, 1]);
  await nextTurn();
  assert.equal(reads.length, 1);
  const end = swaps.begin();
  reads[0]('of one database or the other');
  await nextTurn();
  assert.deepEqual([done, reads.length], [null, 1]);
  end('none');
  await nextTurn();
  assert.deepEqual([done, reads.length], [null, 2]);
  // Begun and ended meanwhile.
  swaps.begin()([0, 1]);
  reads[1]('of one or the other');
  await nextTurn();
  assert.deepEqual([done, reads.length], [null, 3]);
  reads[2]('right');
  await work;
  assert.equal(done, 'right');
});

test('a wait for the end of a swap can be aborted, and leaves no listener', async () => {
  const swaps = new Swaps();
  const controller = new AbortController();
  const { signal } = controller;
  const end = swaps.begin();
  const early = swaps.undisturbed(async () => 'read', signal);
  end([0, 1]);
  assert.equal(await early, 'read');
  assert.equal(getEventListeners(signal, 'abort').length, 0);
  swaps.begin();
  const waits = swaps.undisturbed(() => assert.fail('it is under way'), signal);
  controller.abort(new Error('stopped'));
  await assert.rejects(waits, /stopped/);
  await assert.rejects(
    swaps.undisturbed(() => assert.fail('it is under way'), signal),
    /stopped/,
  );
});

test('what fails fails at once', async () => {
  const swaps = new Swaps();
  await assert.rejects(
    swaps.undisturbed(() => Promise.reject(new Error('lost'))),
    /lost/,
  );
});
