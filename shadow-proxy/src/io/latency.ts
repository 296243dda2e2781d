/**
 * How long a server takes to answer, from the turn in which a command was sent to the turn in which its reply came.
 * Commands of one turn are recorded together.
 */
import { build, type Histogram } from 'hdr-histogram-js';
import { Ring } from './ring.js';

interface Group {
  readonly at: number;
  count: number;
}

/** A histogram of µs, with three digits, up to a minute. */
export const latencyHistogram = (): Histogram =>
  build({
    lowestDiscernibleValue: 1,
    highestTrackableValue: 60_000_000,
    numberOfSignificantValueDigits: 3,
    bitBucketSize: 32,
  });

/** A server's latencies. */
export class Latencies {
  readonly histogram = latencyHistogram();

  /** Histograms of the time since each viewer began to watch. */
  private readonly watchers: Histogram[] = [];

  record(ms: number, count: number): void {
    const micros = Math.max(1, Math.min(60_000_000, Math.round(ms * 1000)));
    this.histogram.recordValueWithCount(micros, count);
    for (const watcher of this.watchers) watcher.recordValueWithCount(micros, count);
  }

  /** Since the start of the process, or what one of those that watch has seen. */
  snapshot(of: Histogram = this.histogram): { p50: number; p99: number; p999: number; count: number } {
    return {
      p50: of.getValueAtPercentile(50),
      p99: of.getValueAtPercentile(99),
      p999: of.getValueAtPercentile(99.9),
      count: of.totalCount,
    };
  }

  /** Records into `watcher`, too, until what is returned is called. */
  watch(watcher: Histogram): () => void {
    this.watchers.push(watcher);
    return () => void this.watchers.splice(this.watchers.indexOf(watcher), 1);
  }
}

/** Pairs what one connection sent with what it got back. */
export class LatencyRecorder {
  readonly #groups = new Ring<Group>();
  #last: Group | undefined;

  constructor(private readonly latencies: Latencies) {}

  sent(now: number): void {
    if (this.#last !== undefined && this.#last.at === now) {
      this.#last.count++;
      return;
    }
    this.#last = { at: now, count: 1 };
    this.#groups.push(this.#last);
  }

  answered(count: number, now: number): void {
    while (count > 0) {
      const group = this.#groups.at(0);
      if (group === undefined) return;
      const taken = Math.min(count, group.count);
      this.latencies.record(now - group.at, taken);
      count -= taken;
      group.count -= taken;
      if (group.count > 0) return;
      this.#groups.shift();
      if (group === this.#last) this.#last = undefined;
    }
  }

  reset(): void {
    this.#groups.drain();
    this.#last = undefined;
  }
}
