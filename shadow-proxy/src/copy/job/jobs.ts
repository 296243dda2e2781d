/**
 * A shard's backfill and verification, one at a time. One that the end of the process interrupted goes on with the
 * next; and workloads that are suspect as a whole are verified and repaired by themselves.
 */
import { isoTime, monotonicMs } from '../../io/clock.js';
import { clearTimer, every, type Timer } from '../../io/timers.js';
import type { Authorities } from '../../pipeline/authorities.js';
import type { JobRecord, JobRequest } from '../../storage/job-file.js';
import type { JobLimits, JobPause, JobSnapshot } from '../../telemetry/snapshot.js';
import type { Workload } from '../../route/router.js';
import { ACCEPT, promoteOf } from '../../telemetry/advice.js';
import { NOT_COPIED } from '../../telemetry/snapshot.js';
import { didYouMean } from '../../text/near.js';
import { CONTESTED, Job, type JobContext } from './job.js';

export type JobErrorCode =
  /** Another one is under way. */
  | 'busy'
  | 'unknown-workload'
  /** None of the workloads is written twice. */
  | 'nothing-to-do'
  /** The authority is not trusted. */
  | 'frozen'
  /** No job is running. */
  | 'none';

/** A job was not begun, or not stopped; the message says why and what to do. */
export class JobError extends Error {
  override readonly name = 'JobError';
  constructor(
    readonly code: JobErrorCode,
    message: string,
    /** What to run then, for `shadow-compare`, in the state that refused. */
    readonly next?: string,
  ) {
    super(message);
  }
}

/** What an operator changes of a job that runs. */
export interface JobChange {
  /** Those that change: null ends a limit. */
  readonly limits?: JobLimits;
  readonly state?: 'pause' | 'resume';
  readonly reason?: string;
  readonly by?: string;
}

/** Suspicions that end only when an operator sees to them. */
const WAITING: ReadonlySet<string> = new Set([NOT_COPIED, CONTESTED]);

const LOOK_MS = 500;
/**
 * The shortest pause, in ms, before the proxy starts another job by itself. The pause is at least as long as the last
 * job took, and longer after one that failed.
 */
const REST_MS = 2_000;
const REST_AFTER_FAILURE_MS = 10_000;

export class Jobs {
  #job: Job | null = null;
  /** The last one of each kind. */
  readonly #lastOf = new Map<JobRequest['kind'], Job>();
  #timer: Timer | undefined;
  #restUntil = 0;

  constructor(
    private readonly context: JobContext,
    private readonly authorities: Pick<Authorities, 'frozen'>,
  ) {}

  /**
   * @param left what the last process has left; null if nothing may be made of it
   * @param certain whether what it had copied or compared is still so; if not, it is done again from the beginning
   */
  begin(left: JobRecord | null, certain: boolean): void {
    // What was written since the authority restarted only the last process knew.
    if (left?.state === 'running' && left.request.kind !== 'restore')
      this.#run(left.request, certain ? left : null, left.paused);
    this.#timer = every(LOOK_MS, () => this.#verifySuspects()).unref();
  }

  /**
   * Begins it, or goes on with what was stopped; a backfill that is done, and nothing became suspect since, is not done
   * again.
   * @throws {JobError}
   */
  start(request: JobRequest): JobSnapshot {
    if (this.#job?.running === true && !this.#job.request.automatic)
      throw new JobError(
        'busy',
        this.#job.paused === null
          ? `a ${this.#job.request.kind} is running: wait for its end, or stop it (--stop)`
          : `a ${this.#job.request.kind} is paused: let it go on (job --resume), or stop it (--stop)`,
      );
    const { router } = this.context.sequencer;
    const names = router.workloads.map(({ name }) => name);
    const unknown = request.workloads?.find((name) => router.named(name) === undefined);
    if (unknown !== undefined)
      throw new JobError(
        'unknown-workload',
        `there is no workload "${unknown}"${didYouMean(unknown, names)}: the plan has ${names.join(', ')}`,
      );
    const wanted = router.workloads.filter(
      ({ name }) => request.workloads === null || request.workloads.includes(name),
    );
    if (!wanted.some(isWrittenTwice)) {
      const stages = wanted.map(({ name, position: { stage } }) => `"${name}" is in ${stage}`).join(', ');
      const off = wanted.find(({ position: { stage } }) => stage === 'off');
      throw new JobError(
        'nothing-to-do',
        off === undefined
          ? `no workload is written to both servers (${stages})`
          : `no workload is written to both servers (${stages}): move one to dualwrite first`,
        off && promoteOf({ name: off.name, stage: 'off' }),
      );
    }
    const frozen = this.authorities.frozen;
    if (frozen !== null && (request.kind === 'backfill' || request.repair))
      throw new JobError('frozen', `copying is frozen: ${frozen}`, ACCEPT);
    if (request.kind === 'restore') this.#assertRestorable(frozen);
    const last = this.#job;
    const same = last !== null && asks(last.request) === asks(request);
    if (same && last.holds && !request.again) return last.snapshot();
    last?.stop('another job was started');
    return this.#run(request, same && !request.again ? last.unfinished : null);
  }

  #assertRestorable(frozen: string | null): void {
    if (frozen === null) throw new JobError('nothing-to-do', 'repairs are not frozen: no authority has changed');
    if (this.context.since() === null) {
      throw new JobError(
        'nothing-to-do',
        "this process started after the authority returned, so the writes since then are unknown. They cannot be restored: accept the authority's data, or keep the mirror's",
      );
    }
  }

