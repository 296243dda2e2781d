/** What a suite says about one unit, and what was between its clients and its server. */
import type { ShardSnapshot } from '../../../shadow-proxy/src/telemetry/snapshot.js';

/** Whom the suite's clients talk to: one of the servers, or the proxy in one of two stages. */
export type Way = 'redis' | 'keydb' | 'shadow' | 'live';

/** The way without the proxy, whose server is the authority of the way with it. */
export const DIRECT = { shadow: 'redis', live: 'keydb' } as const;
export type Proxied = keyof typeof DIRECT;

export interface TestResult {
  readonly name: string;
  readonly status: 'ok' | 'failed' | 'skipped';
  /** Why it failed, or was skipped. */
  readonly detail?: string;
}

export interface Outcome {
  /** In the order in which they ended. */
  readonly tests: readonly TestResult[];
  /** Parts of the unit that an error ended before their last test. */
  readonly aborts: readonly string[];
  /** Why the unit did not come to its end; null where it did. */
  readonly cutShort: string | null;
}

/** How the two servers stood when the unit was over. */
export interface MirrorReport {
  /** What the mirror still had to do when time ran out; null where nothing. */
  readonly unsettled: string | null;
  /** A line for each key that differs, from `differences`. */
  readonly differences: readonly string[];
  /** By command and kind, such as `OBJECT value`. */
  readonly mismatches: Readonly<Record<string, number>>;
  /** The first of each, unredacted. */
  readonly samples: readonly string[];
  /** Of each shard. */
  readonly shards: readonly ShardSnapshot[];
}

export interface WayResult {
  readonly way: Way;
  readonly outcome: Outcome;
  readonly seconds: number;
  /** Null on a direct way, and where the proxy or a server did not live to the end. */
  readonly mirror: MirrorReport | null;
  /** Which of the servers and the proxy ended by itself, with its last words. */
  readonly died: string | null;
}

export interface UnitResult {
  readonly unit: string;
  /** A way through the proxy is there more than once where it was tried again. */
  readonly ways: readonly WayResult[];
}
