/** Whether the proxy's memory is small and flat. Pure. */

/** Resident memory at one time. */
export interface MemorySample {
  /** Seconds since the load began. */
  readonly at: number;
  /** Bytes. */
  readonly rss: number;
}

/** The parts of the memory, in bytes, as the process reports them. */
export interface MemoryParts {
  /** Memory that V8 has allocated for its heap, used or not. */
  readonly heap: number;
  /** Memory of buffers, outside that heap. */
  readonly buffers: number;
}

export interface Trend {
  /** Length of the judged part, in seconds: the last two thirds of the samples. */
  readonly seconds: number;
  /** Bytes by which the fitted line rises over that part; negative if it falls. */
  readonly growth: number;
  /** Growth up to this, in bytes, counts as noise. */
  readonly noise: number;
  /** Null if the part is too short. */
  readonly flat: boolean | null;
}

const MIB = 2 ** 20;
/** With fewer samples, a trend cannot be distinguished from the sawtooth of garbage collection. */
const MIN_SAMPLES = 24;

/** The rule in words, for the report. */
export const RULE =
  'flat = the least-squares line through the last two thirds of the samples rises, over that time, by no more than twice the ' +
  'standard deviation around it (counted as at least 4 MiB, at most 10 % of the mean)';

export function trendOf(samples: readonly MemorySample[]): Trend {
  const part = samples.slice(Math.floor(samples.length / 3));
  if (part.length < 3) return { seconds: 0, growth: 0, noise: 0, flat: null };
  const [meanAt, meanRss] = [mean(part.map((s) => s.at)), mean(part.map((s) => s.rss))];
  const spread = sumOf(part.map((s) => (s.at - meanAt) ** 2));
  const slope = sumOf(part.map((s) => (s.at - meanAt) * (s.rss - meanRss))) / spread;
  const residuals = part.map((s) => s.rss - meanRss - slope * (s.at - meanAt));
  const deviation = Math.sqrt(sumOf(residuals.map((r) => r * r)) / (part.length - 2));
  const seconds = part[part.length - 1].at - part[0].at;
  const growth = slope * seconds;
  const noise = Math.max(4 * MIB, Math.min(2 * deviation, meanRss / 10));
  return { seconds, growth, noise, flat: part.length < MIN_SAMPLES ? null : growth <= noise };
}

const sumOf = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
const mean = (values: readonly number[]): number => sumOf(values) / values.length;
