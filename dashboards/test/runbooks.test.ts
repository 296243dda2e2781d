/** The incident runbooks tell of alerts that are there. What they name is held by shadow-proxy/test/docs. */
import assert from 'node:assert/strict';
import { basename } from 'node:path';
import { test } from 'node:test';
import { alerts, filesIn, RUNBOOKS } from './files.js';

test('there is an alert for each incident runbook, which is named as it, in capitals', () => {
  const incidents = filesIn(RUNBOOKS, '.md').filter((path) => /^[A-Z][a-z]/.test(basename(path)));
  assert.deepEqual(
    incidents.map((path) => basename(path, '.md')),
    [...new Set(alerts().map(({ alert }) => alert))].sort(),
  );
});
