/**
 * How long a server takes to answer: from the turn in which a command was sent to the turn in which its reply came.
 * Commands of one turn are recorded together, for the shard and for each workload.
 */
import type { Histogram } from 'hdr-histogram-js';
// Not from the package's main file: that loads a compressor, and a module of WebAssembly.
import int32 from 'hdr-histogram-js/dist/Int32Histogram.js';

/**
 * A histogram of µs, up to a minute. @param digits number of significant digits; one more takes ten times the memory
 */
export function latencyHistogram(digits: 2 | 3 = 3): Histogram {
  const histogram = new int32.default(1, 60_000_000, digits);
  histogram.autoResize = true;
  return histogram;
}

/** The index that means no workload: for the kit's own commands. */
export const NO_WORKLOAD = -1;

const micros = (ms: number): number => Math.max(1, Math.min(60_000_000, Math.round(ms * 1000)));

/** The latencies of one server. */
export class Latencies {
  readonly histogram = latencyHistogram();
  /** Latencies since the histogram was last emptied, by the index of the workload. */
  readonly ofWorkloads: readonly Histogram[];

  /** One histogram for each watcher, which has the latencies since the watcher began. */
  private readonly watchers: Histogram[] = [];

  /** @param workloads number of workloads */
  constructor(workloads = 0) {
    this.ofWorkloads = Array.from({ length: workloads }, () => latencyHistogram(2));
  }

  record(ms: number, count: number): void {
    const value = micros(ms);
    this.histogram.recordValueWithCount(value, count);
    for (const watcher of this.watchers) watcher.recordValueWithCount(value, count);
  }

  /** @param workload index of the workload, below the number of workloads */
  recordOf(workload: number, ms: number, count: number): void {
    this.ofWorkloads[workload].recordValueWithCount(micros(ms), count);
  }

  /** Percentiles since the start of the process, or those of a watcher's histogram. */
  snapshot(of: Histogram = this.histogram): { p50: number; p99: number; p999: number; count: number } {
    return {
      p50: of.getValueAtPercentile(50),
      p99: of.getValueAtPercentile(99),
      p999: of.getValueAtPercentile(99.9),
      count: of.totalCount,
    };
  }

  /** Also records into `watcher`, until the returned function is called. */
  watch(watcher: Histogram): () => void {
    this.watchers.push(watcher);
    return () => void this.watchers.splice(this.watchers.indexOf(watcher), 1);
  }
}

/**
 * Matches what one connection sent with the replies that it got. Neighbours of the same turn and workload form a group.
 * Groups are kept in a ring of plain numbers, so that a command allocates nothing.
 */
export class LatencyRecorder {
  #at = new Float64Array(64);
  #counts = new Uint32Array(64);
  #workloads = new Int32Array(64);
  #mask = 63;
  #head = 0;
  #length = 0;
  /** Number of replies in the turn that is being recorded, by workload. */
  readonly #taken: Uint32Array;

  constructor(private readonly latencies: Latencies) {
    this.#taken = new Uint32Array(latencies.ofWorkloads.length);
  }

  /** @param now in ms of the monotonic clock @param workload index of the workload, or `NO_WORKLOAD` */
  sent(now: number, workload: number): void {
    if (this.#length > 0) {
      const last = (this.#head + this.#length - 1) & this.#mask;
      if (this.#at[last] === now && this.#workloads[last] === workload) {
        this.#counts[last]++;
        return;
      }
    }
    if (this.#length > this.#mask) this.#grow();
    const next = (this.#head + this.#length++) & this.#mask;
    this.#at[next] = now;
    this.#counts[next] = 1;
    this.#workloads[next] = workload;
  }

  answered(count: number, now: number): void {
    while (count > 0 && this.#length > 0) {
      const at = this.#at[this.#head];
      let replies = 0;
      while (replies < count && this.#length > 0 && this.#at[this.#head] === at) replies += this.#take(count - replies);
      this.#record(now - at, replies);
      count -= replies;
    }
  }

  reset(): void {
    this.#length = 0;
  }

  /** Takes up to `most` commands from the oldest group. @returns how many were taken */
  #take(most: number): number {
    const head = this.#head;
    const taken = Math.min(most, this.#counts[head]);
    const workload = this.#workloads[head];
    if (workload >= 0 && workload < this.#taken.length) this.#taken[workload] += taken;
    this.#counts[head] -= taken;
    if (this.#counts[head] === 0) {
      this.#head = (head + 1) & this.#mask;
      this.#length--;
    }
    return taken;
  }

  #record(ms: number, replies: number): void {
    this.latencies.record(ms, replies);
    for (let workload = 0; workload < this.#taken.length; workload++) {
      if (this.#taken[workload] === 0) continue;
      this.latencies.recordOf(workload, ms, this.#taken[workload]);
      this.#taken[workload] = 0;
    }
  }

  #grow(): void {
    const size = (this.#mask + 1) * 2;
    const [at, counts, workloads] = [new Float64Array(size), new Uint32Array(size), new Int32Array(size)];
    for (let i = 0; i < this.#length; i++) {
      const from = (this.#head + i) & this.#mask;
      at[i] = this.#at[from];
      counts[i] = this.#counts[from];
      workloads[i] = this.#workloads[from];
    }
    [this.#at, this.#counts, this.#workloads] = [at, counts, workloads];
    this.#mask = size - 1;
    this.#head = 0;
  }
}
