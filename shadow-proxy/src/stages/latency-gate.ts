/** The gate `latency`: compares the 99th percentiles of both servers for one workload, minute by minute. */
import type { LatencyWindow } from '../storage/evidence.js';
import { SIDES, type Side } from '../route/stage.js';
import { number } from '../text/figures.js';
import { says, soonOpen, unknown, type GateAnswer } from './gate-answer.js';

/** Below this, in µs, both servers count as equally fast. */
const FLOOR_US = 1_000;
/** Minimum number of replies of each server for a comparison; fewer if the gate `compared` asks for fewer. */
const MIN_REPLIES = 1_000;
/** A 99th percentile of fewer replies has no meaning. */
const LEAST_REPLIES = 100;

/** Latencies of one server over some minutes. */
export interface LatencyRow {
  readonly server: Side;
  /** Medians over the minutes, in µs. */
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly replies: number;
  readonly minutes: number;
}

/** A typical minute of both servers; empty if there are no latencies. */
export const latencyRows = (windows: readonly LatencyWindow[]): readonly LatencyRow[] =>
  windows.length === 0
    ? []
    : SIDES.map((server) => {
        const median = (of: 'p50' | 'p99' | 'p999'): number =>
          quantile(
            windows.map((window) => window[server][of]).sort((a, b) => a - b),
            0.5,
          );
        return {
          server,
          p50: median('p50'),
          p99: median('p99'),
          p999: median('p999'),
          replies: windows.reduce((all, window) => all + window[server].count, 0),
          minutes: windows.length,
        };
      });

/** The target's p99 divided by the source's, both in µs; 1 if both are fast. */
export const p99Ratio = (source: number, target: number): number =>
  Math.max(FLOOR_US, target) / Math.max(FLOOR_US, source);

/**
 * Compares minute by minute, so that one bad minute of a busy host does not decide: medians, and the quartiles of the
 * ratio.
 *
 * @param windows latencies of the workload's own commands
 * @param minCompared what the gate `compared` asks for
 */
export function judgeLatency(windows: readonly LatencyWindow[], most: number, minCompared: number): GateAnswer {
  const needed = Math.max(LEAST_REPLIES, Math.min(MIN_REPLIES, minCompared));
  const replies = windows.reduce(
    (least, { source, target }) => ({ source: least.source + source.count, target: least.target + target.count }),
    { source: 0, target: 0 },
  );
  if (Math.min(replies.source, replies.target) < needed)
    return soonOpen(
      unknown(
        `${number(replies.source)} replies of the source and ${number(replies.target)} of the target were timed; at least ${number(needed)} of each are required`,
      ),
    );
  const ratios = windows.map(({ source, target }) => p99Ratio(source.p99, target.p99)).sort((a, b) => a - b);
  const times = ({ server, ...row }: LatencyRow): string =>
    `${server} ${[row.p50, row.p99, row.p999].map((us) => (us / 1000).toFixed(2)).join(' / ')} ms`;
  const ratio = quantile(ratios, 0.5);
  const spread = `${quantile(ratios, 0.25).toFixed(2)} to ${quantile(ratios, 0.75).toFixed(2)}`;
  return says(
    ratio <= most,
    `p99 of the target is ${ratio.toFixed(2)} times the source's (${spread} over ${windows.length} min), at most ${most}; p50 / p99 / p99.9: ${latencyRows(windows).map(times).join(', ')}; ${number(replies.source)} and ${number(replies.target)} replies`,
  );
}

const quantile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
