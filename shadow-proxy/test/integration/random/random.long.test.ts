/**
 * The random trials for as long as `RANDOM_MINUTES` says (10 when absent), with a new seed each time.
 *
 * Needs real servers: random commands on types that models lack, in rounds of every shape.
 */
import { test } from 'node:test';
import { trial } from './trial.js';

const ROUND_MS = 60_000;
const MINUTES = Number(process.env.RANDOM_MINUTES ?? 10);

const STAGES = ['shadow', 'live', 'dualwrite', 'rampdown'] as const;

for (let round = 0; round < MINUTES; round++) {
  const mixed = round % 2 === 1;
  // Few keys collide more, many keep more types at once.
  const keysPerType = [8, 3, 40][round % 3];
  test(`round ${round + 1}: ${mixed ? 'workloads in every stage that writes twice' : 'all in shadow'}, ${keysPerType} keys of a type`, async (t) => {
    if (!mixed) return trial(t, { durationMs: ROUND_MS, keysPerType });
    const workloads = STAGES.map((stage) => ({ name: stage, keys: [`${stage}:*`], stage }));
    return trial(t, {
      durationMs: ROUND_MS,
      keysPerType,
      prefixes: STAGES.map((stage) => `${stage}:`),
      barriers: false,
      workloads,
    });
  });
}
