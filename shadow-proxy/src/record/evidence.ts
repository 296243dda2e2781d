/**
 * What was seen of each workload since it entered its stage: what the gates judge.
 *
 *   <state>/<shard>/evidence.json   replaced now and then, and at the end; with a checksum
 *
 * What a sudden end loses makes the evidence less, never more. A file that cannot be believed is begun anew, for the same reason.
 */
import { join } from 'node:path';
import { z } from 'zod';
import type { StagePoint } from '../plan/plan.js';
import { STAGES } from '../route/stage.js';
import { readSealed, writeSealed, type Author, type Read } from './sealed.js';
import type { LatencySnapshot } from './snapshot.js';

const counts = z.record(z.string(), z.number());
const latency = z.strictObject({ p50: z.number(), p99: z.number(), p999: z.number(), count: z.number() });
const verification = z.strictObject({ endedAt: z.string(), keys: z.number(), differences: z.number(), failed: z.number(), unsure: z.number() });
const drill = z.strictObject({ at: z.string(), percent: z.number(), heldMs: z.number() });
const workload = z.strictObject({
  stage: z.enum(STAGES),
  percent: z.number(),
  since: z.string(),
  compared: z.number(),
  explained: counts,
  mismatches: counts,
  inconclusive: z.number(),
  /** Minutes in which replies were compared. */
  minutes: z.number(),
  /** Hours of the day (UTC) in which replies were compared. */
  hours: z.array(z.number()),
  /** The last verification of all its keys. */
  verified: verification.nullable(),
  /** The last rollback that was rehearsed. */
  drill: drill.nullable(),
});
const file = z.strictObject({
  version: z.literal(1),
  workloads: z.record(z.string(), workload),
  /** Of each minute in which both servers answered, in µs. */
  latencies: z.array(z.strictObject({ at: z.string(), source: latency, target: latency })),
});

export type WorkloadEvidence = Readonly<z.infer<typeof workload>>;
export type Verified = Readonly<z.infer<typeof verification>>;
export type Drill = Readonly<z.infer<typeof drill>>;
export type LatencyWindow = z.infer<typeof file>['latencies'][number];

/** Totals since the start of the process. */
export interface Seen extends StagePoint {
  readonly name: string;
  readonly compared: number;
  readonly explained: ReadonlyMap<string, number>;
  readonly mismatches: ReadonlyMap<string, number>;
  readonly inconclusive: number;
}

const FILE = 'evidence.json';
/** Four hours. */
const MAX_WINDOWS = 240;
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
  #latencies: LatencyWindow[] = [];
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
  }

  /** Adds what was seen since the last look. */
  look(now: Date, seen: readonly Seen[]): void {
    for (const each of seen) this.#add(now, each);
  }

  /** The evidence of a workload that `look` has told of. */
  of(name: string): WorkloadEvidence | null {
    return this.#workloads.get(name) ?? null;
  }

  /** Latencies by the minute, since that moment. */
  latenciesSince(since: string): readonly LatencyWindow[] {
    return this.#latencies.filter(({ at }) => at >= since);
  }

  /** A minute's latencies; those of which nothing was answered tell nothing. */
  timed(now: Date, source: LatencySnapshot, target: LatencySnapshot): void {
    if (source.count === 0 || target.count === 0) return;
    this.#latencies.push({ at: now.toISOString(), source, target });
    this.#latencies = this.#latencies.slice(-MAX_WINDOWS);
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

  /** @throws {Error} when the disk does not take it */
  save(): void {
    writeSealed(this.#path, this.author, { version: 1, workloads: Object.fromEntries(this.#workloads), latencies: this.#latencies });
  }

  #add(now: Date, seen: Seen): void {
    const evidence = this.#current(now, seen);
    const before = this.#before.get(seen.name);
    this.#before.set(seen.name, { ...seen, explained: new Map(seen.explained), mismatches: new Map(seen.mismatches) });
    const compared = seen.compared - (before?.compared ?? 0);
    evidence.compared += compared;
    evidence.inconclusive += seen.inconclusive - (before?.inconclusive ?? 0);
    addEach(evidence.explained, seen.explained, before?.explained);
    addEach(evidence.mismatches, seen.mismatches, before?.mismatches);
    const minute = Math.floor(now.getTime() / MINUTE_MS);
    if (compared === 0 || this.#minute.get(seen.name) === minute) return;
    this.#minute.set(seen.name, minute);
    evidence.minutes++;
    const hour = now.getUTCHours();
    if (!evidence.hours.includes(hour)) evidence.hours = [...evidence.hours, hour].sort((a, b) => a - b);
  }

  /** A workload that is in another stage than before begins anew. */
  #current(now: Date, { name, stage, percent }: Seen): Mutable {
    const known = this.#workloads.get(name);
    if (known !== undefined && (this.#drilling.has(name) || (known.stage === stage && known.percent === percent))) return known;
    const fresh: Mutable = { ...noEvidence({ stage, percent }, now), verified: known?.verified ?? null, drill: known?.drill ?? null };
    this.#workloads.set(name, fresh);
    this.#minute.delete(name);
    return fresh;
  }
}

/** Of a workload that has just entered its stage. */
export const noEvidence = ({ stage, percent }: StagePoint, now: Date): WorkloadEvidence => ({
  stage,
  percent,
  since: now.toISOString(),
  compared: 0,
  explained: {},
  mismatches: {},
  inconclusive: 0,
  minutes: 0,
  hours: [],
  verified: null,
  drill: null,
});

function addEach(to: Record<string, number>, now: ReadonlyMap<string, number>, before: ReadonlyMap<string, number> | undefined): void {
  for (const [name, count] of now) {
    const more = count - (before?.get(name) ?? 0);
    if (more > 0) to[name] = (to[name] ?? 0) + more;
  }
}

/** What the process that served last wrote of it: `served`, as the state names it. */
export const readEvidence = (directory: string, served: string | null): Read<z.infer<typeof file>> => readSealed(join(directory, FILE), served, file);
