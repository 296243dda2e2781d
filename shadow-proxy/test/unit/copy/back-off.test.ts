/** How often the copy of a key that failed is tried again. */
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { BackOff } from '../../../src/copy/repair/back-off.js';
import type { Suspect } from '../../../src/suspects/suspects.js';

const suspects = (count: number): Suspect[] => Array.from({ length: count }, () => ({}) as Suspect);

test('a thousand keys that fail for one reason cost what a few do, and hold up none of another reason', () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    let repaired = false;
    const [stuck, others] = [suspects(1_000), suspects(1_000)];
    const tried = new Map<Suspect, number>();
    const backOff = new BackOff((suspect) => {
      tried.set(suspect, (tried.get(suspect) ?? 0) + 1);
      setTimeout(() => {
        if (repaired || !stuck.includes(suspect)) backOff.done(suspect);
        else backOff.failed(suspect, `the mirror refused 'key ${tried.get(suspect)}'`);
      }, 1);
    });
    const attempts = (of: readonly Suspect[]): number => of.reduce((sum, each) => sum + (tried.get(each) ?? 0), 0);
    const pass = (ms: number): void => {
      for (let at = 0; at < ms; at += 10) mock.timers.tick(10);
    };
    const first = stuck.map((each, i) => backOff.failed(each, `the mirror refused 'key ${i}'`));
    assert.equal(first.filter(Boolean).length, 1, 'one is the first of its reason');
    for (const each of others) backOff.failed(each, 'the connection was lost');
    // 64 at a time after pauses of 250 ms to 5 s; the others double with each success.
    pass(60_000);
    assert.ok(attempts(stuck) > 64 * 10 && attempts(stuck) <= 64 * 18, `${attempts(stuck)} attempts`);
    assert.equal(attempts(others), 1_000);
    // Each has its turn.
    pass(60_000);
    assert.equal(stuck.filter((each) => !tried.has(each)).length, 0);
    // One that a client writes goes before the others.
    const last = stuck.reduce((a, b) => (tried.get(b)! < tried.get(a)! ? b : a));
    const before = tried.get(last)!;
    assert.ok(backOff.hurries(last));
    pass(5_010);
    assert.equal(tried.get(last), before + 1);

    repaired = true;
    pass(5_500);
    assert.ok(stuck.every((each) => !backOff.has(each)));
    backOff.close();
  } finally {
    mock.timers.reset();
  }
});

for (const [isBrief, pauses] of [
  [false, [250, 500, 1_000, 2_000, 4_000, 5_000, 5_000]],
  [true, Array<number>(12).fill(250)],
] as const)
  test(`one key that fails for a reason that ${isBrief ? 'ends by itself is tried again each quarter of a second' : 'may last is tried again after a quarter of a second, then half as often each time'}`, () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      const times: number[] = [];
      let now = 0;
      const [suspect] = suspects(1);
      const backOff = new BackOff((each) => {
        times.push(now);
        backOff.failed(each, 'why', isBrief);
      });
      backOff.failed(suspect, 'why', isBrief);
      for (; times.length < pauses.length; now += 10) mock.timers.tick(10);
      assert.deepEqual(
        times.map((at, i) => Math.round((at - (times[i - 1] ?? 0)) / 250) * 250),
        pauses,
      );
      backOff.close();
    } finally {
      mock.timers.reset();
    }
  });
