import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PROFILES } from '../../run/profiles.js';
import { simulate } from '../../run/run.js';

const OPERATIONS = 1_500;
/** Another one: `SEED=7 npm test -- simulation/`. */
const seed = Number(process.env.SEED ?? 1);

for (const profile of PROFILES)
  test(`Profile ${profile.name}: nothing is wrong (seed ${seed})`, async () => {
    const { finding, timeline, operations, stages } = await simulate({ seed, profile, operations: OPERATIONS });
    assert.equal(finding, null, timeline.join('\n'));
    assert.ok(operations >= OPERATIONS && stages.size > 0);
  });

test('The same seed gives the same events, another seed others', async () => {
  const profile = PROFILES.find(({ name }) => name === 'storm')!;
  const traces = [];
  for (const each of [seed, seed, seed + 1])
    traces.push((await simulate({ seed: each, profile, operations: 400 })).trace);
  assert.equal(traces[0], traces[1]);
  assert.notEqual(traces[0], traces[2]);
});
