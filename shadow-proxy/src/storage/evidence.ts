/**
 * The evidence that gates judge: what was observed of each workload since it entered its stage.
 *
 *   <state>/<shard>/evidence.json   replaced now and then, and at the end; with a checksum
 *
 * A crash may lose evidence, but never makes a gate open: observations that close a gate are written at once. A file
 * that cannot be trusted is replaced by an empty one.
 */
import { join } from 'node:path';
import * as z from 'zod';
import type { UnsupportedCalls } from '../telemetry/workload-counters.js';
import { SIDES, STAGES, type StagePoint } from '../route/stage.js';
import { readSealed, writeSealed, type Author, type ReadResult } from './sealed.js';
import type { Latest } from '../telemetry/series.js';

const counts = z.record(z.string(), z.number());
const latency = z.strictObject({ p50: z.number(), p99: z.number(), p999: z.number(), count: z.number() });
const latencies = z.strictObject({ at: z.string(), source: latency, target: latency });
const verification = z.strictObject({
  endedAt: z.string(),
  keys: z.number(),
  differences: z.number(),
  failed: z.number(),
  unsure: z.number(),
});
const drill = z.strictObject({ at: z.string(), percent: z.number(), heldMs: z.number() });
const unsupported = z.strictObject({
  /** The server that does not support the form. */
  lacks: z.enum(SIDES),
  calls: z.number(),
  /** First and last time of use (ISO 8601). */
  first: z.string(),
  last: z.string(),
});
const workload = z.strictObject({
  stage: z.enum(STAGES),
  percent: z.number(),
  since: z.string(),
  compared: z.number(),
  allowed: counts,
  mismatches: counts,
  inconclusive: z.number(),
  /** Inconclusive pairs whose keys a script has changed, by script. */
  inconclusiveByScript: counts.default({}),
  /** Minutes in which replies were compared. */
  minutes: z.number(),
  /** Hours of the day (UTC) in which replies were compared. */
  hours: z.array(z.number()),
  /** The last verification of all keys of the workload. */
  verified: verification.nullable(),
  /** The last rollback drill. */
  drill: drill.nullable(),
  /** Forms that clients use and one server does not support. They are kept when the stage changes. */
  unsupported: z.record(z.string(), unsupported).default({}),
});
const file = z.strictObject({
  version: z.literal(1),
  workloads: z.record(z.string(), workload),
  /** Latencies of each minute in which both servers answered, in µs. */
  latencies: z.array(latencies),
  /** The same latencies by workload, for fewer minutes. */
  workloadLatencies: z.record(z.string(), z.array(latencies)).default({}),
  /** The last writes that bypassed the proxy, by command, and their time (ISO 8601). */
  passed: z.strictObject({ at: z.string(), writes: counts }).nullable().default(null),
});

export type WorkloadEvidence = Readonly<z.infer<typeof workload>>;
export type Verified = Readonly<z.infer<typeof verification>>;
export type UnsupportedForm = Readonly<z.infer<typeof unsupported>>;
export type Drill = Readonly<z.infer<typeof drill>>;
export type LastPassed = Readonly<z.infer<typeof file>['passed']>;
export type LatencyWindow = z.infer<typeof file>['latencies'][number];

/** Totals of one workload since the start of the process. */
export interface WorkloadTotals extends StagePoint {
  readonly name: string;
  readonly compared: number;
  readonly allowed: ReadonlyMap<string, number>;
  readonly mismatches: ReadonlyMap<string, number>;
  readonly inconclusive: number;
  readonly inconclusiveByScript: ReadonlyMap<string, number>;
  readonly unsupported: ReadonlyMap<string, UnsupportedCalls>;
}

const FILE = 'evidence.json';
/** Minutes of latencies that are kept: four hours. */
const MAX_WINDOWS = 240;
/** Minutes that are kept for each workload, of which there may be many: two hours. */
const MAX_WORKLOAD_WINDOWS = 120;
const MINUTE_MS = 60_000;

type Mutable = { -readonly [K in keyof WorkloadEvidence]: WorkloadEvidence[K] };

export class EvidenceBook {
  /** Why the evidence of the last process is not used; null if it is used, or there was none. */
  readonly problem: string | null;
  readonly #path: string;
  readonly #workloads = new Map<string, Mutable>();
  readonly #before = new Map<string, WorkloadTotals>();
  /** The minute that was counted last, by workload. */
  readonly #minute = new Map<string, number>();
  /** Calls that were added already, by workload and form. */
  readonly #unsupported = new Map<string, Map<string, number>>();
  #isNew = false;
  #latencies: LatencyWindow[] = [];
  readonly #workloadLatencies = new Map<string, LatencyWindow[]>();
  #passed: LastPassed = null;
  readonly #drilling = new Set<string>();

  constructor(
    directory: string,
    private readonly author: Author,
  ) {
    this.#path = join(directory, FILE);
    const { value, problem } = readEvidence(directory, author.before);
    this.problem = problem;
    if (value === null) return;
    for (const [name, evidence] of Object.entries(value.workloads)) this.#workloads.set(name, evidence);
    this.#latencies = value.latencies;
    for (const [name, windows] of Object.entries(value.workloadLatencies)) this.#workloadLatencies.set(name, windows);
    this.#passed = value.passed;
  }

  /**
   * Adds what was observed since the last call.
   * @returns whether a crash must not lose the observations: a mismatch, or a form that is not supported and is seen
   * for the first time
   */
  update(now: Date, seen: readonly WorkloadTotals[]): boolean {
    this.#isNew = false;
    for (const each of seen) this.#add(now, each);
    return this.#isNew;
  }

