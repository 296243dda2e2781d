/** Which buckets count when: no server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { admittedIn, charge, fixed, giveBack, sliding, windowShape, type Window } from '../src/limiter.js';
import type { WindowPart } from '../src/layout.js';

const LIMIT = 5;
const WINDOW_MS = 1000;
const gaps = fc.array(fc.oneof(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 0, max: 1500 })), {
  minLength: 1,
  maxLength: 120,
});

/** Asks for one admission at each time of `arrivals`; @returns the times at which it was admitted. */
function admissions(window: Window, arrivals: readonly number[]): number[] {
  let part: WindowPart = new Map();
  return arrivals.filter((now) => {
    if (admittedIn(part, window, now) + 1 > LIMIT) return false;
    part = charge(part, window, 1, window.bucket(now), now);
    return true;
  });
}

const arrivalsOf = (all: readonly number[]): number[] => {
  let now = 1_700_000_000_000;
  return all.map((gap) => (now += gap));
};

test('a sliding window never admits more than the limit in any interval of its length, and after a window and a bucket of rest all of it', () => {
  fc.assert(
    fc.property(gaps, fc.constantFrom(1, 2, 10, 100), (all, buckets) => {
      const window = sliding(WINDOW_MS, buckets);
      const arrivals = arrivalsOf(all);
      const admitted = admissions(window, arrivals);
      admitted.forEach((from, i) => {
        const within = admitted.slice(i).filter((at) => at < from + WINDOW_MS).length;
        assert.ok(within <= LIMIT, `${within} from ${from}`);
      });
      const rested = arrivals.at(-1)! + WINDOW_MS + WINDOW_MS / buckets;
      assert.equal(
        admissions(window, [...arrivals, ...Array.from({ length: LIMIT }, () => rested)]).filter((at) => at === rested)
          .length,
        LIMIT,
      );
    }),
  );
});

test('a fixed window admits exactly the limit, or all who came, in each of its windows', () => {
  fc.assert(
    fc.property(gaps, (all) => {
      const arrivals = arrivalsOf(all);
      const window = fixed(WINDOW_MS);
      const admitted = admissions(window, arrivals);
      for (const start of new Set(arrivals.map(window.bucket))) {
        const of = (times: readonly number[]): number => times.filter((at) => window.bucket(at) === start).length;
        assert.equal(of(admitted), Math.min(LIMIT, of(arrivals)));
      }
    }),
  );
});

test('admissions that are given back do not count, and giving back to a bucket that does not exist creates none', () => {
  const window = fixed(WINDOW_MS);
  const part = charge(charge(new Map(), window, 3, 5000, 5000), window, 2, 5000, 5001);
  assert.equal(admittedIn(giveBack(part, 2, 5000), window, 5002), 3);
  assert.deepEqual(giveBack(part, 1, 4000), part);
  assert.deepEqual([...giveBack(part, 9, 5000)], [[5000, 0]]);
});

test('a part lives until its last bucket is of no use to a server whose clock is a window behind', () => {
  const window = fixed(WINDOW_MS);
  const part = charge(charge(new Map(), window, 1, 5000, 5000), window, 1, 6000, 6000);
  assert.deepEqual([...part.keys()], [5000, 6000]);
  assert.equal(windowShape(window).expiresAt(part), 8000);
  assert.deepEqual([...charge(part, window, 1, 7000, 7000).keys()], [6000, 7000]);
});
