/**
 * A scan of all keys of a shard, each of which is copied (backfill) or compared, and copied if it differs (verify), in
 * the order of the sequencer, while clients go on. This file has the life of a job: it starts, is changed or paused,
 * is saved, starts its scan again, and ends. `scan-pass.ts` has a pass over the keys.
 *
 *   run ─▶ pass over the keys ─▶ done
 *             │  ▲
 *             │  └─ a workload became suspect: from the first key; another problem: from the place of the scan
 *             └─▶ halted: stopped, and continued by an equal request; or failed
 *
 * The place of the scan is on the disk. A new suspicion of a whole workload starts the scan again; SWAPDB does not.
 *
 * Room: copy/job: backfill and verify: scan the keys, choose, limit the rate, report.
 * Called by: copy/foreign, stages, admin, shard, cli.
 * Calls: text, io, resp, route, plan, telemetry, storage, upstream, pipeline, suspects, copy/key, copy/large, copy/rdb,
 *   copy/verify, copy/repair, copy/foreign.
 */
import type { Logger } from 'pino';
import { isoTime, monotonicMs } from '../../io/clock.js';
import { sleep } from '../../io/timers.js';
import { ScanError } from '../../upstream/scan-page.js';
import { noCounts, type JobRecord, type JobRequest } from '../../storage/job-file.js';
import { NOT_COPIED, type JobLimits, type JobPause, type JobSnapshot } from '../../telemetry/snapshot.js';
import type { Workload } from '../../route/router.js';
import type { WorkloadSuspicions } from '../../suspects/workload-suspicions.js';
import type { SuspectWorkloads } from '../../suspects/workloads.js';
import { SLOTS } from '../../route/slot.js';
import { otherSide } from '../../route/stage.js';
import { DeleteBudget } from './delete-budget.js';
import { Halt } from './scheduler.js';
import { RateLimiter } from './rate-limiter.js';
import { ReplicaLag } from './replica-lag.js';
import { MemoryGuard, RoomError } from './memory-guard.js';
import { authoritiesOf, isWriting, ScanPass, type ScanPassContext } from './scan-pass.js';
import { ScanProgress, type ScanProgressContext } from './scan-progress.js';
import { RestartScan, ScanValidity } from './scan-validity.js';

export interface JobContext extends ScanPassContext, ScanProgressContext {
  /** The plan's limits of jobs. A job's own stand before them. */
  readonly planned: () => JobLimits;
  readonly suspectWorkloads: Pick<SuspectWorkloads, 'mark'>;
  /** Asks the servers why a scan may have missed keys: their slots are at other nodes. Null if none are. */
  readonly awaySlots: () => Promise<string | null>;
  /** Called when the mirrors of these workloads hold only keys that the authority has, too. */
  readonly proven: (workloads: readonly Workload[]) => void;
  /** Called when these workloads are no longer suspect. */
  readonly cleared: () => void;
  /** Called when the report starts again from nothing. */
  readonly begun: () => void;
  readonly save: (record: JobRecord) => void;
  readonly logger: Logger;
}

/** The reason of a workload that is suspect because keys were left out. Only an operator starts its next backfill. */
export const CONTESTED = 'keys that several sources hold are not copied: set `owns` so that each key has one shard';

/** How many times a scan may start again. */
const MAX_SCANS = 10;
const HOW_TO_END =
  'stop what causes that while the job runs (see "It started again" in docs/troubleshooting.md), then run the same command again';
const SAVE_MS = 500;
const RETRY_MS = 250;

export class Job {
  readonly #workloads: readonly Workload[];
  readonly #startedAt: string;
  #state: JobRecord['state'] = 'running';
  #reason: string | null = null;
  #endedAt: string | null = null;
  #request: JobRequest;
  #paused: JobPause | null;
  #suspended = false;
  readonly #progress: ScanProgress;
  readonly #validity: ScanValidity;
  readonly #deletes: DeleteBudget;
  readonly #pace: RateLimiter;
  readonly #lag: ReplicaLag;
  #pass: ScanPass;
  #savedAt = 0;
  /** Since when the job's speed is measured. */
  #since = monotonicMs();
  /** Keys that were seen before that. */
  #seenBefore: number;
  /** Keys that were scanned before that. */
  #scannedBefore: number;

