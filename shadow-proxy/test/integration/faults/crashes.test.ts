/**
 * The property of crashes, a few times; as often as you like: `npm run crashes -- --runs 200 --seed 1`.
 *
 * Needs real processes: SIGKILL of the proxy at a random moment, and files that are then damaged on a real disk.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withServers } from '../../support/servers.js';
import { crash } from './crashes/run.js';

const RUNS = 2;

test('the proxy is killed at a random moment, and a file of its state is damaged: no key differs that is not suspect, or it does not start', async (t) => {
  const seed = Date.now() % 1_000_000;
  await withServers(async (servers) => {
    for (let i = 0; i < RUNS; i++) {
      const { silent, ...report } = await crash(servers, seed + i);
      t.diagnostic(JSON.stringify(report));
      assert.deepEqual(silent, [], JSON.stringify(report));
      if (report.outcome === 'refused') assert.match(report.why!, /state\.json/);
    }
  });
});
