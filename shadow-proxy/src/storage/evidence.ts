/**
 * What was seen of each workload since it entered its stage: what the gates judge.
 *
 *   <state>/<shard>/evidence.json   replaced now and then, and at the end; with a checksum
 *
 * What a sudden end loses makes the evidence less, never more: what closes a gate is written as soon as it is seen. A
 * file that cannot be trusted is started again, for the same reason.
 */
import { join } from 'node:path';
import { z } from 'zod';
import type { UnsupportedCalls } from '../route/router.js';
import { SIDES, STAGES, type StagePoint } from '../route/stage.js';
import { readSealed, writeSealed, type Author, type Read } from './sealed.js';
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
  /** The server that does not support it. */
  lacks: z.enum(SIDES),
  calls: z.number(),
  /** When it was seen first and last (ISO 8601). */
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
  /** By script: those of the inconclusive pairs whose keys it has changed. */
  inconclusiveByScript: counts.default({}),
  /** Minutes in which replies were compared. */
  minutes: z.number(),
  /** Hours of the day (UTC) in which replies were compared. */
  hours: z.array(z.number()),
  /** The last verification of all its keys. */
  verified: verification.nullable(),
  /** The last rollback that was rehearsed. */
  drill: drill.nullable(),
  /** By form: what clients use and one of the servers does not support. Kept over changes of stage. */
  unsupported: z.record(z.string(), unsupported).default({}),
});
const file = z.strictObject({
  version: z.literal(1),
  workloads: z.record(z.string(), workload),
  /** Latencies of each minute in which both servers answered, in µs. */
  latencies: z.array(latencies),
  /** The same by workload, for fewer minutes. */
  workloadLatencies: z.record(z.string(), z.array(latencies)).default({}),
  /** The last writes that were seen to bypass the proxy, by command, and when (ISO 8601). */
  passed: z.strictObject({ at: z.string(), writes: counts }).nullable().default(null),
});

export type WorkloadEvidence = Readonly<z.infer<typeof workload>>;
export type Verified = Readonly<z.infer<typeof verification>>;
export type UnsupportedForm = Readonly<z.infer<typeof unsupported>>;
export type Drill = Readonly<z.infer<typeof drill>>;
export type LastPassed = Readonly<z.infer<typeof file>['passed']>;
export type LatencyWindow = z.infer<typeof file>['latencies'][number];

/** Totals since the start of the process. */
export interface Seen extends StagePoint {
  readonly name: string;
  readonly compared: number;
  readonly allowed: ReadonlyMap<string, number>;
  readonly mismatches: ReadonlyMap<string, number>;
  readonly inconclusive: number;
  readonly inconclusiveByScript: ReadonlyMap<string, number>;
  readonly unsupported: ReadonlyMap<string, UnsupportedCalls>;
}

const FILE = 'evidence.json';
/** Four hours. */
const MAX_WINDOWS = 240;
/** Two hours: the windows of one workload, of which there may be many. */
const MAX_WORKLOAD_WINDOWS = 120;
const MINUTE_MS = 60_000;

type Mutable = { -readonly [K in keyof WorkloadEvidence]: WorkloadEvidence[K] };

export class EvidenceBook {
  /** Why what the last process wrote is not counted; null where it is, or there was nothing. */
  readonly problem: string | null;
  readonly #path: string;
  readonly #workloads = new Map<string, Mutable>();
  readonly #before = new Map<string, Seen>();
  /** The minute that was counted last, by workload. */
  readonly #minute = new Map<string, number>();
  /** By workload and form: calls that were added already. */
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
   * Adds what was seen since the last look.
   * @returns whether a sudden end must not lose what was seen: a mismatch, or a form that is not supported and was not
   * seen before
   */
  update(now: Date, seen: readonly Seen[]): boolean {
    this.#isNew = false;
    for (const each of seen) this.#add(now, each);
    return this.#isNew;
  }

  /** The evidence of a workload that `update` has seen. */
  of(name: string): WorkloadEvidence | null {
    return this.#workloads.get(name) ?? null;
  }

  /** Latencies by the minute, since that moment: of all commands, or of one workload. */
  latenciesSince(since: string, workload: string | null = null): readonly LatencyWindow[] {
    const windows = workload === null ? this.#latencies : (this.#workloadLatencies.get(workload) ?? []);
    return windows.filter(({ at }) => at >= since);
  }

  /** A minute's latencies; those of which nothing was answered tell nothing. */
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

  /** While a rollback is rehearsed, what is seen counts to the stage that the workload came from, and goes back to. */
  drilling(name: string, on: boolean): void {
    if (on) this.#drilling.add(name);
    else this.#drilling.delete(name);
  }

  drilled(name: string, drilled: Drill): void {
    const evidence = this.#workloads.get(name);
    if (evidence !== undefined) evidence.drill = drilled;
  }

  /** The last writes that were seen to bypass the proxy; null where none were. */
  get passed(): LastPassed {
    return this.#passed;
  }

  bypassed(last: LastPassed): void {
    this.#passed = last;
  }

  /** @throws {Error} when the disk does not take it */
  save(): void {
    writeSealed(this.#path, this.author, {
      version: 1,
      workloads: Object.fromEntries(this.#workloads),
      latencies: this.#latencies,
      workloadLatencies: Object.fromEntries(this.#workloadLatencies),
      passed: this.#passed,
    });
  }

  #add(now: Date, seen: Seen): void {
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

  #addUnsupported(now: Date, { name, unsupported: seen }: Seen, evidence: Mutable): void {
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

  /** A workload that is in another stage than before starts again. */
  #current(now: Date, { name, stage, percent }: Seen): Mutable {
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

/** What the process that served last wrote of it: `served`, as the state names it. */
export const readEvidence = (directory: string, served: string | null): Read<z.infer<typeof file>> =>
  readSealed(join(directory, FILE), served, file);
