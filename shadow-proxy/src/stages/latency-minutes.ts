/**
 * Latencies of both servers, of all commands and of each workload: since the last sample, and in the present minute.
 */
import type { Histogram } from 'hdr-histogram-js';
import { isoTime, monotonicMs } from '../io/clock.js';
import { latencyHistogram, type Latencies } from '../io/latency.js';
import { SIDES, type Side } from '../route/stage.js';
import type { LatencyWindow } from '../storage/evidence.js';
import { SERIES_STEP_MS, type Latest } from '../telemetry/series.js';
import type { LatencySnapshot } from '../telemetry/snapshot.js';

const MINUTE_MS = 60_000;

type BySide = Readonly<Record<Side, Histogram>>;

export interface LatencyEvents {
  /** Called every few seconds with the latencies since the last sample; workloads in the router's order. */
  sampled(latest: Latest, workloads: readonly Latest[]): void;
  /** Called at the end of a minute; workloads in the router's order. */
  minute(now: Date, latest: Latest, workloads: readonly Latest[]): void;
}

export class LatencyMinutes {
  /** Latencies since the last sample; and of the present minute up to that sample. */
  readonly #recent: BySide = { source: latencyHistogram(), target: latencyHistogram() };
  readonly #minute: BySide = { source: latencyHistogram(), target: latencyHistogram() };
  /** Latencies of the present minute up to the last sample, by workload. Later ones are in `Latencies.ofWorkloads`. */
  readonly #minutes: readonly BySide[];
  readonly #unwatch: readonly (() => void)[];
  #timedAt = monotonicMs();
  #sampledAt = monotonicMs();

  constructor(
    private readonly by: Readonly<Record<Side, Latencies>>,
    private readonly events: LatencyEvents,
  ) {
    this.#minutes = by.source.ofWorkloads.map(() => ({ source: latencyHistogram(2), target: latencyHistogram(2) }));
    this.#unwatch = SIDES.map((side) => by[side].watch(this.#recent[side]));
  }

  /**
   * Takes a sample when it is due. A minute ends with a sample, never between two: a second sample right after the
   * first would be empty, and show a rate of 0.
   */
  sampleIfDue(now: Date): void {
    if (monotonicMs() - this.#sampledAt < SERIES_STEP_MS) return;
    this.#sample();
    if (monotonicMs() - this.#timedAt >= MINUTE_MS) this.#endMinute(now);
  }

  /** Latencies of the minute that is not over yet. */
  running(): LatencyWindow {
    return { at: isoTime(), ...this.#both(this.#minute, this.#recent, 3) };
  }

  /** The same for one workload. @param index its place in the router's order */
  runningOf(index: number): LatencyWindow {
    return { at: isoTime(), ...this.#both(this.#minutes[index], this.#recentOf(index), 2) };
  }

  close(): void {
    for (const end of this.#unwatch) end();
  }

  #both(before: BySide, recent: BySide, digits: 2 | 3): Latest {
    const of = (side: Side): LatencySnapshot => {
      const all = latencyHistogram(digits);
      all.add(before[side]);
      all.add(recent[side]);
      return this.by[side].snapshot(all);
    };
    return { source: of('source'), target: of('target') };
  }

  #recentOf(index: number): BySide {
    return { source: this.by.source.ofWorkloads[index], target: this.by.target.ofWorkloads[index] };
  }

  #snapshot(of: BySide): Latest {
    return { source: this.by.source.snapshot(of.source), target: this.by.target.snapshot(of.target) };
  }

  #sample(): void {
    this.#sampledAt = monotonicMs();
    const workloads = this.#minutes.map((_, index) => this.#recentOf(index));
    this.events.sampled(
      this.#snapshot(this.#recent),
      workloads.map((recent) => this.#snapshot(recent)),
    );
    pour(this.#recent, this.#minute);
    workloads.forEach((recent, index) => pour(recent, this.#minutes[index]));
  }

  #endMinute(now: Date): void {
    this.#timedAt = monotonicMs();
    this.events.minute(
      now,
      this.#snapshot(this.#minute),
      this.#minutes.map((minute) => this.#snapshot(minute)),
    );
    for (const minute of [this.#minute, ...this.#minutes]) for (const side of SIDES) minute[side].reset();
  }
}

/** Adds the first histograms to the second ones, and empties the first. */
function pour(from: BySide, to: BySide): void {
  for (const side of SIDES) {
    to[side].add(from[side]);
    from[side].reset();
  }
}
