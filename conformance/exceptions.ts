/**
 * What may differ with the proxy between a client and its server, each with its reason. An entry that excuses nothing in a run
 * that had its unit is an error: it is no longer true, and must go.
 */
import type { Proxied } from './run/result.js';

interface Where {
  readonly suite: 'redis' | 'bullmq';
  /** Such as `unit/scan`; for BullMQ the file. */
  readonly unit: string;
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
