/**
 * A short random history, the same each time; `random.long.test.ts` has long ones.
 *
 * Needs real servers: replication between two active KeyDB nodes whose link is cut.
 */
import { test } from 'node:test';
import fc from 'fast-check';
import { history, Trial } from './random.js';
import { needs } from '../../shadow-proxy/test/support/needs.js';

const SEED = 6;

test('a random history of counting, cuts, resyncs and restarts loses and invents nothing', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  const [steps] = fc.sample(history(25), { seed: SEED, numRuns: 1 });
  await Trial.run(steps);
});
