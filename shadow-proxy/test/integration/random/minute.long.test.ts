/**
 * Everything at once for a minute, against a real Redis and a real KeyDB: afterwards the two hold the same.
 *
 * Needs real servers: random commands on types that models lack, for minutes.
 */
import { test } from 'node:test';
import { trial } from './trial.js';

test('random commands of 32 connections leave both servers equal, and no reply differs, for longer', async (t) => {
  await trial(t, { durationMs: 25_000 });
});

test('so do random commands where no key expires meanwhile', async (t) => {
  await trial(t, { durationMs: 20_000, expiring: false });
});

test('so do random commands on workloads of which each is in another stage', async (t) => {
  await trial(t, {
    durationMs: 20_000,
    prefixes: ['live:', 'dual:', 'shadow:'],
    barriers: false,
    workloads: [
      { name: 'live', keys: ['live:*'], stage: 'live' },
      { name: 'dual', keys: ['dual:*'], stage: 'dualwrite' },
      { name: 'shadow', keys: ['shadow:*'], stage: 'shadow' },
    ],
  });
});
