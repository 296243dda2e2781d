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

export const TESTS: readonly TestException[] = [];

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