  /** @throws {JobError} */
  stop(): JobSnapshot {
    if (this.#job?.running !== true) throw new JobError('none', 'no backfill or verification is running');
    this.#job.stop('stopped by the operator; the same command continues from here');
    return this.#job.snapshot();
  }

  /**
   * Changes the limits of the job that runs, or pauses it, or lets it go on. What is so already stays.
   * @throws {JobError}
   */
  change({ limits = {}, state, reason, by }: JobChange): JobSnapshot {
    const job = this.#job;
    if (job?.running !== true)
      throw new JobError('none', 'no backfill or verification is running: nothing was changed');
    const pause: JobPause = { since: isoTime(), by: by ?? null, reason: reason ?? null };
    const paused = state === 'resume' ? null : state === 'pause' ? (job.paused ?? pause) : undefined;
    job.change(limits, paused);
    this.context.logger.info(
      { job: job.request.kind, limits: job.limits, paused: job.paused, by, reason },
      'the job was changed',
    );
    return job.snapshot();
  }

  snapshot(): JobSnapshot | null {
    return this.#job?.snapshot() ?? null;
  }

  /** The last job of each kind that is not `snapshot`'s. */
  earlier(): readonly JobSnapshot[] {
    return [...this.#lastOf.values()].filter((job) => job !== this.#job).map((job) => job.snapshot());
  }

  /** For the end of the process. */
  close(): void {
    clearTimer(this.#timer);
    this.#job?.suspend();
  }

  #run(request: JobRequest, from: JobRecord | null, paused: JobPause | null = null): JobSnapshot {
    const job = new Job(request, this.context, from, paused);
    this.#job = job;
    this.#lastOf.set(request.kind, job);
    const began = monotonicMs();
    void job.run().then(() => {
      const now = monotonicMs();
      this.#restUntil = now + Math.max(now - began, job.snapshot().state === 'done' ? REST_MS : REST_AFTER_FAILURE_MS);
    });
    return job.snapshot();
  }

  /** Whether the workload is suspect for a reason for which it is verified without being asked. */
  #isVerified(workload: Workload): boolean {
    const why = this.context.suspects.workloads.of(workload);
    return why !== null && !WAITING.has(why);
  }

  #verifySuspects(): void {
    if (
      this.#job?.running === true ||
      monotonicMs() < this.#restUntil ||
      this.authorities.frozen !== null ||
      this.context.hindrance(true) !== null
    )
      return;
    const suspicions = this.context.sequencer.router.workloads.filter(
      (workload) => isWrittenTwice(workload) && this.#isVerified(workload),
    );
    if (suspicions.length === 0) return;
    this.#run(
      {
        kind: 'verify',
        workloads: suspicions.map(({ name }) => name),
        repair: true,
        dryRun: false,
        again: false,
        deletes: 0,
        sample: 100,
        limits: {},
        automatic: true,
      },
      null,
    );
  }
}

const isWrittenTwice = ({ position: { keylessRule, whole } }: Workload): boolean => keylessRule.mirrorsWrites || !whole;

/** What it is about: limits may be others. */
const asks = ({ kind, workloads, repair, dryRun, deletes, sample }: JobRequest): string =>
  JSON.stringify([kind, workloads, repair, dryRun, deletes, sample]);
