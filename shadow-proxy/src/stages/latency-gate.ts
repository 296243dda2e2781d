/** The gate `latency`: both servers' 99th percentiles beside each other, minute by minute. */
import type { LatencyWindow } from '../storage/evidence.js';
import { number } from '../text/figures.js';
import { says, soonOpen, unknown, type GateAnswer } from './gate-answer.js';

/** Both servers faster than this are as fast as each other, in µs. */
const FLOOR_US = 1_000;
/** Replies of each server that a comparison of their latencies needs. */
const MIN_REPLIES = 1_000;

/**
 * By the minute, so that one bad minute of a busy host is seen for what it is: medians, and the quartiles of the ratio.
 */
export function judgeLatency(windows: readonly LatencyWindow[], most: number): GateAnswer {
  const replies = windows.reduce(
    (least, { source, target }) => ({ source: least.source + source.count, target: least.target + target.count }),
    { source: 0, target: 0 },
  );
  if (Math.min(replies.source, replies.target) < MIN_REPLIES)
    return soonOpen(
      unknown(
        `${number(replies.source)} replies of the source and ${number(replies.target)} of the target were timed; at least ${number(MIN_REPLIES)} of each are required`,
      ),
    );
  const ratios = windows
    .map(({ source, target }) => Math.max(FLOOR_US, target.p99) / Math.max(FLOOR_US, source.p99))
    .sort((a, b) => a - b);
  const middle = (at: 'p50' | 'p99' | 'p999', side: 'source' | 'target'): string =>
    `${(
      quantile(
        windows.map((window) => window[side][at]).sort((a, b) => a - b),
        0.5,
      ) / 1000
    ).toFixed(2)}`;
  const times = (side: 'source' | 'target'): string =>
    `${side} ${middle('p50', side)} / ${middle('p99', side)} / ${middle('p999', side)} ms`;
  const ratio = quantile(ratios, 0.5);
  const spread = `${quantile(ratios, 0.25).toFixed(2)} to ${quantile(ratios, 0.75).toFixed(2)}`;
  return says(
    ratio <= most,
    `p99 of the target is ${ratio.toFixed(2)} times the source's (${spread} over ${windows.length} min), at most ${most}; p50 / p99 / p99.9: ${times('source')}, ${times('target')}; ${number(replies.source)} and ${number(replies.target)} replies`,
  );
}

const quantile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
