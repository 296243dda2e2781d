/**
 * Suspects whose repair has failed, by the reason. A few of each reason are tried again, less and less often; more as
 * soon as these succeed. So thousands of keys that fail for one reason cost what a few do.
 *
 *   failed(suspect, why) ─▶ held ─ after a pause that doubles ─▶ tried, some at a time ─▶ failed: held again
 *                                                                                   └─▶ done: twice as many are next
 */
import { after, clearTimer, type Timer } from '../../io/timers.js';
import type { Suspect } from '../../suspects/suspects.js';

const FIRST_MS = 250;
/** What fails again and again is tried less and less often, at least this often. */
const MAX_MS = 5_000;
/** How many suspects of a reason are tried at a time while none has succeeded. */
const PROBES = 64;
/** More reasons are one. */
const MAX_REASONS = 100;

interface Reason {
  readonly name: string;
  /** Ends by itself within moments: its pause does not double. */
  readonly isBrief: boolean;
  /** Suspects that a client has written since go first. */
  readonly urgent: Set<Suspect>;
  readonly held: Set<Suspect>;
  /** Being tried again. */
  readonly tried: Set<Suspect>;
  /** The last batch: how many suspects it had (`asked`), and how many are done. */
  asked: number;
  done: number;
  /** How many are tried next, and after which pause. */
  batch: number;
  pauseMs: number;
  timer: Timer | undefined;
}

export class BackOff {
  readonly #reasons = new Map<string, Reason>();
  readonly #of = new Map<Suspect, Reason>();

  /** @param retry queues a suspect; `failed` or `done` must follow */
  constructor(private readonly retry: (suspect: Suspect) => void) {}

  /**
   * Notes that it failed.
   * @param isBrief whether the reason ends by itself within moments: then the pause does not double
   * @returns whether nothing has failed for that reason before it
   */
  failed(suspect: Suspect, why: string, isBrief = false): boolean {
    const before = this.#of.get(suspect);
    const name = this.#nameOf(why);
    const isNew = !this.#reasons.has(name);
    const reason = this.#reasons.get(name) ?? this.#begin(name, isBrief);
    reason.held.add(suspect);
    this.#of.set(suspect, reason);
    if (before !== undefined && before.tried.delete(suspect)) this.#next(before);
    if (reason !== before) this.#next(reason);
    return isNew;
  }

  /** The key is repaired, or no suspect any more, or waits for something else. */
  done(suspect: Suspect): void {
    const reason = this.#of.get(suspect);
    if (reason === undefined) return;
    this.#of.delete(suspect);
    reason.held.delete(suspect);
    reason.urgent.delete(suspect);
    if (reason.tried.delete(suspect)) reason.done++;
    this.#next(reason);
  }

  /** Makes a waiting suspect one of the next that are tried. @returns whether it waits here */
  hurries(suspect: Suspect): boolean {
    const reason = this.#of.get(suspect);
    if (reason === undefined || reason.tried.has(suspect)) return false;
    if (reason.held.delete(suspect)) reason.urgent.add(suspect);
    return true;
  }

  has(suspect: Suspect): boolean {
    return this.#of.has(suspect);
  }

  /** A cause may have ended: some of each reason are tried at once. */
  wake(): void {
    for (const reason of this.#reasons.values()) {
      clearTimer(reason.timer);
      reason.timer = undefined;
      reason.pauseMs = FIRST_MS;
      if (reason.tried.size === 0) this.#try(reason);
    }
  }

  close(): void {
    for (const { timer } of this.#reasons.values()) clearTimer(timer);
    this.#reasons.clear();
    this.#of.clear();
  }

  /** Without what names one key: sizes, offsets, what is quoted. */
  #nameOf(why: string): string {
    const name = why.replaceAll(/\d+|"[^"]*"|'[^']*'/g, '#').slice(0, 100);
    return this.#reasons.has(name) || this.#reasons.size < MAX_REASONS ? name : 'other';
  }

  #begin(name: string, isBrief: boolean): Reason {
    const reason: Reason = {
      name,
      isBrief,
      urgent: new Set(),
      held: new Set(),
      tried: new Set(),
      asked: 0,
      done: 0,
      batch: PROBES,
      pauseMs: FIRST_MS,
      timer: undefined,
    };
    this.#reasons.set(name, reason);
    return reason;
  }

  /** When all that were tried have ended, the next ones follow. */
  #next(reason: Reason): void {
    if (reason.tried.size > 0 || reason.timer !== undefined) return;
    let pauseMs = reason.pauseMs;
    if (reason.asked > 0) {
      const most = reason.done * 2 >= reason.asked;
      reason.batch = most ? reason.batch * 2 : PROBES;
      reason.pauseMs = reason.done > 0 || reason.isBrief ? FIRST_MS : Math.min(MAX_MS, reason.pauseMs * 2);
      pauseMs = most ? 0 : reason.pauseMs;
      reason.asked = reason.done = 0;
    }
    if (reason.held.size + reason.urgent.size === 0) {
      this.#reasons.delete(reason.name);
      return;
    }
    reason.timer = after(pauseMs, () => {
      reason.timer = undefined;
      this.#try(reason);
    }).unref();
  }

  #try(reason: Reason): void {
    for (const from of [reason.urgent, reason.held])
      for (const suspect of from) {
        if (reason.tried.size >= (from === reason.urgent ? Math.ceil(reason.batch / 2) : reason.batch)) break;
        from.delete(suspect);
        reason.tried.add(suspect);
      }
    reason.asked = reason.tried.size;
    reason.done = 0;
    for (const suspect of reason.tried) this.retry(suspect);
    // Keys that a client writes all the time leave room for the others; without others they go on alone.
    if (reason.asked === 0) this.#next(reason);
  }
}
