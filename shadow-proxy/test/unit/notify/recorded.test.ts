/** Which entries of the history are notices. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { happeningOf } from '../../../src/notify/recorded.js';

const stage = {
  event: 'stage',
  workload: 'sessions',
  from: { stage: 'live', percent: 10 },
  to: { stage: 'live', percent: 50 },
};
const said = (event: Parameters<typeof happeningOf>[1]): unknown => {
  const happening = happeningOf('cache-0', event, 0);
  return happening && [happening.event, happening.severity, happening.summary, happening.details];
};

test('of the history people are notified of changes of stage, failovers and takeovers, and of nothing else', () => {
  assert.deepEqual(said({ ...stage, by: 'ada' }), [
    'stage',
    'info',
    'Shard cache-0: sessions live 10 % → live 50 %, by ada',
    { from: 'live 10 %', to: 'live 50 %', by: 'ada' },
  ]);
  assert.equal((said({ ...stage, forced: true }) as string[])[1], 'warning');
  assert.deepEqual((said({ ...stage, by: 'failover', reason: 'the source is lost' }) as string[]).slice(0, 2), [
    'failover',
    'critical',
  ]);
  const owner = { event: 'owner', process: 'b2', source: null, target: null };
  assert.equal(said(owner), null, 'a start is no takeover');
  assert.deepEqual(said({ ...owner, from: 'a1' }), [
    'takeover',
    'warning',
    'Shard cache-0: process b2 serves the shard: it took over from a1',
    { process: 'b2', from: 'a1' },
  ]);
  assert.equal(said({ event: 'plan', plan: 'x', stages: {} }), null);
});
