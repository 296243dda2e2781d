/**
 * Everything at once, against a real Redis and a real KeyDB: afterwards the two hold the same. `minute.long.test.ts`
 * has more of it.
 *
 * Needs real servers: random commands on types that models lack, such as geo and HyperLogLog.
 */
import { test } from 'node:test';
import { trial } from './trial.js';

test('random commands of 32 connections leave both servers equal, and no reply differs', async (t) => {
  await trial(t, { durationMs: 15_000 });
});
