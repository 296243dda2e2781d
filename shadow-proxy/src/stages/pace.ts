/** How fast the replies of each workload are compared, and when a gate that counts them will open. */
import { duration, number } from '../text/figures.js';

const STEP_MS = 1_000;
const WINDOW_MS = 60_000;
/** Minimum time for a rate, in ms. */
const MIN_MS = 5_000;

interface Sample {
  readonly at: number;
  readonly count: number;
}

/** Counts of the last minute, by workload. Times are in ms of any one clock. */
export class Pace {
  readonly #samples = new Map<string, readonly Sample[]>();

  /** @param count pairs since the workload entered its stage; if it falls, the rate is measured from the start again */
  add(name: string, at: number, count: number): void {
    const known = this.#samples.get(name) ?? [];
    const last = known.at(-1);
    if (last !== undefined && count >= last.count && at - last.at < STEP_MS) return;
    const kept = last === undefined || count < last.count ? [] : known.filter((each) => at - each.at <= WINDOW_MS);
    this.#samples.set(name, [...kept, { at, count }]);
  }

  /** Pairs per second over the last minute, or since the measurement began; null during its first 5 s. */
  perSecond(name: string): number | null {
    const samples = this.#samples.get(name) ?? [];
    const [first, last] = [samples[0], samples.at(-1)];
    if (first === undefined || last === undefined || last.at - first.at < MIN_MS) return null;
    return ((last.count - first.count) * 1_000) / (last.at - first.at);
  }
}

/** When a gate will open. */
export interface TimeLeft {
  /** Null while the rate is unknown; undefined if nothing is compared: then waiting does not open the gate. */
  readonly ms: number | null | undefined;
  readonly text: string;
}

/** The time until `missing` more pairs were compared. @param perSecond as `Pace` measures it */
export function untilCompared(missing: number, perSecond: number | null): TimeLeft {
  if (!perSecond) return noRate(perSecond);
  const ms = (missing / perSecond) * 1_000;
  return { ms, text: `${about(ms)} at the present rate (${rate(perSecond)} per second)` };
}

/** The time until pairs were compared in `missing` more minutes. */
export function untilMinutes(missing: number, perSecond: number | null): TimeLeft {
  if (!perSecond) return noRate(perSecond);
  const ms = missing * 60_000;
  return { ms, text: `${about(ms)} if replies are compared in each minute, as now` };
}

const noRate = (perSecond: number | null): TimeLeft => ({
  ms: perSecond === null ? null : undefined,
  text: `time left unknown: ${perSecond === null ? 'the present rate is not known' : 'nothing is compared at present'}`,
});

/** `about 20 s`, `about 12 min`: only as precise as an estimate can be. */
export function about(ms: number): string {
  const seconds = Math.max(1, Math.ceil(ms / 1_000));
  if (seconds < 60) return `about ${seconds < 10 ? seconds : Math.ceil(seconds / 5) * 5} s`;
  const minutes = Math.ceil(ms / 60_000);
  return minutes < 60
    ? `about ${minutes} min`
    : minutes < 48 * 60
      ? `about ${duration(minutes * 60)}`
      : `about ${number(minutes / 60 / 24)} days`;
}

const rate = (perSecond: number): string => (perSecond < 10 ? perSecond.toFixed(1) : number(perSecond));
