/**
 * The parts of a shard that survive its process: stages, the servers that were seen, suspects, the progress of the job.
 */
import type { Logger } from 'pino';
import { unanswered } from '../health/failover.js';
import { isoTime } from '../io/clock.js';
import type { Authorities } from '../pipeline/authorities.js';
import type { Workload } from '../route/router.js';
import { SIDES, type Side, type StagePoint } from '../route/stage.js';
import type { Admitted } from '../stages/admitted.js';
import { holdsAfter } from '../stages/holds.js';
import type { FlipContext } from '../stages/flip.js';
import { readJob, writeJob, type JobRecord } from '../storage/job-file.js';
import type { Journal } from '../storage/journal.js';
import type { JournalRecords } from '../storage/journal-reader.js';
import type { Author } from '../storage/sealed.js';
import type { Hold, HistoryEvent, ServerSeen, ShardState, StatePatch, StateStore } from '../storage/state.js';
import type { Suspects } from '../suspects/suspects.js';
import type { SuspectWorkloads } from '../suspects/workloads.js';
import type { Sequencer } from '../pipeline/sequencer.js';

/** Saves data for the parts of a shard. */
export interface Persistence {
  readonly current: ShardState;
  /** Replaces part of the state, durably. @throws {StateError} */
  update(patch: StatePatch | ((current: ShardState) => StatePatch), event?: HistoryEvent): Promise<void>;
  /** Saves which servers were seen. An authority that is not trusted keeps its old run ID until an operator decides. */
  remember(event?: HistoryEvent): Promise<void>;
  /** Saves the progress of a job. Write errors are logged. */
  saveJob(record: JobRecord): void;
}

export interface StateKeeperOptions {
  readonly directory: string;
  readonly author: Author;
  readonly state: StateStore;
  readonly journal: Journal;
  /** The suspects that the last process left. */
  readonly left: JournalRecords;
  readonly sequencer: Sequencer;
  readonly suspects: Suspects;
  readonly suspectWorkloads: SuspectWorkloads;
  readonly authorities: Authorities;
  /** The key's name as it may be shown. */
  readonly redact: (key: Buffer) => string;
  readonly logger: Logger;
}

export class StateKeeper implements Persistence {
  constructor(private readonly by: StateKeeperOptions) {}

  get current(): ShardState {
    return this.by.state.current;
  }

  update(patch: StatePatch | ((current: ShardState) => StatePatch), event?: HistoryEvent): Promise<void> {
    return this.by.state.update(patch, event);
  }

  remember(event?: HistoryEvent): Promise<void> {
    return this.#remember({}, event);
  }

  rememberSoon(): void {
    this.remember().catch((problem: Error) =>
      this.by.logger.error({ problem: problem.message }, 'the identities of the servers cannot be saved'),
    );
  }

  /** Records that this process serves from now on. */
  begun(): Promise<void> {
    return this.#remember({ cleanShutdown: false, journal: this.by.author.process }, this.#journalEvent());
  }

  /** Records that everything is confirmed and no key is suspect: the next process need not check anything. */
  async ended(): Promise<void> {
    this.by.journal.settled();
    await this.#remember({ cleanShutdown: this.by.suspects.workloads.count === 0 });
  }

