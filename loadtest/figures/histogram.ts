/**
 * Latency histograms: merged as histograms, for percentiles cannot be averaged. Values in microseconds inside,
 * milliseconds outside.
 */
import { build, decodeFromCompressedBase64, encodeIntoCompressedBase64, type Histogram } from 'hdr-histogram-js';

/** All of them as one; null of none. They need not have the same range. */
export function merge(encoded: readonly string[]): Histogram | null {
  if (encoded.length === 0) return null;
  const all = build({
    bitBucketSize: 64,
    autoResize: true,
    lowestDiscernibleValue: 1,
    highestTrackableValue: 60_000_000,
    numberOfSignificantValueDigits: 3,
  });
  for (const text of encoded) all.add(decodeFromCompressedBase64(text, 64));
  return all;
}

export const encode = (histogram: Histogram): string => encodeIntoCompressedBase64(histogram);

/** Milliseconds. */
export const percentile = (histogram: Histogram, percent: number): number =>
  histogram.getValueAtPercentile(percent) / 1000;

/**
 * Points for a plot against 1 / (1 - percentile): from the median to the last nine that the number of values carries.
 */
export function curve(histogram: Histogram): { readonly percent: number; readonly ms: number }[] {
  const last = Math.min(99.999, 100 - 100 / Math.max(1, histogram.totalCount));
  const steps: number[] = [];
  for (let nines = 0.3; 100 * (1 - 10 ** -nines) <= last; nines += 0.1) steps.push(100 * (1 - 10 ** -nines));
  return steps.map((percent) => ({ percent, ms: percentile(histogram, percent) }));
}
