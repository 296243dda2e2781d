/** The results of a load test: `results.json`. Everything else (report.html, report.md, the tables) is made from it. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Driven } from '../driver/driver.js';
import { LoadtestError } from '../rig/errors.js';
import type { Role } from '../sides/side.js';
import type { Profile } from '../workload/profile.js';

/** Facts about the load host; null if the system does not show them. */
export interface Machine {
  readonly cores: number;
  /** Load average of the last minute before the first measurement. */
  readonly loadBefore: number;
  /** Share of the CPU time between the first and the last measurement that the hypervisor gave to others, 0 to 1. */
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
  /** The first round is 0. */
  readonly round: number;
  readonly point: Point;
  /** CPU seconds of each process that worked for the side, until the mirror had everything. */
  readonly work: Readonly<Record<string, number>>;
  /** Number of load hosts whose figures are included. */
  readonly hosts: number;
}

export interface SideFacts {
  readonly id: string;
  readonly role: Role;
  readonly title: string;
  readonly where: string;
}

/** Whether the counters on a server are equal to what the load generator counted. */
export interface CounterCheck {
  readonly side: string;
  readonly server: string;
  /** The acknowledged increments, and the sum of the keys. */
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
  /** Whether servers and load ran on one machine. */
  readonly loopback: boolean;
  /** The load host, or the busiest of several. Absent in results of older releases. */
  readonly machine?: Machine;
  readonly sides: readonly SideFacts[];
  readonly points: readonly Point[];
  readonly samples: readonly Sample[];
  /** Empty if the profile has no counters. */
  readonly counters: readonly CounterCheck[];
  /** Set for a soak, whose rounds are slices of one long load. */
  readonly soak?: Soak;
}

export interface Soak {
  /** The server that was restarted during the run; null if none was. */
  readonly restarted: 'source' | 'target' | null;
  /** When the server was down: from the end of the process until it answered again, in Unix seconds. */
  readonly downtime: { readonly from: number; readonly to: number } | null;
  /** Slices that lost a connection: their load continues in the next slice, and their figures are lost. */
  readonly interrupted: readonly { readonly from: number; readonly to: number; readonly why: string }[];
  readonly tallies: readonly TallyCheck[];
  /** The longest time that a client was without an acknowledgement, in ms. */
  readonly longestWaitMs: number;
}

/** What clients with their own counts know, and what a server has. */
export interface TallyCheck {
  readonly server: string;
  readonly acknowledged: number;
  /** Including increments without a known result. */
  readonly attempted: number;
  readonly found: number;
}

export const tallyHolds = ({ acknowledged, attempted, found }: TallyCheck): boolean =>
  found >= acknowledged && found <= attempted;

export const samePoint = (a: Point, b: Point): boolean => a.connections === b.connections && a.pipeline === b.pipeline;

export const pointName = ({ connections, pipeline }: Point): string =>
  `${connections} connections, pipeline ${pipeline}`;

/** @param place the folder of a run, or its results.json  @throws {LoadtestError} */
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
