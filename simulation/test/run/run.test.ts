/** Each profile with fixed seeds and a new one; the same seed gives the same run. */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { test } from 'node:test';
import { PROFILES } from '../../run/profiles.js';
import { simulate } from '../../run/run.js';

const OPERATIONS = 1_200;
const { SEED } = process.env;
/** Two are the same for all profiles; titles print them. `SEED=7 npm test -- simulation/` runs another. */
const seeds = SEED === undefined ? [1, 2] : [Number(SEED)];
/** One run is new each time: hours of new seeds are `npm run simulate -- --minutes`. */
const fresh = randomInt(1_000, 1_000_000_000);
const runs = [
  ...seeds.flatMap((seed) => PROFILES.map((profile) => ({ seed, profile }))),
  ...(SEED === undefined ? [{ seed: fresh, profile: PROFILES[fresh % PROFILES.length] }] : []),
];

for (const { seed, profile } of runs)
  test(`Profile ${profile.name}: nothing is wrong (seed ${seed})`, async () => {
    const { finding, timeline, operations, stages } = await simulate({ seed, profile, operations: OPERATIONS });
    const again = `again: npm run simulate -- --seed ${seed} --profile ${profile.name} --operations ${OPERATIONS}`;
    assert.equal(finding, null, [finding, ...timeline, again].join('\n'));
    assert.ok(operations >= OPERATIONS && stages.size > 0);
  });

test('The same seed gives the same events, another seed others', async () => {
  const profile = PROFILES.find(({ name }) => name === 'storm')!;
  const [seed] = seeds;
  const traces = [];
  for (const each of [seed, seed, seed + 1])
    traces.push((await simulate({ seed: each, profile, operations: 400 })).trace);
  assert.equal(traces[0], traces[1]);
  assert.notEqual(traces[0], traces[2]);
});
