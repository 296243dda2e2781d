/** A job is no faster than the operator allows, and copies nothing to a mirror that has no room for it. */
import type { JobSnapshot } from '../../../shadow-proxy/src/telemetry/snapshot.js';

/** What an operator allows. */
export interface Pace {
  readonly keysPerSecond?: number;
}

/** A job may make up for so long a pause. */
const CREDIT_MS = 300;
/** The memory of the mirror was asked for no earlier than so long before the job is met first. */
const STARTED_MS = 100;
/** A job is met first within so long of its start. */
const MET_MS = 1_000;
/** What may be under way when the pace is looked at. */
const KEYS_AT_ONCE = 5;

export class JobPace {
  #startedAt = '';
  #since = 0;
  #seen = 0;
  /** Whether the mirror had no room when the job was met first, and has had none since. */
  #isTight = false;
  #wasTight = false;
  /** When the mirror had no room last. */
  #tightAt = -Infinity;

  /** To be called often, also without a job. */
  looked(now: number, tightMs: number): void {
    if (tightMs > 0) this.#tightAt = now;
  }

  /**
   * To be called often.
   * @param now in ms
   * @param pace of the job
   * @param tightMs for how long the mirror has had no room for the keys; 0 where it has
   * @returns what is wrong; null where nothing is
   */
  problem(now: number, job: JobSnapshot, pace: Pace, tightMs: number): string | null {
    const isTight = tightMs > 0;
    const { startedAt, verified, state, reason, copied, kind } = job;
    const seen = copied + verified;
    if (startedAt !== this.#startedAt) {
      [this.#startedAt, this.#since, this.#seen] = [startedAt, now, seen];
      this.#isTight = tightMs > STARTED_MS;
      this.#wasTight = now - this.#tightAt < MET_MS;
    }
    this.#isTight &&= isTight;
    this.#wasTight ||= isTight;
    const { keysPerSecond = Infinity } = pace;
    const seconds = (now - this.#since + CREDIT_MS) / 1_000;
    if (seen - this.#seen > KEYS_AT_ONCE + seconds * keysPerSecond)
      return `a job of ${keysPerSecond} keys a second has had ${seen - this.#seen} keys in ${seconds} s`;
    if (kind !== 'backfill') return null;
    if (this.#isTight && copied > 0) return 'a job copies keys to a mirror that has no room for them';
    const hasEnded = state === 'failed' || state === 'stopped';
    return hasEnded && !this.#wasTight ? `a copy for which there is room has ended: ${reason}` : null;
  }
}
