/**
 * Random lives of keys: where no key is suspect, both servers hold the same. `.long` sends 10 million commands.
 *
 * Needs real servers: when each server expires keys that live for milliseconds.
 */
import { test } from 'node:test';
import { loadLives } from './lives-load.js';

const COMMANDS = 20_000;

for (const stage of ['shadow', 'live'] as const)
  test(`keys that live for 1 to 200 ms, a mirror that lags, and restarts leave the servers equal, in ${stage}`, async (t) => {
    const seed = Math.floor(Math.random() * 2 ** 32);
    t.diagnostic(`seed ${seed}`);
    t.diagnostic(JSON.stringify(await loadLives(seed, stage, COMMANDS)));
  });
