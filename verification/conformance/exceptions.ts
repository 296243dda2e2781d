/**
 * What may differ with the proxy between a client and its server, each with its reason. An entry that allows nothing
 * in a run that had its unit is an error, unless it says that it may: it is no longer true, and must go.
 */
import type { Proxied } from './run/result.js';

interface Where {
  readonly suite: 'redis' | 'bullmq' | 'clients';
  /** Such as `unit/scan`; for BullMQ client and file, such as `ioredis tests/flow.test.ts`. The whole, or a pattern. */
  readonly unit: string | RegExp;
  /** Both where absent. */
  readonly way?: Proxied;
  readonly reason: string;
}

/** A test that passes directly and fails through the proxy. */
export interface TestException extends Where {
  /** The whole name, or a pattern. */
  readonly test: string | RegExp;
  /** Lost in one run and not in another: that it allows nothing is no error. */
  readonly sometimes?: boolean;
}

/** A difference between the two servers at the end of a unit. */
export interface KeyException extends Where {
  /** Matches a line of `differences`. */
  readonly difference: RegExp;
}

interface Listed {
  readonly reason: string;
  readonly sometimes?: boolean;
  /** Both where absent. */
  readonly way?: Proxied;
  /** By unit. */
  readonly tests: Readonly<Record<string, readonly (string | RegExp)[]>>;
}

/** Tests of Redis's suite: by reason, then by unit. */
const REDIS: readonly Listed[] = [
  {
    reason: 'reads what the server sends to its replicas (SYNC); replicas belong to the server behind the proxy',
    tests: {
      'unit/type/string': [
        'GETDEL propagate as DEL command to replica',
        'GETEX without argument does not propagate to replica',
      ],
      'unit/type/list': [
        'SWAPDB wants to wake blocked client, but the key already expired',
        'MULTI + LPUSH + EXPIRE + DEBUG SLEEP on blocked client, key already expired',
        'BLMPOP propagate as pop with count command to replica',
        'LMPOP propagate as pop with count command to replica',
      ],
      'unit/type/zset': [
        'ZMPOP propagate as pop with count command to replica',
        'BZMPOP propagate as pop with count command to replica',
      ],
      'unit/expire': [
        'All TTL in commands are propagated as absolute timestamp in replication stream',
        'GETEX propagate as to replica as PERSIST, DEL, or nothing',
        'SCAN: Lazy-expire should not be wrapped in MULTI/EXEC',
        'RANDOMKEY: Lazy-expire should not be wrapped in MULTI/EXEC',
      ],
      'unit/multi': [
        'MULTI / EXEC is not propagated (single write command)',
        'MULTI / EXEC is propagated correctly (multiple commands)',
        'MULTI / EXEC is propagated correctly (multiple commands with SELECT)',
        'MULTI / EXEC is propagated correctly (empty transaction)',
        'MULTI / EXEC is propagated correctly (read-only commands)',
        'MULTI / EXEC is propagated correctly (write command, no effect)',
        'MULTI / EXEC with REPLICAOF',
        'MULTI propagation of PUBLISH',
        'MULTI propagation of SCRIPT LOAD',
        'MULTI propagation of EVAL',
        'MULTI propagation of SCRIPT FLUSH',
        'MULTI propagation of XREADGROUP',
      ],
      'unit/scripting': [
        'SPOP: We can call scripts rewriting client->argv from Lua',
        "MGET: mget shouldn't be propagated in Lua",
        'EXPIRE: We can call scripts rewriting client->argv from Lua',
      ],
    },
  },
  {
    reason: 'DEBUG RELOAD and LOADAOF are refused: a server reads all its data anew, behind the proxy',
    tests: {
      'unit/type/list': [
        'Test LPUSH and LPOP on plain nodes',
        'Check if list is still ok after a DEBUG RELOAD - quicklist',
      ],
      'unit/type/zset': [/^ZSCORE after a DEBUG RELOAD - /],
      'unit/type/set': ['Set encoding after DEBUG RELOAD', /^SINTERSTORE with two sets, after a DEBUG RELOAD - /],
      'unit/type/stream': [
        /^X(ADD|TRIM) with .* can propagate correctly$/,
        /^(Empty stream|Stream) can be rewrite into AOF correctly/,
      ],
      'unit/type/stream-cgroups': [
        'XREADGROUP with NOACK creates consumer',
        'Consumer without PEL is present in AOF after AOFRW',
        'Empty stream with no lastid can be rewrite into AOF correctly',
      ],
      'unit/expire': [/ after loadaof$/],
    },
  },
  {
    reason:
      'the server sees the commands of a transaction with EXEC: it is then that it refuses one of them, if it still does',
    tests: { 'unit/multi': ['EXEC fails if there are errors while queueing commands #2'] },
  },
  {
    reason: 'SHUTDOWN is refused in the words of the proxy, inside MULTI and outside',
    tests: { 'unit/multi': ['MULTI with SHUTDOWN'] },
  },
  {
    reason: 'expects BUSY while a script runs; through the proxy other clients wait for its end, or for SCRIPT KILL',
    tests: { 'unit/multi': ['MULTI and script timeout', 'MULTI-EXEC body and script timeout'] },
  },
  {
    reason: 'ACL SETUSER is refused: users are changed on each server by itself',
    tests: { 'unit/scripting': ['Script ACL check'] },
  },
  {
    reason:
      'RESTORE is told to the mirror as a copy of the key, and to copy it is to read it, which ends its idle time, if that is before the test looks',
    sometimes: true,
    tests: { 'unit/dump': ['RESTORE can set LRU'] },
  },
  {
    reason:
      'a command that may block is asked without blocking first, and sent to block when that finds nothing: a DEL of somebody who does not wait until it blocks comes in between',
    tests: {
      'unit/type/stream-cgroups': [/^Blocking XREADGROUP: (key deleted|key type changed with SET|flushed DB)$/],
    },
  },
  {
    reason: 'the same, where the transaction comes before the command blocks: it is then told what the key has become',
    sometimes: true,
    tests: { 'unit/type/stream-cgroups': ['Blocking XREADGROUP: key type changed with transaction'] },
  },
  {
    reason:
      'two clients on two front threads, the second of which does not wait until the first blocks: either may be first',
    sometimes: true,
    tests: { 'unit/type/stream-cgroups': ['Blocking XREAD: key type changed with SET'] },
  },
  {
    reason:
      'EXEC after WATCH has a connection of its own to the server: a push of another client, sent while EXEC has no reply yet, may come first, wakes who blocks on the key, and changes the watched one',
    sometimes: true,
    tests: { 'unit/type/list': ['BRPOPLPUSH does not affect WATCH while still blocked'] },
  },
  {
    reason: 'counts the calls of XREADGROUP: one that blocks was asked without blocking before',
    tests: { 'unit/type/stream-cgroups': ['XGROUP DESTROY should unblock XREADGROUP with -NOGROUP'] },
  },
];

