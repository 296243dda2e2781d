/** A job that an operator has paused does nothing. */
import type { JobSnapshot } from '../../../shadow-proxy/src/telemetry/snapshot.js';

/** What was under way at the pause has ended within so long, also where connections to servers were lost. */
const ENDED_MS = 2_500;

/** A pause is noted on the disk within so long. */
const NOTED_MS = 50;

export class PausedJob {
  /** Since when it is known to be paused; null where it is not. */
  #since: number | null = null;
  #pausedAt = '';
  #done = 0;
  /** The job that was seen paused last, whichever process it was in, and when. */
  #seen: { readonly startedAt: string; readonly since: number; readonly until: number } | null = null;

  /**
   * To be called often.
   * @param now in ms
   * @param resumedAt when the operator last asked that a job goes on
   * @returns what is wrong; null where nothing is
   */
  problem(now: number, job: JobSnapshot | null, resumedAt: number): string | null {
    const forgotten = job !== null && this.#isForgotten(now, job, resumedAt);
    if (forgotten) return 'a paused job goes on, and nobody asked for it';
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

  /** Whether the job has lost its pause, which was noted on the disk before it was seen for so long. */
  #isForgotten(now: number, { state, startedAt, paused }: JobSnapshot, resumedAt: number): boolean {
    if (state !== 'running') return false;
    const seen = this.#seen?.startedAt === startedAt && resumedAt < this.#seen.since ? this.#seen : null;
    if (paused === null) return seen !== null && seen.until - seen.since > NOTED_MS;
    this.#seen = { startedAt, since: seen?.since ?? now, until: now };
    return false;
  }
}
