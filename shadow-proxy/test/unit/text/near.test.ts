/** Which name was meant by one with slips. */
// cspell:ignore sesisons apicache ratelimits leaderbaord
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { didYouMean, nearest } from '../../../src/text/near.js';

const NAMES = ['sessions', 'api-cache', 'rate-limits', 'leaderboards', 'week-1-shadow', 'week-2-read-only', 'a'];

test('a name with a few slips is known again, and so is its beginning', () => {
  const cases: [typed: string, meant: string | null][] = [
    ['session', 'sessions'],
    ['sesisons', 'sessions'],
    ['SESSIONS', 'sessions'],
    ['apicache', 'api-cache'],
    ['ratelimits', 'rate-limits'],
    ['leaderbaord', 'leaderboards'],
    ['leader', 'leaderboards'],
    ['week1', 'week-1-shadow'],
    ['weak-2', 'week-2-read-only'],
    ['week', 'week-1-shadow'],
    ['weed', null],
    ['orders', null],
    ['b', null],
    ['', null],
  ];
  for (const [typed, meant] of cases) assert.equal(nearest(typed, NAMES), meant, typed);
});

test('nothing is offered where no name is near', () => {
  assert.equal(didYouMean('session', NAMES), ' (did you mean sessions?)');
  assert.equal(didYouMean('orders', NAMES), '');
});