/** Cluster tests of clients: by reason, then by unit. */
const CLIENTS: readonly Listed[] = [
  {
    reason: 'wants replicas; the proxies show none',
    tests: {
      ioredis: [
        'cluster discovers nodes from replica',
        'cluster #nodes() returns replica nodes',
        'cluster #nodes() returns all nodes',
      ],
      'node-redis cluster': [
        'Cluster MULTI redirects retries MULTI after master failover while the previous master remains reachable',
      ],
      // Those that follow a redirection make one by swapping a master with its replica.
      'go-redis': [
        /^ClusterClient ClusterClient (with RouteByLatency )?(pipelining with (Tx)?Pipeline )?should follow redirects( for (GET|SET))?$/,
        'ClusterClient ClusterClient should return an error when there are no attempts left',
        'ClusterClient ClusterClient should determine hash slots correctly for generic commands',
        'ClusterClient ClusterClient should follow node redirection immediately',
        'ClusterClient ClusterClient should follow MOVED redirect for TxPipeline',
        "ClusterClient ClusterClient should return MOVED (not 'expected') for TxPipeline when redirects are exhausted",
        /^ClusterClient ClusterClient should CLUSTER (SLOTS|NODES|INFO|SLAVES)$/,
        'ClusterClient ClusterClient should return correct replica for key',
        /^ClusterClient ClusterClient with ClusterSlots with multiple nodes per slot should /,
        'ClusterClient FailingTimeoutSeconds should handle node failing timeout correctly',
      ],
    },
  },
  {
    reason: 'moves slots, which must not move during a migration: refused, with the way to do it',
    tests: {
      ioredis: ['cluster:ClusterSubscriberGroup receive messages on the channel after the slot was moved'],
      'node-redis cluster': [
        'Cluster should handle live resharding',
        'Cluster should throw MaxCommandRedirectionsError when exceeding maxCommandRedirections',
        'Cluster request/response policies multi_shard follows a MOVED/ASK redirect per sub-command',
        'Cluster PubSub should move listeners when PubSub node disconnects from the cluster',
        'Cluster PubSub should handle sharded-channel-moved events',
        'Cluster PubSub should resubscribe a sharded channel after in-place slot migration (#3311)',
      ],
      'go-redis': ['ClusterClient ClusterClient preserves ASKING when retrying a conn failure on the ASK target'],
    },
  },
  {
    reason: 'changes the settings of a node, and not those of the other side: refused, with the way to do it',
    tests: {
      ioredis: [/^cluster \(RESP.*\) BUMPEPOCH returns the epoch status$/],
      'node-redis cluster': ['Cluster request/response policies all_nodes CONFIG SET reaches replicas too'],
      'node-redis commands': [
        'CLUSTER BUMPEPOCH clusterNode.clusterBumpEpoch',
        'CLUSTER SAVECONFIG clusterNode.clusterSaveConfig',
      ],
      'go-redis': ['ClusterClient ClusterClient should CLUSTER SAVECONFIG'],
    },
  },
  {
    reason: 'wants connections between the nodes; the proxies have none',
    tests: {
      ioredis: [/^cluster \(RESP.*\) LINKS returns an entry per peer link$/],
      'go-redis': ['ClusterClient ClusterClient should CLUSTER LINKS'],
    },
  },
  {
    reason: 'wants CLIENT PAUSE, which is refused: it would stop the commands of all clients',
    tests: {
      'go-redis': [
        /^ClusterClient timeout read\/write timeout should timeout /,
        'ClusterClient with unavailable Cluster should recover when Cluster recovers',
      ],
    },
  },
  {
    reason: 'looks for the port of the proxy in INFO, which is that of the server',
    tests: { 'go-redis': ['ClusterClient ClusterClient should return correct master for key'] },
  },
];

