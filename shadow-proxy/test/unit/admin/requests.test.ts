/** Bodies that the admin HTTP refuses, as the command line does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startJobRequest } from '../../../src/admin/requests.js';

test('a verification of no key is refused: it would show nothing', () => {
  for (const sample of [0, -1, 100.1, '50', null])
    assert.equal(startJobRequest.safeParse({ kind: 'verify', sample }).success, false, String(sample));
  for (const sample of [0.001, 1, 100, undefined])
    assert.equal(startJobRequest.safeParse({ kind: 'verify', sample }).success, true, String(sample));
});
