/** A short random history, the same each time; `random.long.test.ts` has long ones. */
import { test } from 'node:test';
import fc from 'fast-check';
import { history, Trial } from './random.js';

const SEED = 6;

test('a random history of counting, cuts, heals and restarts loses and invents nothing', async () => {
  const [steps] = fc.sample(history(25), { seed: SEED, numRuns: 1 });
  await Trial.run(steps);
});
