/** What a load test leaves: `results.json`. All else (report.html, report.md, the tables) is made of it. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Driven } from '../driver/driver.js';
import { LoadtestError } from '../rig/errors.js';
import type { Role } from '../sides/side.js';
import type { Profile } from '../workload/profile.js';

/** What the load host says about itself; null where the system does not tell. */
export interface Machine {
  readonly cores: number;
  /** Load average of the last minute, before the first measurement. */
  readonly loadBefore: number;
  /** Share of the processor time between the first measurement and the last, 0 to 1. */
  readonly steal: number | null;
}

export const FORMAT = 1;
export const RESULTS_FILE = 'results.json';

/** Connections and pipeline depth of a measurement: a sweep has several points. */
export interface Point {
  readonly connections: number;
  readonly pipeline: number;
}

/** One measurement of one side. */
export interface Sample extends Driven {
  readonly side: string;
  /** From 0. */
  readonly round: number;
  readonly point: Point;
  /** CPU seconds of each process that worked for it, until the mirror had everything. */
  readonly work: Readonly<Record<string, number>>;
  /** Load hosts whose figures are in it. */
  readonly hosts: number;
}

export interface SideFacts {
  readonly id: string;
  readonly role: Role;
  readonly title: string;
  readonly where: string;
}

/** Whether the counters on a server add up to what the load generator counted. */
export interface CounterCheck {
  readonly side: string;
  readonly server: string;
  /** The increments that were acknowledged, and what the keys hold. */
  readonly expected: number;
  readonly found: number;
}

export interface Results {
  readonly format: typeof FORMAT;
  /** ISO 8601. */
  readonly startedAt: string;
  /** For each load host: processors, system, load generator. */
  readonly hosts: readonly string[];
  readonly driver: string;
  readonly profile: Profile;
  readonly prefix: string;
  readonly rounds: number;
  readonly seconds: number;
  readonly warmUp: number;
  readonly rate: number | null;
  /** True where servers and load shared one machine. */
  readonly loopback: boolean;
  /** The load host, or the busiest of several. Absent in results of older releases. */
  readonly machine?: Machine;
  readonly sides: readonly SideFacts[];
  readonly points: readonly Point[];
  readonly samples: readonly Sample[];
  /** Empty where the profile counts nothing. */
  readonly counters: readonly CounterCheck[];
  /** Set for a soak, whose rounds are slices of one long load. */
  readonly soak?: Soak;
}

export interface Soak {
  /** What was restarted in mid-run; null for nothing. */
  readonly restarted: 'source' | 'target' | null;
  /** Unix seconds from its end until it answered again. */
  readonly downtime: { readonly from: number; readonly to: number } | null;
  /** Slices that lost a connection: their load goes on in the next one, their figures are lost. */
  readonly interrupted: readonly { readonly from: number; readonly to: number; readonly why: string }[];
  readonly tallies: readonly TallyCheck[];
  /** The longest time that a client was without an acknowledgement, in ms. */
  readonly longestWaitMs: number;
}

/** What clients that count for themselves know, and what a server holds of it. */
export interface TallyCheck {
  readonly server: string;
  readonly acknowledged: number;
  /** With those of which nobody knows. */
  readonly attempted: number;
  readonly found: number;
}

export const tallyHolds = ({ acknowledged, attempted, found }: TallyCheck): boolean =>
  found >= acknowledged && found <= attempted;

export const samePoint = (a: Point, b: Point): boolean => a.connections === b.connections && a.pipeline === b.pipeline;

export const pointName = ({ connections, pipeline }: Point): string =>
  `${connections} connections, pipeline ${pipeline}`;

/** @param place the folder that a run left, or its results.json  @throws {LoadtestError} */
export function readResults(place: string): Results {
  const file = place.endsWith('.json') ? place : path.join(place, RESULTS_FILE);
  let results: Results;
  try {
    results = JSON.parse(readFileSync(file, 'utf8')) as Results;
  } catch (error) {
    throw new LoadtestError(
      'USAGE',
      `${file} cannot be read: ${(error as Error).message}. Give a folder that a load test left`,
    );
  }
  if (results.format !== FORMAT)
    throw new LoadtestError('USAGE', `${file} has format ${results.format}, not ${FORMAT}: it is of another release`);
  return results;
}
