/** A job that an operator has paused does nothing. */
import type { JobSnapshot } from '../../../shadow-proxy/src/telemetry/snapshot.js';

/** What was under way at the pause has ended within so long, also where connections to servers were lost. */
const ENDED_MS = 2_500;

export class PausedJob {
  /** Since when it is known to be paused; null where it is not. */
  #since: number | null = null;
  #pausedAt = '';
  #done = 0;

  /**
   * To be called often.
   * @param now in ms
   * @returns what is wrong; null where nothing is
   */
  problem(now: number, job: JobSnapshot | null): string | null {
    if (job?.state !== 'running' || job.paused === null) {
      this.#since = null;
      return null;
    }
    const done = job.copied + job.verified + job.failed;
    const pausedAt = `${job.startedAt} ${job.paused.since}`;
    if (this.#since === null || pausedAt !== this.#pausedAt) [this.#since, this.#pausedAt] = [now, pausedAt];
    if (now - this.#since < ENDED_MS) this.#done = done;
    return done === this.#done
      ? null
      : `a job that was paused ${Math.floor(now - this.#since)} ms ago goes on: ${this.#done} keys, then ${done}`;
  }
}
