/** The checker of a shard at rest sees what is not true. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ShardSnapshot } from '../../../../shadow-proxy/src/telemetry/snapshot.js';
import { untruths } from '../../check/at-rest.js';

const TRUE = {
  mirror: { queuedBytes: 0, lagMs: 0 },
  reservations: { byAge: { 'under-1s': 0, 'under-10s': 0, older: 0 }, oldestMs: 0, longestWaitMs: 0 },
  clients: 2,
  replyFailures: 0,
  ...{ compared: 6, matched: 3, allowed: { 'unordered-set': 2 }, mismatches: { value: 1 } },
} as unknown as ShardSnapshot;

test('At rest the status is true, or what is not is named', () => {
  const say = (change: object): readonly string[] => untruths({ ...TRUE, ...change }, { clients: 2 });
  assert.deepEqual(say({}), []);
  assert.deepEqual(say({ mirror: { queuedBytes: 7, lagMs: 0 } }), ['bytes in the queues of the mirrors: 7, not 0']);
  assert.deepEqual(say({ clients: 3 }), ['clients: 3, not 2']);
  assert.deepEqual(say({ matched: 4 }), ['pairs that were compared: 6, not 7']);
  assert.deepEqual(say({ replyFailures: 1 }), ['replies at which the proxy failed: 1, not 0']);
  assert.deepEqual(say({ reservations: { byAge: { older: 1 }, oldestMs: 12, longestWaitMs: 3 } }), [
    'age of the oldest reservation in ms: 12, not 0',
    'reservations: 1, not 0',
    'ms that a command waits for its keys: 3, not 0',
  ]);
});