  constructor(
    request: JobRequest,
    private readonly context: JobContext,
    resumed: JobRecord | null,
    paused: JobPause | null = null,
  ) {
    const { router, latencies, servers } = context.sequencer;
    this.#request = request;
    this.#paused = paused;
    const wanted = router.workloads.filter(
      ({ name }) => request.workloads === null || request.workloads.includes(name),
    );
    this.#workloads = wanted.filter(({ position: { keylessRule, whole } }) => keylessRule.mirrorsWrites || !whole);
    this.#progress = new ScanProgress(context, resumed);
    this.#validity = new ScanValidity(this.#workloads, context.suspects.workloads);
    this.#seenBefore = this.#progress.counts.seen;
    this.#scannedBefore = this.#progress.counts.scanned;
    this.#deletes = new DeleteBudget(
      { permissions: context.permissions, request: () => this.request, save: () => this.#save() },
      this.#workloads,
      resumed?.deleting,
    );
    this.#startedAt = resumed?.startedAt ?? isoTime();
    const authority = authoritiesOf(this.#workloads)[0] ?? 'source';
    this.#pace = new RateLimiter(() => this.limits, latencies[authority], latencies[otherSide(authority)]);
    this.#lag = new ReplicaLag(
      () => authoritiesOf(this.#workloads).map((side) => servers[otherSide(side)]),
      () => this.limits.maxReplicaLagBytes ?? null,
    );
    this.#pass = this.#newPass();
  }

  get running(): boolean {
    return this.#state === 'running';
  }

  /** What was asked for, with what was changed since. */
  get request(): JobRequest {
    return this.#request;
  }

  /** The limits that apply: the job's own, then the plan's. */
  get limits(): JobLimits {
    const own = Object.entries(this.#request.limits).filter(([, limit]) => limit !== undefined);
    return { ...this.context.planned(), ...Object.fromEntries(own) };
  }

  get paused(): JobPause | null {
    return this.#paused;
  }

  /** Why no key may begin, whatever the servers do; null if keys may. */
  get #heldBecause(): string | null {
    if (this.#paused === null) return this.#lag.problem;
    const { by, reason } = this.#paused;
    return `paused${by === null ? '' : ` by ${by}`}${reason === null ? '' : `: ${reason}`}`;
  }

  /**
   * Changes the job while it runs; the change survives a restart.
   * @param limits that change; others stay
   * @param paused undefined leaves it as it is
   */
  change(limits: JobLimits, paused: JobPause | null | undefined): void {
    this.#request = { ...this.#request, limits: { ...this.#request.limits, ...limits } };
    if (paused !== undefined) this.#paused = paused;
    this.#pace.changed();
    this.#since = monotonicMs();
    this.#seenBefore = this.#progress.counts.seen;
    this.#scannedBefore = this.#progress.counts.scanned;
    this.#save();
  }

  get #suspicions(): WorkloadSuspicions {
    return this.context.suspects.workloads;
  }

  get #copies(): boolean {
    return this.request.kind === 'backfill' && !this.request.dryRun;
  }

  /** Whether the job has copied everything, and that is still true. */
  get holds(): boolean {
    return this.#copies && this.#state === 'done' && this.#validity.unmirrored.size === 0 && this.#validity.isCurrent;
  }

