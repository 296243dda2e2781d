/**
 * What may differ with the proxy between a client and its server, each with its reason. An entry that excuses nothing in a run
 * that had its unit is an error: it is no longer true, and must go.
 */
import type { Proxied } from './run/result.js';

interface Where {
  readonly suite: 'redis' | 'bullmq';
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
}

/** A difference between the two servers at the end of a unit. */
export interface KeyException extends Where {
  /** Matches a line of `differences`. */
  readonly difference: RegExp;
}

const REPLICA = 'reads what the server sends to its replicas (SYNC); replicas belong to the server behind the proxy';

/** Tests of Redis's suite that read what the server sends to its replicas. */
const AS_REPLICA: Readonly<Record<string, readonly string[]>> = {
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
    'INCRBYFLOAT: We can call scripts expanding client->argv from Lua',
  ],
};

export const TESTS: readonly TestException[] = [
  ...Object.entries(AS_REPLICA).flatMap(([unit, tests]) => tests.map((test) => ({ suite: 'redis' as const, unit, test, reason: REPLICA }))),
];

export const KEYS: readonly KeyException[] = [];

/**
 * Tests of Redis's suite that no way runs: what they do to the servers spoils those after them.
 */
export const LEFT_OUT: readonly { readonly test: string; readonly reason: string }[] = [
  {
    test: 'SRANDMEMBER with a dict containing long chain',
    reason: 'asks for the process of the server, which a suite does not have that did not start it; fails directly, and leaves a changed configuration behind',
  },
  {
    test: 'EVAL - Return table with a metatable that raise error',
    reason: 'ends KeyDB 6.3.4 ("PANIC: unprotected error in call to Lua API"), as it would without the proxy',
  },
];
