/** Runs of the simulation as tests: each title has the profile and the seed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PROFILES, type Profile } from '../../run/profiles.js';
import { simulate } from '../../run/run.js';

export function testRun(profile: Profile, seed: number, most: number): void {
  test(`Profile ${profile.name}: nothing is wrong (seed ${seed})`, async () => {
    const { finding, timeline, operations, stages } = await simulate({ seed, profile, operations: most });
    const hint = `again: npm run simulate -- --seed ${seed} --profile ${profile.name} --operations ${most}`;
    assert.equal(finding, null, [finding, ...timeline, hint].join('\n'));
    assert.ok(operations >= most && stages.size > 0);
  });
}

/** @param most so many commands of clients in each run */
export function testEachProfile(seed: number, most: number): void {
  for (const profile of PROFILES) testRun(profile, seed, most);
}