  /** The record from which an equal request continues, if this job stopped early; else null. */
  get unfinished(): JobRecord | null {
    const stopped = this.#state === 'stopped' || this.#state === 'failed';
    const { isCurrent, unmirrored } = this.#validity;
    if (!stopped || !isCurrent || unmirrored.size > 0 || this.#progress.at === null) return null;
    const record = this.#record;
    // The operator has confirmed deletions once more.
    return { ...record, paused: null, deleting: { ...record.deleting, confirmed: 0 } };
  }

  /** Resolves when the job has ended, with success or not. */
  async run(): Promise<void> {
    const { logger, sequencer } = this.context;
    const { kind } = this.request;
    const isNew = this.#progress.at === null;
    logger.info(
      { job: kind, workloads: this.#workloads.map(({ name }) => name), resumed: !isNew },
      'keyspace scan started',
    );
    // The new numbers are on the disk before the journal forgets SWAPDB: a crash in between begins again.
    const unlisten = sequencer.swaps.listen(() => this.#save());
    const room = new MemoryGuard(sequencer, authoritiesOf(this.#workloads), (why) => this.stop(why));
    try {
      if (this.#copies)
        for (const workload of this.#workloads)
          if (this.#suspicions.of(workload) === null) this.context.suspectWorkloads.mark(workload, NOT_COPIED);
      this.#validity.begin();
      if (isNew) this.#progress.noteWrites();
      // The list of lost keys stays until they are restored.
      if (isNew && kind !== 'restore') this.context.begun();
      this.#save();
      if (kind === 'backfill') await room.check();
      if (kind !== 'restore') room.watch();
      await this.#wholeScan();
      this.#finish();
    } catch (error) {
      this.#end(isFinal(error) ? 'stopped' : 'failed', (error as Error).message);
    }
    room.close();
    unlisten();
    this.#progress.end();
    this.#pace.close();
    this.#lag.close();
    const { counts } = this.#progress;
    logger.info({ job: kind, state: this.#state, reason: this.#reason, ...counts }, 'keyspace scan finished');
  }

  /** Stops the job where it stands. */
  stop(why: string): void {
    this.#pass.halt(new Halt(why));
  }

  /** Stops the job because the process ends: the next process continues it. */
  suspend(): void {
    if (!this.running) return;
    this.#deletes.forgetNoted();
    this.#save();
    this.#suspended = true;
    this.stop('the proxy is stopping');
  }

  /** Makes passes until one has handled every key. */
  async #wholeScan(): Promise<void> {
    for (let scans = 1; ;) {
      try {
        await this.#pass.run();
        return await this.#assertComplete();
      } catch (error) {
        this.#pass.halt(error as Error);
        await this.#pass.ended();
        if (isFinal(error) || this.#suspended) throw error;
        this.#pass = this.#newPass();
        if (error instanceof RestartScan) {
          if (++scans > MAX_SCANS)
            throw new Halt(`it started again ${MAX_SCANS - 1} times, because ${error.message}; ${HOW_TO_END}`);
          this.#reason = `it started again: ${error.message}`;
          this.#restartScan();
        } else {
          this.#reason = (error as Error).message;
          await sleep(RETRY_MS);
        }
      }
    }
  }

  /** @throws {RestartScan} {Error} if keys may have been at other nodes while they were scanned */
  async #assertComplete(): Promise<void> {
    const away = await this.context.awaySlots();
    this.#validity.assertCurrent();
    if (away !== null) throw new Error(away);
  }

  #newPass(): ScanPass {
    return new ScanPass(this.context, {
      request: this.request,
      workloads: this.#workloads,
      firstSlot: Date.parse(this.#startedAt) % SLOTS,
      pace: this.#pace,
      deletes: this.#deletes,
      progress: this.#progress,
      validity: this.#validity,
      heldBecause: () => this.#heldBecause,
      isSuspended: () => this.#suspended,
      advanced: () => {
        if (monotonicMs() - this.#savedAt > SAVE_MS) this.#save();
      },
    });
  }

  #restartScan(): void {
    this.#progress.restart();
    // What was confirmed was confirmed for all of its scans; a dry run only counts.
    if (this.request.dryRun) this.#deletes.reset();
    this.#seenBefore = 0;
    this.#scannedBefore = 0;
    this.#validity.begin();
  }

  #finish(): void {
    if (this.request.sample >= 100 && isWriting(this.request)) {
      for (const workload of this.#workloads) {
        if (this.#validity.unmirrored.has(workload)) continue;
        this.#suspicions.clear(workload);
        if ((this.#progress.counts.differences.contested ?? 0) > 0)
          this.context.suspectWorkloads.mark(workload, CONTESTED);
      }
    }
    const names = [...this.#validity.unmirrored].map(({ name }) => `"${name}"`);
    if (names.length === 0) this.#end('done', null);
    else this.#end('stopped', `${names.join(', ')} was off meanwhile, and keys were passed over: start it again`);
    if (this.#provesMirror && names.length === 0) this.context.proven(this.#workloads);
    this.context.cleared();
  }

  /** Whether every key of the mirrors was looked at, and none is left that the authority does not have. */
  get #provesMirror(): boolean {
    const { kind, repair, dryRun, sample } = this.request;
    const { differences, keptForeign, failed, unsure } = this.#progress.counts;
    if (dryRun || kind === 'restore' || sample < 100 || keptForeign + failed + unsure > 0) return false;
    return kind === 'backfill' || repair || (differences.extra ?? 0) + (differences.foreign ?? 0) === 0;
  }

  #end(state: JobRecord['state'], reason: string | null): void {
    if (this.#suspended) return;
    this.#state = state;
    this.#reason = reason;
    this.#endedAt = isoTime();
    this.#save();
  }

  #save(): void {
    this.#savedAt = monotonicMs();
    if (this.#suspended) return;
    this.context.save(this.#record);
  }

  get #record(): JobRecord {
    const { running } = this;
    // The scan is about to start again.
    const willRescan = running && (!this.#validity.isCurrent || this.#validity.unmirrored.size > 0);
    return {
      version: 1,
      request: this.request,
      state: this.#state,
      reason: this.#reason,
      startedAt: this.#startedAt,
      endedAt: this.#endedAt,
      at: willRescan ? null : this.#progress.recordedPlace,
      counts: willRescan ? noCounts() : this.#progress.counts,
      paused: this.#paused,
      deleting: this.#deletes.record(running),
    };
  }

  snapshot(): JobSnapshot {
    const { kind, repair, dryRun, sample, automatic } = this.request;
    const seconds = Math.max(0.001, (monotonicMs() - this.#since) / 1000);
    const progress = this.#progress;
    const { seen, scanned } = progress.counts;
    const moves = this.running && this.#paused === null;
    const rate = (from: number, to: number): number => (moves ? (to - from) / seconds : 0);
    const scanRate = rate(this.#scannedBefore, scanned);
    const total = this.#state === 'done' ? scanned : Math.max(progress.total, scanned);
    return {
      kind,
      repair,
      dryRun,
      sample,
      automatic,
      workloads: this.#workloads.map(({ name }) => name),
      state: this.#state,
      reason: this.running ? (this.#heldBecause ?? this.#pass.waitsFor ?? this.#reason) : this.#reason,
      limits: this.limits,
      paused: this.running ? this.#paused : null,
      startedAt: this.#startedAt,
      endedAt: this.#endedAt,
      total,
      ...progress.counts,
      keysPerSecond: rate(this.#seenBefore, seen),
      etaSeconds: scanRate > 0 && scanned < total ? (total - scanned) / scanRate : null,
      failures: progress.failures,
      examples: progress.examples,
    };
  }
}

const isFinal = (error: unknown): boolean =>
  error instanceof Halt || error instanceof ScanError || error instanceof RoomError;
