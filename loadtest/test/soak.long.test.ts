/**
 * A restart in the middle of a load: who notices, and is every acknowledged increment still there?
 *
 * Needs real processes: a proxy that starts again in the middle of a load.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tallyHolds } from '../figures/results.js';
import { measured } from './cli.js';
import { needs } from '../../shadow-proxy/test/support/needs.js';

const soak = (against: string, restart: string) =>
  measured([
    'soak',
    '--profile',
    'rate-limits',
    '--against',
    against,
    '--restart',
    restart,
    '--minutes',
    '0.3',
    '--slice',
    '4',
    '--rate',
    '2000',
  ]);

test('behind the proxy no client notices a restart of the target, and it misses nothing afterwards', async (t) => {
  if (!(await needs(t, 'memtier_benchmark', 'keydb'))) return;
  const { code, results, stderr } = await soak('proxy', 'target');
  assert.equal(code, 0, stderr);
  assert.deepEqual(results.soak!.interrupted, []);
  assert.deepEqual(
    results.soak!.tallies.map(({ server }) => server),
    ['source', 'target'],
  );
  const left = [...stderr.matchAll(/^(-?\d+) s left: [\d,]+ commands\/s$/gm)].map(([, seconds]) => Number(seconds));
  assert.deepEqual([left.length, left.at(-1)], [results.samples.length, 0], stderr);
  assert.deepEqual(
    left,
    [...left].sort((a, b) => b - a),
    'it counts down',
  );
  for (const { acknowledged, attempted, found } of results.soak!.tallies)
    assert.ok(acknowledged > 100 && found === acknowledged && attempted === acknowledged);
  for (const { expected, found } of results.counters) assert.equal(found, expected);
});

for (const [against, restart] of [
  ['target', 'target'],
  ['proxy', 'source'],
]) {
  test(`a restart of the ${restart} interrupts the load on the ${against}, and what was acknowledged is there`, async (t) => {
    if (!(await needs(t, 'memtier_benchmark', 'keydb'))) return;
    const { results, stderr } = await soak(against, restart);
    assert.ok(results.soak!.interrupted.length > 0, stderr);
    assert.ok(results.soak!.downtime !== null);
    for (const tally of results.soak!.tallies) assert.ok(tallyHolds(tally), JSON.stringify(tally));
    assert.ok(results.samples.length >= 2, 'the load goes on');
  });
}
