/** What makes the resync after a cut of the link a full resync, or a full resync worse: found in made-up nodes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Cluster } from '../../../src/guard/node-facts.js';
import { backlogFor, hazardsOf } from '../../../src/guard/hazards.js';
import { cluster, node, pair } from '../../integration/guard/nodes.js';

const abouts = (of: Cluster): string[] => hazardsOf(of, 60).map(({ about }) => about);

test('two active nodes as they should be have no hazards', () => assert.deepEqual(hazardsOf(pair(), 60), []));

test('each hazard is reported by itself', () => {
  assert.deepEqual(abouts(pair({ aof: true })), ['aof']);
  assert.deepEqual(abouts(pair({ policy: 'noeviction' })), ['integers']);
  assert.deepEqual(abouts(pair({ masters: [{ address: 'eu:6379', up: false }] })), ['links']);
  assert.deepEqual(abouts(pair({ evicted: 3 })), ['evictions']);
  assert.deepEqual(abouts(pair({ clock: { offsetMs: 23, errorMs: 1 } })), ['clocks']);
  assert.deepEqual(abouts(pair({ clock: { offsetMs: 22, errorMs: 1 } })), [], 'within what the look may be wrong by');
  assert.deepEqual(abouts(cluster([node('a'), node('b'), node('c')])), ['nodes']);
  assert.deepEqual(abouts(pair({ streamBytesPerSecond: 12_000 })), ['backlog']);
  assert.deepEqual(abouts(pair({ isKeydb: false })), ['server']);
});

test('a primary with read-only replicas has no hazards', () => {
  const replicas = cluster([
    node('a', { role: 'master', masters: [], aof: true, policy: 'noeviction' }),
    node('b', { role: 'slave', readOnly: true, aof: true, policy: 'noeviction' }),
  ]);
  assert.deepEqual(hazardsOf(replicas, 60), []);
});

test('the backlog holds the outage and a quarter more', () => {
  assert.equal(backlogFor(0, 60), 1 << 20);
  // 100 increments a second of about 120 bytes, for an hour: 43.2 MB; with a quarter more 51.5 MiB.
  assert.equal(backlogFor(12_000, 60), 52 << 20);
  const [{ what, todo }] = hazardsOf(pair({ streamBytesPerSecond: 12_000 }), 60);
  assert.equal(
    what,
    'us:6379 writes 11.7 KiB of replication a second: its backlog of 1 MiB lasts for an outage of 87 s, not 60 min; after a longer outage, the nodes do a full resync',
  );
  assert.match(todo, /^CONFIG SET repl-backlog-size 54525952 \(52 MiB\)/);
});