  #remember(patch: { cleanShutdown?: boolean; journal?: string }, event?: HistoryEvent): Promise<void> {
    const { state, sequencer, authorities } = this.by;
    return state.update((current) => {
      const seen = (side: Side): ServerSeen | null => {
        const {
          runId,
          replId,
          traits: { version },
        } = sequencer.servers[side];
        return version === '' || authorities.distrusts(side)
          ? current[side]
          : { runId, replId, version, seenAt: isoTime() };
      };
      const read = SIDES.every((side) => Number.isFinite(sequencer.servers[side].clock.errorMs));
      const targetAheadMs = read ? sequencer.mirrors.target.clockAheadMs : current.targetAheadMs;
      return { ...patch, source: seen('source'), target: seen('target'), targetAheadMs };
    }, event);
  }

  /** Saves a workload's new stage, and what is known about the target's keys. */
  async moved(
    [workload, from, to, note, admitting]: Parameters<FlipContext['persist']>,
    admitted: Admitted,
  ): Promise<void> {
    const lost = unanswered(workload, this.by);
    const admission = admitting && admitted.admission(admitting.facts, admitting.consent.deleteForeign);
    await this.by.state.update(
      (current) => ({
        workloads: { ...current.workloads, [workload.name]: to },
        holds: holdsAfter(current.holds, workload.name, from, to, note),
        ...(admission !== null && { admitted: { ...current.admitted, [workload.name]: admission } }),
      }),
      { event: 'stage', workload: workload.name, from, to, ...note, ...(lost.unanswered > 0 && lost) },
    );
    if (admission !== null) admitted.apply(workload);
  }

  /** Sets a hold on a workload, which prevents automatic moves, or removes it (null). @throws {StateError} */
  hold(workload: string, hold: Hold | null, event: Readonly<Record<string, unknown>>): Promise<void> {
    return this.by.state.update(
      ({ holds: { [workload]: _, ...others } }) => ({
        holds: hold === null ? others : { ...others, [workload]: hold },
      }),
      { event: 'automatic', workload, ...event },
    );
  }

  /** An operator accepts servers of releases that this release does not know. @throws {StateError} */
  acceptReleases(names: readonly string[], note: Readonly<Record<string, unknown>>): Promise<void> {
    return this.by.state.update(
      ({ acceptedReleases }) => ({ acceptedReleases: [...new Set([...acceptedReleases, ...names])] }),
      { event: 'version', versions: names, ...note },
    );
  }

  /** Records that a workload does not begin in the plan's stage. */
  async keptOff(workload: Workload, reason: string): Promise<void> {
    const {
      name,
      position: { stage, percent },
    } = workload;
    const off: StagePoint = { stage: 'off', percent: 100 };
    await this.by.state.update(({ workloads }) => ({ workloads: { ...workloads, [name]: off } }), {
      event: 'stage',
      workload: name,
      from: { stage, percent },
      to: off,
      reason,
    });
    this.by.sequencer.router.move(workload, off);
  }

  // ── suspects ────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Makes the last process's suspects suspect again. @param reason why these suspects are not known here; null if they
   * are
   * @returns whether all of them are known
   */
  takeOver(reason: string | null): boolean {
    const { logger, journal, left, sequencer, suspects, suspectWorkloads } = this.by;
    const { keys, workloads, everything } = left;
    for (const { db, key, touched } of keys)
      sequencer.suspects.key(db, key, touched ? 'process-ended' : 'process-ended-unwritten');
    for (const [name, why] of workloads) {
      const workload = sequencer.router.named(name);
      if (workload?.position.keylessRule.mirrorsWrites) suspects.workloads.mark(workload, why);
    }
    if (everything !== null) suspectWorkloads.markAll(`the last process crashed: ${everything}`);
    if (reason !== null) suspectWorkloads.markAll(reason);
    if (keys.length > 0)
      logger.warn({ keys: keys.length }, 'the last process crashed: the keys that it was writing are suspects');
    if (everything !== null)
      logger.warn(
        { problem: everything },
        'the journal does not name all keys that the last process was writing: every key of each mirrored workload is a suspect',
      );
    journal.rotate();
    return everything === null;
  }

  /** The event of the history for a journal that is not complete. */
  #journalEvent(): HistoryEvent | undefined {
    const reason = this.by.left.everything;
    const workloads = this.by.sequencer.router.workloads
      .filter(({ position: { keylessRule } }) => keylessRule.mirrorsWrites)
      .map(({ name }) => name);
    return reason === null || workloads.length === 0 ? undefined : { event: 'suspect', workloads, reason };
  }

  /** Records the present suspects in the journal's next file. */
  carry(): void {
    const { journal, suspects, sequencer } = this.by;
    for (const suspect of suspects.all()) journal.noteSuspect(suspect);
    for (const workload of sequencer.router.workloads) {
      const why = suspects.workloads.of(workload);
      if (why !== null) journal.noteWorkload(workload.name, why);
    }
  }

  // ── jobs ────────────────────────────────────────────────────────────────────────────────────────────────────

  /** The job that the last process left; null if there was none, or it cannot be continued. */
  job(): JobRecord | null {
    const { value, problem } = readJob(this.by.directory, this.by.author.before);
    if (problem !== null)
      this.by.logger.warn(
        { problem },
        'the backfill or verification of the last process cannot be resumed: start it again',
      );
    return value;
  }

  saveJob(record: JobRecord): void {
    try {
      writeJob(this.by.directory, this.by.author, record);
    } catch (problem) {
      this.by.logger.error(
        { problem: (problem as Error).message },
        'the progress of the job cannot be saved: after a restart it begins again',
      );
    }
  }

  /** Records in the history that a job was changed. Write errors are logged. */
  noteJob(event: HistoryEvent): void {
    this.by.state.update({}, event).catch((problem: Error) => {
      this.by.logger.error(
        { ...event, problem: problem.message },
        'the history cannot be written: it does not record that the job was changed',
      );
    });
  }

  /** Records in the history that a job may delete keys of the mirror. Write errors are logged. */
  noteDeletes(event: HistoryEvent, keys: number): void {
    this.by.state.update({}, event).catch((problem: Error) => {
      this.by.logger.error(
        { keys, problem: problem.message },
        'the history cannot be written: it does not record that keys of the mirror may be deleted',
      );
    });
  }
}
