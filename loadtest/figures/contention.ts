/** Whether the machine of the load had time for it: where it had not, figures say nothing of the sides. Pure. */
import { median } from './median.js';
import { samePoint, type Results, type Sample } from './results.js';

/** Share of the processor time that the hypervisor gave to others. */
export const MAX_STEAL = 0.02;
/** Load average of the last minute by the cores, before the first measurement: work of others. */
export const MAX_LOAD = 0.5;
/**
 * How far apart the rounds of the source may lie, highest less lowest by the median, without the best and the worst
 * round: it is the same server under the same load each time.
 */
export const MAX_SPREAD = 0.3;
/** With fewer rounds there is no spread to speak of. */
const LEAST_FOR_SPREAD = 4;

/** Why the machine counts as contended, a sentence part each; empty where it does not. */
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
