/** How fast both servers answered: since the last sample, and in the minute that runs. */
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
  /** Every few seconds: how fast both servers answered since the last time. */
  sampled(latest: Latest): void;
  /** A minute is over. */
  minute(now: Date, source: LatencySnapshot, target: LatencySnapshot): void;
}

export class LatencyMinutes {
  /** Since the last sample, and of the minute before that. */
  readonly #recent: BySide = { source: latencyHistogram(), target: latencyHistogram() };
  readonly #minute: BySide = { source: latencyHistogram(), target: latencyHistogram() };
  readonly #unwatch: readonly (() => void)[];
  #timedAt = monotonicMs();
  #sampledAt = monotonicMs();

  constructor(
    private readonly by: Readonly<Record<Side, Latencies>>,
    private readonly events: LatencyEvents,
  ) {
    this.#unwatch = SIDES.map((side) => by[side].watch(this.#recent[side]));
  }

  /**
   * Takes a sample when it is time. A minute ends with a sample, never between two: a second sample right after the
   * first would hold nothing, and show as a rate of 0.
   */
  sampleIfDue(now: Date): void {
    if (monotonicMs() - this.#sampledAt < SERIES_STEP_MS) return;
    this.#sample();
    if (monotonicMs() - this.#timedAt >= MINUTE_MS) this.#endMinute(now);
  }

  /** A minute that is not over counts, too. */
  running(): LatencyWindow {
    const of = (side: Side): LatencySnapshot => {
      const all = latencyHistogram();
      all.add(this.#minute[side]);
      all.add(this.#recent[side]);
      return this.by[side].snapshot(all);
    };
    return { at: isoTime(), source: of('source'), target: of('target') };
  }

  close(): void {
    for (const end of this.#unwatch) end();
  }

  #snapshot(of: BySide): Latest {
    return { source: this.by.source.snapshot(of.source), target: this.by.target.snapshot(of.target) };
  }

  #sample(): void {
    this.#sampledAt = monotonicMs();
    this.events.sampled(this.#snapshot(this.#recent));
    for (const side of SIDES) {
      this.#minute[side].add(this.#recent[side]);
      this.#recent[side].reset();
    }
  }

  #endMinute(now: Date): void {
    this.#timedAt = monotonicMs();
    const { source, target } = this.#snapshot(this.#minute);
    this.events.minute(now, source, target);
    for (const side of SIDES) this.#minute[side].reset();
  }
}
