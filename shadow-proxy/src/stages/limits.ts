/** Which limits of the guard a workload exceeds: pure decisions from what was observed in a few seconds. */
import type { GuardPlan } from '../plan/plan.js';
import { number } from '../text/figures.js';
import type { Latest } from '../telemetry/series.js';
import type { CheckResult } from './external-checks.js';
import { p99Ratio } from './latency-gate.js';

/** Observations of one workload. */
export interface LimitFacts {
  /** Latencies of the last few seconds. */
  readonly latency: Latest;
  /** Replies of the target to clients in the same seconds, and how many of them are errors. */
  readonly replies: number;
  readonly errors: number;
  /** Mismatches since the workload entered its stage. */
  readonly mismatches: number;
  /** The last answers of the guard's checks. */
  readonly checks: readonly CheckResult[];
}

/**
 * For each limit, the observation if it is exceeded, and null if it is not. A limit without an observation is left out:
 * it neither starts nor ends anything.
 */
export function judgeLimits(
  { maxErrorShare, maxP99Ratio, maxP99Ms, maxMismatches }: GuardPlan,
  { latency: { source, target }, replies, errors, mismatches, checks }: LimitFacts,
): ReadonlyMap<string, string | null> {
  const found = new Map<string, string | null>();
  const judge = (limit: string, exceeded: boolean, evidence: string): void =>
    void found.set(limit, exceeded ? evidence : null);
  if (replies > 0)
    judge(
      'errors',
      errors / replies > maxErrorShare,
      `${number(errors)} of ${number(replies)} replies of the target are errors, at most ${percent(maxErrorShare)}`,
    );
  if (source.count > 0 && target.count > 0) {
    const ratio = p99Ratio(source.p99, target.p99);
    judge(
      'p99 ratio',
      ratio > maxP99Ratio,
      `p99 of the target is ${ratio.toFixed(1)} times the source's (${ms(target.p99)} and ${ms(source.p99)}), at most ${maxP99Ratio}`,
    );
  }
  if (maxP99Ms !== null && target.count > 0)
    judge('p99', target.p99 / 1_000 > maxP99Ms, `p99 of the target is ${ms(target.p99)}, at most ${maxP99Ms} ms`);
  judge('mismatches', mismatches > maxMismatches, `${number(mismatches)} mismatches, at most ${number(maxMismatches)}`);
  for (const { name, answer, evidence } of checks)
    if (answer !== 'unknown') judge(`check ${name}`, answer === 'no', `check ${name}: ${evidence}`);
  return found;
}

const percent = (share: number): string => `${Number((share * 100).toPrecision(3))} %`;
const ms = (us: number): string => `${(us / 1_000).toFixed(1)} ms`;
