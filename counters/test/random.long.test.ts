/**
 * Random histories for as long as `RANDOM_MINUTES` says (5 when absent), with a new seed each time, or that of
 * `RANDOM_SEED`.
 *
 * Needs real servers: replication between two active KeyDB nodes, with new histories each time.
 */
import { test } from 'node:test';
import fc from 'fast-check';
import { history, Trial } from './random.js';
import { needs } from '../../shadow-proxy/test/support/needs.js';

const MINUTES = Number(process.env.RANDOM_MINUTES ?? 5);
const SEED = process.env.RANDOM_SEED === undefined ? {} : { seed: Number(process.env.RANDOM_SEED) };

test(`random histories for ${MINUTES} minutes`, async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  let runs = 0;
  const property = fc.asyncProperty(history(40), async (steps) => {
    await Trial.run(steps);
    runs++;
  });
  await fc.assert(property, {
    ...SEED,
    numRuns: 10_000,
    interruptAfterTimeLimit: MINUTES * 60_000,
    markInterruptAsFailure: false,
    endOnFailure: true,
  });
  t.diagnostic(`${runs} histories of 40 steps`);
});