const listed = (suite: Where['suite'], lists: readonly Listed[]): TestException[] =>
  lists.flatMap(({ reason, sometimes = false, way, tests }) =>
    Object.entries(tests).flatMap(([unit, names]) =>
      names.map((test) => ({ suite, unit, test, reason, sometimes, ...(way && { way }) })),
    ),
  );

export const TESTS: readonly TestException[] = [...listed('redis', REDIS), ...listed('clients', CLIENTS)];

export const KEYS: readonly KeyException[] = [];

const BUSY =
  'expects BUSY while a script runs for ever; through the proxy it waits for the script that it was to kill, and leaves it running';
const MEMORY = 'fails through the proxy, where the server sees the commands with EXEC, and leaves it without memory';
const IN_MULTI =
  'fails through the proxy (CONFIG SET inside MULTI and REPLICAOF are refused), and leaves its client inside MULTI';

/**
 * Tests of Redis's suite that no way runs: what they do to the servers spoils those after them.
 */
export const LEFT_OUT: readonly { readonly test: string; readonly reason: string }[] = [
  {
    test: 'SRANDMEMBER with a dict containing long chain',
    reason:
      'asks for the process of the server, which a suite does not have that did not start it; fails directly, and leaves a changed configuration behind',
  },
  { test: 'Timedout read-only scripts can be killed by SCRIPT KILL', reason: BUSY },
  { test: 'Timedout read-only scripts can be killed by SCRIPT KILL even when use pcall', reason: BUSY },
  { test: 'Timedout script does not cause a false dead client', reason: BUSY },
  { test: 'EXEC and script timeout', reason: BUSY },
  { test: 'just EXEC and script timeout', reason: BUSY },
  { test: 'DISCARD should not fail during OOM', reason: MEMORY },
  { test: 'EXEC with only read commands should not be rejected when OOM', reason: MEMORY },
  { test: 'exec with read commands and stale replica state change', reason: IN_MULTI },
  { test: 'MULTI with config error', reason: IN_MULTI },
];
