/** Nodes as guard reads them, made up: two active ones that would be safe, and ways to change them. */
import type { Cluster, NodeFacts } from '../../../src/guard/node-facts.js';

export const node = (name: string, change: Partial<NodeFacts> = {}): NodeFacts => ({
  label: `${name}:6379`,
  runId: name,
  version: '6.3.4',
  isKeydb: true,
  role: 'active-replica',
  readOnly: false,
  masters: [{ address: 'other:6379', up: true }],
  replicas: [],
  backlogBytes: 1 << 20,
  streamBytesPerSecond: 0,
  syncFull: 0,
  aof: false,
  maxmemory: 1 << 30,
  policy: 'volatile-lru',
  evicted: 0,
  clock: { offsetMs: 0, errorMs: 1 },
  calls: new Map(),
  writers: [],
  ...change,
});

export const cluster = (nodes: readonly NodeFacts[], change: Partial<Cluster> = {}): Cluster => ({
  shards: nodes.map(({ runId }) => ({ name: runId, region: runId, runId })),
  nodes,
  unread: [],
  ...change,
});

export const pair = (change: Partial<NodeFacts> = {}): Cluster => cluster([node('eu'), node('us', change)]);
