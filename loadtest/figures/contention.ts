/** Whether the load host was too busy: then the figures say nothing about the sides. Pure. */
import { median } from './median.js';
import { samePoint, type Results, type Sample } from './results.js';

/** Maximum share of the CPU time that the hypervisor gave to other guests. */
export const MAX_STEAL = 0.02;
/** Maximum load average per core in the minute before the first measurement: work of other programs. */
export const MAX_LOAD = 0.5;
/**
 * Maximum spread of the source's rounds: highest minus lowest, divided by the median, without the best and the worst
 * round. The server and the load are the same in all rounds.
 */
export const MAX_SPREAD = 0.3;
/** With fewer rounds the spread means nothing. */
const LEAST_FOR_SPREAD = 4;

/** Why the machine counts as too busy, each a part of a sentence; empty if it does not. */
export function contentionOf({ machine, samples, sides, points, soak }: Results): readonly string[] {
  const { cores = 1, loadBefore = 0, steal = null } = machine ?? {};
  const base = sides.find(({ role }) => role === 'source');
  const spreads = points.map((point) =>
    spreadOf(samples.filter((sample) => sample.side === base?.id && samePoint(sample.point, point))),
  );
  const spread = soak === undefined ? Math.max(0, ...spreads) : 0;
  const load = loadBefore / cores;
  return [
    ...(load > MAX_LOAD
      ? [`before the test its load average was ${load.toFixed(2)} per core (at most ${MAX_LOAD.toFixed(2)})`]
      : []),
    ...(steal !== null && steal > MAX_STEAL
      ? [`the hypervisor took ${percent(steal)} of the processor time (at most ${percent(MAX_STEAL)})`]
      : []),
    ...(spread > MAX_SPREAD
      ? [`the rounds of the source lie ${percent(spread)} apart (at most ${percent(MAX_SPREAD)})`]
      : []),
  ];
}

function spreadOf(samples: readonly Sample[]): number {
  if (samples.length < LEAST_FOR_SPREAD) return 0;
  const speeds = samples.map(({ operations, durationMs }) => operations / durationMs).sort((a, b) => a - b);
  return (speeds[speeds.length - 2] - speeds[1]) / median(speeds)!;
}

const percent = (share: number): string => `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
