/**
 * Compares two sides: whether they differ, by how much, and how certain that is. In each round both were measured, one
 * right after the other.
 *
 * Each round gives one ratio, so changes between rounds (a neighbour on the host, the temperature) cancel out. Nothing
 * is assumed about the distribution of the ratios, except that the rounds are independent. The sign test gives the
 * probability, and order statistics of the ratios give the interval of their median. Both are exact, and equivalent.
 * Source: W. J. Conover, Practical Nonparametric Statistics, 3rd ed., sections 3.4 and 3.2.
 */
import { median } from './median.js';

export const METHOD =
  'Exact sign test (two-sided) on the rounds’ ratios; interval of the median ratio from their order statistics. Nothing is assumed of their distribution but that the rounds are independent. All rounds count, the best and the worst too.';

/** The required confidence, two-sided. */
export const CONFIDENCE = 0.95;

export interface Paired {
  /** The ratio of each round, in the order of the rounds. */
  readonly ratios: readonly number[];
  /** Median of the ratios: how many times `a` is as much as `b`. */
  readonly median: number;
  /** Null if there are too few rounds for `CONFIDENCE`. */
  readonly interval: readonly [low: number, high: number] | null;
  /**
   * The exact confidence of the interval: at least `CONFIDENCE`. If `interval` is null, that of the widest interval.
   */
  readonly confidence: number;
  /** Rounds in which `a` was larger. */
  readonly more: number;
  /** Rounds in which `a` was smaller. */
  readonly less: number;
  /** Probability of a result at least as uneven if there were no difference. */
  readonly p: number;
}

/** Pairs by round; null if there are none. */
export function paired(a: ReadonlyMap<number, number>, b: ReadonlyMap<number, number>): Paired | null {
  const rounds = [...a.keys()].filter((round) => b.has(round)).sort((x, y) => x - y);
  const ratios = rounds.map((round) => a.get(round)! / b.get(round)!).filter((ratio) => Number.isFinite(ratio));
  if (ratios.length === 0) return null;
  const sorted = [...ratios].sort((x, y) => x - y);
  const [more, less] = [ratios.filter((ratio) => ratio > 1).length, ratios.filter((ratio) => ratio < 1).length];
  return { ratios, median: median(ratios)!, ...intervalOf(sorted), more, less, p: signTest(more, less) };
}

/** Two-sided; ties are left out. */
export function signTest(more: number, less: number): number {
  const n = more + less;
  return n === 0 ? 1 : Math.min(1, 2 * binomialTail(n, Math.min(more, less)));
}

/**
 * The narrowest interval between order statistics, symmetric from both ends, that contains the median with
 * `CONFIDENCE`.
 */
function intervalOf(sorted: readonly number[]): Pick<Paired, 'interval' | 'confidence'> {
  const n = sorted.length;
  const confidenceOf = (k: number): number => 1 - 2 * binomialTail(n, k - 1);
  for (let k = Math.floor(n / 2); k >= 1; k--) {
    if (confidenceOf(k) >= CONFIDENCE) return { interval: [sorted[k - 1], sorted[n - k]], confidence: confidenceOf(k) };
  }
  return { interval: null, confidence: n < 2 ? 0 : confidenceOf(1) };
}

/** P(X ≤ k) of a binomial distribution with n trials and probability one half. */
function binomialTail(n: number, k: number): number {
  let term = 0.5 ** n;
  let sum = 0;
  for (let i = 0; i <= k; i++) {
    sum += term;
    term *= (n - i) / (i + 1);
  }
  return sum;
}

/** Minimum number of rounds for `CONFIDENCE`. */
export const LEAST_ROUNDS = Math.ceil(1 - Math.log2(1 - CONFIDENCE));