  /** The evidence of a workload that `update` has seen; null for others. */
  of(name: string): WorkloadEvidence | null {
    return this.#workloads.get(name) ?? null;
  }

  /** Latencies of each minute since a time: of all commands, or of one workload. */
  latenciesSince(since: string, workload: string | null = null): readonly LatencyWindow[] {
    const windows = workload === null ? this.#latencies : (this.#workloadLatencies.get(workload) ?? []);
    return windows.filter(({ at }) => at >= since);
  }

  /** Adds a minute's latencies; a minute without replies is skipped. */
  timed(now: Date, { source, target }: Latest, workload: string | null = null): void {
    if (source.count === 0 || target.count === 0) return;
    const window = { at: now.toISOString(), source, target };
    if (workload === null) this.#latencies = [...this.#latencies, window].slice(-MAX_WINDOWS);
    else
      this.#workloadLatencies.set(
        workload,
        [...(this.#workloadLatencies.get(workload) ?? []), window].slice(-MAX_WORKLOAD_WINDOWS),
      );
  }

  verified(name: string, verified: Verified): void {
    const evidence = this.#workloads.get(name);
    if (evidence !== undefined) evidence.verified = verified;
  }

  /** During a drill, observations count for the stage that the workload came from, and to which it returns. */
  drilling(name: string, on: boolean): void {
    if (on) this.#drilling.add(name);
    else this.#drilling.delete(name);
  }

  drilled(name: string, drilled: Drill): void {
    const evidence = this.#workloads.get(name);
    if (evidence !== undefined) evidence.drill = drilled;
  }

  /** The last writes that bypassed the proxy; null if there were none. */
  get passed(): LastPassed {
    return this.#passed;
  }

  bypassed(last: LastPassed): void {
    this.#passed = last;
  }

  /** @throws {Error} if the disk does not take the file */
  save(): void {
    writeSealed(this.#path, this.author, {
      version: 1,
      workloads: Object.fromEntries(this.#workloads),
      latencies: this.#latencies,
      workloadLatencies: Object.fromEntries(this.#workloadLatencies),
      passed: this.#passed,
    });
  }

  #add(now: Date, seen: WorkloadTotals): void {
    const evidence = this.#current(now, seen);
    const before = this.#before.get(seen.name);
    this.#before.set(seen.name, { ...seen, allowed: new Map(seen.allowed), mismatches: new Map(seen.mismatches) });
    this.#addUnsupported(now, seen, evidence);
    const compared = seen.compared - (before?.compared ?? 0);
    evidence.compared += compared;
    evidence.inconclusive += seen.inconclusive - (before?.inconclusive ?? 0);
    addEach(evidence.inconclusiveByScript, seen.inconclusiveByScript, before?.inconclusiveByScript);
    addEach(evidence.allowed, seen.allowed, before?.allowed);
    if (addEach(evidence.mismatches, seen.mismatches, before?.mismatches)) this.#isNew = true;
    const minute = Math.floor(now.getTime() / MINUTE_MS);
    if (compared === 0 || this.#minute.get(seen.name) === minute) return;
    this.#minute.set(seen.name, minute);
    evidence.minutes++;
    const hour = now.getUTCHours();
    if (!evidence.hours.includes(hour)) evidence.hours = [...evidence.hours, hour].sort((a, b) => a - b);
  }

  #addUnsupported(now: Date, { name, unsupported: seen }: WorkloadTotals, evidence: Mutable): void {
    let added = this.#unsupported.get(name);
    if (added === undefined) this.#unsupported.set(name, (added = new Map()));
    for (const [form, { lacks, calls }] of seen) {
      const more = calls - (added.get(form) ?? 0);
      if (more === 0) continue;
      added.set(form, calls);
      const known = evidence.unsupported[form];
      this.#isNew ||= known === undefined;
      const at = now.toISOString();
      evidence.unsupported[form] = { lacks, calls: (known?.calls ?? 0) + more, first: known?.first ?? at, last: at };
    }
  }

  /** The evidence of a workload, which is empty again if its stage has changed. */
  #current(now: Date, { name, stage, percent }: WorkloadTotals): Mutable {
    const known = this.#workloads.get(name);
    if (known !== undefined && (this.#drilling.has(name) || (known.stage === stage && known.percent === percent)))
      return known;
    const fresh: Mutable = {
      ...noEvidence({ stage, percent }, now),
      verified: known?.verified ?? null,
      drill: known?.drill ?? null,
      unsupported: known?.unsupported ?? {},
    };
    this.#workloads.set(name, fresh);
    this.#minute.delete(name);
    return fresh;
  }
}

/** The evidence of a workload that has just entered its stage. */
export const noEvidence = ({ stage, percent }: StagePoint, now: Date): WorkloadEvidence => ({
  stage,
  percent,
  since: now.toISOString(),
  compared: 0,
  allowed: {},
  mismatches: {},
  inconclusive: 0,
  inconclusiveByScript: {},
  minutes: 0,
  hours: [],
  verified: null,
  drill: null,
  unsupported: {},
});

/** @returns whether there was anything to add */
function addEach(
  to: Record<string, number>,
  now: ReadonlyMap<string, number>,
  before: ReadonlyMap<string, number> | undefined,
): boolean {
  let any = false;
  for (const [name, count] of now) {
    const more = count - (before?.get(name) ?? 0);
    if (more <= 0) continue;
    to[name] = (to[name] ?? 0) + more;
    any = true;
  }
  return any;
}

/** What the process that served last wrote. @param served the process's name in the state */
export const readEvidence = (directory: string, served: string | null): ReadResult<z.infer<typeof file>> =>
  readSealed(join(directory, FILE), served, file);
