/** Runs of the simulation as tests: each title has the profile and the seed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PROFILES, type Profile } from '../../run/profiles.js';
import { simulate } from '../../run/run.js';

const OPERATIONS = 1_200;

export function testRun(profile: Profile, seed: number): void {
  test(`Profile ${profile.name}: nothing is wrong (seed ${seed})`, async () => {
    const { finding, timeline, operations, stages } = await simulate({ seed, profile, operations: OPERATIONS });
    const hint = `again: npm run simulate -- --seed ${seed} --profile ${profile.name} --operations ${OPERATIONS}`;
    assert.equal(finding, null, [finding, ...timeline, hint].join('\n'));
    assert.ok(operations >= OPERATIONS && stages.size > 0);
  });
}

export function testEachProfile(seed: number): void {
  for (const profile of PROFILES) testRun(profile, seed);
}
