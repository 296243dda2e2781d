/** The order of the measurements. Pure. */
import type { Point } from '../figures/results.js';

export interface Turn<S> {
  readonly side: S;
  readonly point: Point;
  /** The first round is 0; -1 is the warm-up. */
  readonly round: number;
  readonly seconds: number;
}

export interface Rounds {
  readonly rounds: number;
  readonly seconds: number;
  /** Seconds; 0: no warm-up. */
  readonly warmUp: number;
}

/** The list, starting at index `by`: in each round, another entry is first. */
export const rotate = <T>(list: readonly T[], by: number): T[] => [
  ...list.slice(by % list.length),
  ...list.slice(0, by % list.length),
];

/**
 * In each round, every side is measured once at every point, in another order of sides, so that slow changes affect all
 * sides equally.
 */
export function schedule<S>(
  sides: readonly S[],
  points: readonly Point[],
  { rounds, seconds, warmUp }: Rounds,
): Turn<S>[] {
  const round = (number: number, length: number): Turn<S>[] =>
    points.flatMap((point) =>
      rotate(sides, Math.max(0, number)).map((side) => ({ side, point, round: number, seconds: length })),
    );
  return [
    ...(warmUp > 0 ? round(-1, warmUp) : []),
    ...Array.from({ length: rounds }, (_, i) => round(i, seconds)).flat(),
  ];
}

/** Pause between two turns, for remaining work of the servers, and for the run's own questions. */
export const PAUSE_SECONDS = 3;

/** Seconds from the start of the first turn to that of turn `i`, if several load hosts follow one timetable. */
export const timeOf = (turns: readonly { readonly seconds: number }[], i: number): number =>
  turns.slice(0, i).reduce((sum, { seconds }) => sum + seconds + PAUSE_SECONDS, 0);
