/** Which measurement comes when. Pure. */
import type { Point } from '../figures/results.js';

export interface Turn<S> {
  readonly side: S;
  readonly point: Point;
  /** From 0; -1 is the warm-up. */
  readonly round: number;
  readonly seconds: number;
}

export interface Rounds {
  readonly rounds: number;
  readonly seconds: number;
  /** Seconds; 0 for none. */
  readonly warmUp: number;
}

/** The list, begun at place `by`: in another round, another one is first. */
export const rotate = <T>(list: readonly T[], by: number): T[] => [
  ...list.slice(by % list.length),
  ...list.slice(0, by % list.length),
];

/** In each round every side at every point once, in another order of sides: what drifts hits all alike. */
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

/** Between two turns: what a server still does after a load, and what the run asks it. */
export const PAUSE_SECONDS = 3;

/** Seconds from the first turn's beginning to that of turn `i`, where several load hosts keep one timetable. */
export const timeOf = (turns: readonly { readonly seconds: number }[], i: number): number =>
  turns.slice(0, i).reduce((sum, { seconds }) => sum + seconds + PAUSE_SECONDS, 0);
