/** Bodies that the admin HTTP refuses, as the command line does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jobOrder } from '../../../src/admin/requests.js';

test('a verification of no key is refused: it would show nothing', () => {
  for (const sample of [0, -1, 100.1, '50', null])
    assert.equal(jobOrder.safeParse({ kind: 'verify', sample }).success, false, String(sample));
  for (const sample of [0.001, 1, 100, undefined])
    assert.equal(jobOrder.safeParse({ kind: 'verify', sample }).success, true, String(sample));
});
