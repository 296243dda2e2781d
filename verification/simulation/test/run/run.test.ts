/** Each profile with a fixed seed, and one with a new one; the same seed gives the same run. */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { test } from 'node:test';
import { PROFILES } from '../../run/profiles.js';
import { simulate } from '../../run/run.js';
import { testEachProfile, testRun } from './each-profile.js';

/** `SEED=7 npm test -- simulation/` runs another. */
const seed = Number(process.env.SEED ?? 1);
/** Of clients, in each run. Longer ones, of a second seed, are among the slow tests. */
const OPERATIONS = 600;
testEachProfile(seed, OPERATIONS);

/** Hours of new seeds are `npm run simulate -- --minutes`. */
const fresh = randomInt(1_000, 1_000_000_000);
testRun(PROFILES[fresh % PROFILES.length], fresh, 2 * OPERATIONS);

test('The same seed gives the same events, another seed others', async () => {
  const profile = PROFILES.find(({ name }) => name === 'storm')!;
  const traces = [];
  for (const each of [seed, seed, seed + 1])
    traces.push((await simulate({ seed: each, profile, operations: 400 })).trace);
  assert.equal(traces[0], traces[1]);
  assert.notEqual(traces[0], traces[2]);
});
