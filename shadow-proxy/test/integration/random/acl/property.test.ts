/**
 * The property of privileges, for some seconds.
 *
 * Needs real servers: which rights each server checks, for random users and commands.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkPrivileges } from './property.js';

for (const stage of ['shadow', 'live'] as const) {
  test(`no client gets, and no mirror holds, what the authority refuses, in ${stage}`, async (t) => {
    const outcome = await checkPrivileges({ stage, seed: 17, commands: 4_000, ms: 6_000 });
    t.diagnostic(JSON.stringify(outcome));
    assert.ok(outcome.refused > 0);
  });
}
