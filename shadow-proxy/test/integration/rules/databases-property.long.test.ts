/**
 * As `databases-property.test.ts`, for 10 minutes.
 *
 * Needs real servers: KeyDB's databases for 10 minutes of random commands and refused frames.
 */
import { test } from 'node:test';
import { loadDatabases } from './databases-load.js';

const MINUTES = 10;

test('no key of another database is touched, whatever the mirror refuses, for 10 minutes', async (t) => {
  const until = performance.now() + MINUTES * 60_000;
  let runs = 0;
  for (; performance.now() < until; runs++) await loadDatabases(Math.floor(Math.random() * 2 ** 32), 2_000);
  t.diagnostic(`${runs} runs`);
});
