/** What a run does: load, faults by probability, operator. Times are milliseconds of virtual time. */
import type { Mix } from '../clients/commands.js';
import type { NetworkOptions } from '../world/network.js';

/** The mean time between two of a kind; absent: never. */
export interface Faults {
  /** A connection is cut at any byte. */
  readonly cut?: number;
  /** One direction of a connection is silent for up to `silenceMs`. */
  readonly silence?: number;
  readonly silenceMs?: number;
  /** A client closes its connection, whatever waits. */
  readonly leave?: number;
  /** A client reads nothing for a while. */
  readonly slowReader?: number;
  /** A server is stopped (SIGSTOP) for up to `pauseMs`. */
  readonly pause?: number;
  readonly pauseMs?: number;
  /** A server ends and starts again with its data. */
  readonly serverRestart?: number;
  /** The proxy's process is killed at any event, and starts again. */
  readonly proxyKill?: number;
  /** The operator changes the stage. */
  readonly stageChange?: number;
  /** The operator begins a verification. */
  readonly verify?: number;
}

export type Fault = Exclude<keyof Faults, 'silenceMs' | 'pauseMs'>;

export interface Profile {
  readonly name: string;
  readonly clients: number;
  readonly pipeline: number;
  readonly thinkMs: readonly [number, number];
  readonly keys: number;
  readonly mix: Partial<Mix>;
  readonly network: NetworkOptions;
  readonly faults: Faults;
  readonly stage: 'dualwrite' | 'shadow' | 'live' | 'rampdown';
  /** Written into the plan. */
  readonly plan?: Readonly<Record<string, unknown>>;
}

const NEAR: NetworkOptions = { delayMs: [0.02, 0.2], lateShare: 0.002, lateMs: 40, splitShare: 0.01 };
const ALL: Partial<Mix> = {
  ...{ strings: 4, expiring: 3, counters: 2, floats: 1, lists: 3, blocking: 3, hashes: 2, sets: 2, sortedSets: 3 },
  ...{ streams: 3, transactions: 2, several: 2, mixed: 1, keyspace: 1, ofRedisOnly: 1, followed: 16 },
};

const profile = (name: string, faults: Faults, more: Partial<Profile> = {}): Profile => ({
  ...{ name, clients: 8, pipeline: 6, thinkMs: [0, 40], keys: 12, mix: ALL, network: NEAR, faults, stage: 'shadow' },
  ...more,
});

export const PROFILES: readonly Profile[] = [
  profile('calm', {}),
  profile('cuts', { cut: 80, leave: 100, slowReader: 300, silence: 150, silenceMs: 300 }),
  profile('expiry', { cut: 150, pause: 600, pauseMs: 300 }, { mix: { expiring: 10, transactions: 1 }, keys: 20 }),
  profile('pauses', { pause: 2_000, pauseMs: 3_000, cut: 500 }),
  profile('servers', { serverRestart: 700, cut: 300 }),
  profile('restarts', { proxyKill: 500, cut: 300 }),
  profile('expiry-restarts', { proxyKill: 300, cut: 200 }, { mix: { expiring: 10, transactions: 1 }, keys: 30 }),
  profile('operator', { stageChange: 50, cut: 150, verify: 300 }),
  profile('storm', {
    ...{ cut: 150, leave: 200, silence: 300, silenceMs: 1_000, pause: 4_000, pauseMs: 2_000 },
    ...{ serverRestart: 2_000, proxyKill: 2_000, stageChange: 150, verify: 700, slowReader: 400 },
  }),
];
