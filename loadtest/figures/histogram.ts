/**
 * Latency histograms. They are merged as histograms, because percentiles cannot be averaged. Values are in microseconds
 * inside, in milliseconds outside.
 */
import { build, decodeFromCompressedBase64, encodeIntoCompressedBase64, type Histogram } from 'hdr-histogram-js';

/** All of them merged; null if there are none. Their ranges may differ. */
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

/** The percentile, in milliseconds. */
export const percentile = (histogram: Histogram, percent: number): number =>
  histogram.getValueAtPercentile(percent) / 1000;

/**
 * Points for a plot against 1 / (1 - percentile): from the median to the last nine for which there are enough values.
 */
export function curve(histogram: Histogram): { readonly percent: number; readonly ms: number }[] {
  const last = Math.min(99.999, 100 - 100 / Math.max(1, histogram.totalCount));
  const steps: number[] = [];
  for (let nines = 0.3; 100 * (1 - 10 ** -nines) <= last; nines += 0.1) steps.push(100 * (1 - 10 ** -nines));
  return steps.map((percent) => ({ percent, ms: percentile(histogram, percent) }));
}
