/**
 * As `lives-property.test.ts`, for 10 million commands.
 *
 * Needs real servers: when each server expires keys that live for milliseconds, for 10 million commands.
 */
import { test } from 'node:test';
import { loadLives } from './lives-load.js';

const COMMANDS = 5_000_000;

for (const stage of ['shadow', 'live'] as const)
  test(`clean means equal for ${COMMANDS} commands on keys that live for 1 to 200 ms, in ${stage}`, async (t) => {
    const seed = Math.floor(Math.random() * 2 ** 32);
    t.diagnostic(`seed ${seed}`);
    t.diagnostic(JSON.stringify(await loadLives(seed, stage, COMMANDS)));
  });
