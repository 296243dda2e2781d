/**
 * A scan of all keys of a shard, each of which is copied (backfill) or compared, and copied where it differs
 * (verify), in the order of the sequencer, while clients go on.
 *
 *   scan(side) ─▶ page ─▶ choose: keys of the wanted workloads ─▶ authority here? ── yes ─▶ flow
 *                                                                      └─ no: deleted? ── yes ─▶ flow (a copy deletes it)
 *
 * Both servers are scanned: the second scan finds what only the mirror has. Where the scan stands is on the disk. A
 * new suspicion of a whole workload starts it again. SWAPDB does not: databases are ids here (`pipeline/swaps.ts`), and
 * what was read while one was under way is read again.
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
import { noCounts, type JobCounts, type JobRecord, type JobRequest } from '../../storage/job-file.js';
import {
  NOT_COPIED,
  type JobDifference,
  type JobFailure,
  type JobLimits,
  type JobPause,
  type JobSnapshot,
} from '../../telemetry/snapshot.js';
import type { Workload } from '../../route/router.js';
import { keyId } from '../../suspects/suspects.js';
import type { WorkloadSuspicions } from '../../suspects/workload-suspicions.js';
import type { SuspectWorkloads } from '../../suspects/workloads.js';
import { SLOTS } from '../../route/slot.js';
import { isMirrored, otherSide, type Side } from '../../route/stage.js';
import type { Swaps } from '../../pipeline/swaps.js';
import { DeleteBudget } from './delete-budget.js';
import { Chooser, type ChooserContext, type Chosen, type ReportedKey } from './chooser.js';
import { CopyScheduler, Halt, type FlowContext } from './scheduler.js';
import { isTemporary } from '../large/temporary.js';
import type { Thresholds } from '../large/size.js';
import { RateLimiter } from './rate-limiter.js';
import { ReplicaLag } from './replica-lag.js';
import { MemoryGuard, RoomError } from './memory-guard.js';
import { WrittenKeys } from '../repair/written-keys.js';
import { inDatabases, Scanner, type Checkpoint, type Page as ScannedPage, type ScannedKey } from './scanner.js';

export interface JobContext
  extends Omit<FlowContext, 'failed' | 'hindrance' | 'held' | 'mayDelete' | 'deleting' | 'recounted'>, ChooserContext {
  /** Why nothing may be copied or compared now; null if nothing forbids it. */
  readonly hindrance: (copies: boolean) => string | null;
  /** Resolves when everything that is in flight now is answered, and confirmed by the mirror. */
  readonly settle: () => Promise<void>;
  /** The plan's limits of jobs. A job's own stand before them. */
  readonly planned: () => JobLimits;
  /** A key of this size or more is copied in chunks. */
  readonly large: Thresholds;
  readonly suspectWorkloads: Pick<SuspectWorkloads, 'mark'>;
  /** Called when the mirrors of these workloads hold only keys that the authority has, too. */
  readonly proven: (workloads: readonly Workload[]) => void;
  /** Called when these workloads are no longer suspect. */
  readonly cleared: () => void;
  /** Called when the report starts again from nothing. */
  readonly begun: () => void;
  /** Called with each key that the job does not copy, for the report. */
  readonly reportKey: (key: ReportedKey) => void;
  readonly save: (record: JobRecord) => void;
  readonly redact: (key: Buffer) => string;
  readonly logger: Logger;
}

/** The reason of a workload that is suspect because keys were left out. Only an operator starts its next backfill. */
export const CONTESTED = 'keys that several sources hold are not copied: set `owns` so that each key has one shard';

const SETTLING = 'it goes on when the mirror has confirmed what is in flight';

/** Keys that the scan has passed are suspect again. */
class RestartScan extends Error {}

/** How many times a scan may start again. */
const MAX_SCANS = 10;
const HOW_TO_END =
  'stop what causes that while the job runs (see "It started again" in docs/troubleshooting.md), then run the same command again';
const SAVE_MS = 500;
const RETRY_MS = 250;
/** How many keys that failed, and how many that differ, are listed one by one. */
const MAX_LISTED = 20;
/** How many keys of a kind that is no difference are listed in the report. */
const LISTED = 1_000;

const NO_DIFFERENCES: ReadonlySet<string> = new Set(['other-shard', 'no-workload', 'miscounted']);

/** A page whose keys are under way. The scan has passed it when none of them is left. */
interface Page {
  left: number;
  /** How many keys of the page `total` counts. */
  readonly keys: number;
  /** The place of the scan after this page. */
  readonly after: JobRecord['at'];
}

export class Job {
  readonly #workloads: readonly Workload[];
  readonly #startedAt: string;
  readonly #timesSuspect = new Map<Workload, number>();
  readonly #failures: JobFailure[] = [];
  readonly #examples: JobDifference[] = [];
  #state: JobRecord['state'] = 'running';
  #reason: string | null = null;
  #endedAt: string | null = null;
  #at: JobRecord['at'];
  #counts: JobCounts;
  #pages: Page[] = [];
  #pace: RateLimiter;
  #flow: CopyScheduler;
  readonly #chooser: Chooser;
  /** What clients write while the job runs; null before it begins, and if it continues another process's job. */
  #written: WrittenKeys | null = null;
  /** What was found on the current page. */
  #reportedOfPage: ReportedKey[] = [];
  /** Large keys that the scan of the authority has met, by the ids of their databases: they are copied, once. */
  readonly #largeOnes = new Set<string>();
  readonly #deletes: DeleteBudget;
  #total = 0;
  /** Keys that were scanned before its speed is measured. */
  #scannedBefore: number;
  #savedAt = 0;
  /** Workloads that were not written to both servers during a part of the scan: it has passed over their keys. */
  readonly #left = new Set<Workload>();
  /** Whether the next scan waits for what is in flight. */
  #settling = false;
  #suspended = false;
  /** Since when its speed is measured. */
  #since = monotonicMs();
  #request: JobRequest;
  #paused: JobPause | null;
  readonly #lag: ReplicaLag;
  /** Keys that were seen before that. */
  #before: number;

  constructor(
    request: JobRequest,
    private readonly context: JobContext,
    resumed: JobRecord | null,
    paused: JobPause | null = null,
  ) {
    const { router, latencies } = context.sequencer;
    this.#request = request;
    this.#paused = paused;
    const wanted = router.workloads.filter(
      ({ name }) => request.workloads === null || request.workloads.includes(name),
    );
    this.#workloads = wanted.filter(({ position: { keylessRule, whole } }) => keylessRule.mirrorsWrites || !whole);
    this.#at = resumed?.at ? this.#placed(resumed.at, (db) => this.#swaps.ids.idOf(db)) : null;
    this.#counts = resumed?.counts ?? noCounts();
    this.#before = this.#counts.seen;
    this.#scannedBefore = this.#counts.scanned;
    this.#deletes = new DeleteBudget(
      { permissions: context.permissions, request: () => this.request, save: () => this.#save() },
      this.#workloads,
      resumed?.deleting,
    );
    this.#startedAt = resumed?.startedAt ?? isoTime();
    const authority = this.#authorities[0] ?? 'source';
    this.#pace = new RateLimiter(() => this.limits, latencies[authority], latencies[otherSide(authority)]);
    this.#lag = new ReplicaLag(
      () => this.#authorities.map((side) => context.sequencer.servers[otherSide(side)]),
      () => this.limits.maxReplicaLagBytes ?? null,
    );
    this.#flow = this.#newFlow();
    this.#chooser = new Chooser(
      context,
      request,
      this.#workloads,
      (db, key) => !this.#largeOnes.has(keyId(this.#swaps.ids.idOf(db), key)) && (this.#written?.has(db, key) ?? true),
      Date.parse(this.#startedAt) % SLOTS,
      (reported) => void this.#reportedOfPage.push(reported),
    );
  }

  get running(): boolean {
    return this.#state === 'running';
  }

  /** What was asked for, with what was changed since. */
  get request(): JobRequest {
    return this.#request;
  }

  /** What holds now: its own limits, then the plan's. */
  get limits(): JobLimits {
    const own = Object.entries(this.#request.limits).filter(([, limit]) => limit !== undefined);
    return { ...this.context.planned(), ...Object.fromEntries(own) };
  }

  get paused(): JobPause | null {
    return this.#paused;
  }

  /** Why no key may begin, whatever the servers do; null where keys may. */
  get #held(): string | null {
    if (this.#paused === null) return this.#lag.problem;
    const { by, reason } = this.#paused;
    return `paused${by === null ? '' : ` by ${by}`}${reason === null ? '' : `: ${reason}`}`;
  }

  /**
   * Changes it while it runs; the change survives a restart.
   * @param limits that change; others stay
   * @param paused undefined leaves it as it is
   */
  change(limits: JobLimits, paused: JobPause | null | undefined): void {
    this.#request = { ...this.#request, limits: { ...this.#request.limits, ...limits } };
    if (paused !== undefined) this.#paused = paused;
    this.#pace.changed();
    this.#since = monotonicMs();
    this.#before = this.#counts.seen;
    this.#scannedBefore = this.#counts.scanned;
    this.#save();
  }

  get #swaps(): Swaps {
    return this.context.sequencer.swaps;
  }

  #placed(at: NonNullable<JobRecord['at']>, to: (db: number) => number): JobRecord['at'] {
    return { ...at, checkpoint: at.checkpoint && inDatabases(at.checkpoint, to) };
  }

  get #suspicions(): WorkloadSuspicions {
    return this.context.suspects.workloads;
  }

  get #copies(): boolean {
    return this.request.kind === 'backfill' && !this.request.dryRun;
  }

  /** Whether nothing became suspect since the job began. */
  get #isCurrent(): boolean {
    return this.#workloads.every((workload) => this.#suspicions.times(workload) === this.#timesSuspect.get(workload));
  }

  /** Whether the job has copied everything, and that is still true. */
  get holds(): boolean {
    return this.#copies && this.#state === 'done' && this.#left.size === 0 && this.#isCurrent;
  }

  /** The record from which an equal request continues, if this job stopped early; else null. */
  get unfinished(): JobRecord | null {
    const stopped = this.#state === 'stopped' || this.#state === 'failed';
    if (!stopped || !this.#isCurrent || this.#left.size > 0 || this.#at === null) return null;
    const record = this.#record;
    // The operator has confirmed deletions once more.
    return { ...record, paused: null, deleting: { ...record.deleting, confirmed: 0 } };
  }

  /** Resolves when the job has ended, with success or not. */
  async run(): Promise<void> {
    const { logger } = this.context;
    const { kind } = this.request;
    logger.info(
      { job: kind, workloads: this.#workloads.map(({ name }) => name), resumed: this.#at !== null },
      'keyspace scan started',
    );
    // The new numbers are on the disk before the journal forgets SWAPDB: a crash in between begins again.
    const unlisten = this.#swaps.listen(() => this.#save());
    const room = new MemoryGuard(this.context.sequencer, this.#authorities, (why) => this.stop(why));
    try {
      if (this.#copies)
        for (const workload of this.#workloads)
          if (this.#suspicions.of(workload) === null) this.context.suspectWorkloads.mark(workload, NOT_COPIED);
      this.#remember();
      if (this.#at === null) this.#written = new WrittenKeys(this.context.sequencer);
      // The list of lost keys stays until they are restored.
      if (this.#at === null && kind !== 'restore') this.context.begun();
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
    this.#written?.end();
    this.#pace.close();
    this.#lag.close();
    logger.info({ job: kind, state: this.#state, reason: this.#reason, ...this.#counts }, 'keyspace scan finished');
  }

  /** Stops the job where it stands. */
  stop(why: string): void {
    this.#flow.halt(new Halt(why));
  }

  /** Stops the job because the process ends: the next process continues it. */
  suspend(): void {
    if (!this.running) return;
    this.#deletes.forgetNoted();
    this.#save();
    this.#suspended = true;
    this.stop('the proxy is stopping');
  }

  // ── its course ──────────────────────────────────────────────────────────────────────────────────────────────

  async #wholeScan(): Promise<void> {
    for (let scans = 1; ;) {
      try {
        return await this.#scan();
      } catch (error) {
        this.#flow.halt(error as Error);
        await this.#flow.ended();
        if (isFinal(error) || this.#suspended) throw error;
        this.#flow = this.#newFlow();
        this.#pages = [];
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

  #newFlow(): CopyScheduler {
    const writes = this.#copies || this.request.repair;
    const report: JobContext['report'] = (key, difference) => {
      this.context.report(key, difference);
      if (this.#examples.length < MAX_LISTED)
        this.#examples.push({ db: key.db, key: this.context.redact(key.key), kind: difference.kind });
    };
    return new CopyScheduler(
      {
        ...this.context,
        report,
        mayDelete: (workload, key) => this.#mayDelete(workload, key),
        deleting: (workload, key) => this.#deleting(workload, key),
        hindrance: () => this.#held ?? this.context.hindrance(writes),
        held: () => this.#held !== null,
        recounted: ({ workload, db, key }) => this.#report({ kind: 'miscounted', workload, db, key, holders: {} }),
        failed: ({ db, key }, { message }) => this.#failed(db, key, message),
      },
      this.request,
      () => this.#counts,
      this.#pace,
    );
  }

  #restartScan(): void {
    this.#at = null;
    this.#counts = noCounts();
    // What was confirmed was confirmed for all of its scans; a dry run only counts.
    if (this.request.dryRun) this.#deletes.reset();
    this.#largeOnes.clear();
    this.#before = 0;
    this.#scannedBefore = 0;
    this.#failures.length = 0;
    this.#examples.length = 0;
    this.#written?.end();
    this.#written = new WrittenKeys(this.context.sequencer);
    this.#remember();
  }

  async #scan(): Promise<void> {
    await this.#settle();
    const sides = await this.#sides();
    const from = this.#at;
    const first = from === null ? 0 : Math.max(0, sides.indexOf(from.side));
    for (let i = first; i < sides.length; i++) {
      const then = { side: sides[i + 1] ?? sides[i], checkpoint: null };
      await this.#scanServer(sides[i], from?.side === sides[i] ? from.checkpoint : null, then);
    }
    await this.#flow.ended();
    if (this.#flow.halted !== null) throw this.#flow.halted;
    this.#assertCurrent();
  }

  /**
   * A key that is written and deleted before a scan may be on the mirror behind it: the write waits in the mirror's
   * queue, and not each command that deletes keys is sent there (FLUSHDB, or a script that hides them). Such a command
   * makes the workload suspect, and the scan starts again. So a scan begins when what was in flight is confirmed.
   * @throws what `halt` was given
   */
  async #settle(): Promise<void> {
    const { halting } = this.#flow;
    halting.throwIfAborted();
    const halted = new AbortController();
    this.#settling = true;
    await Promise.race([
      this.context.settle(),
      new Promise((_, reject) =>
        halting.addEventListener('abort', () => reject(halting.reason as Error), { signal: halted.signal }),
      ),
    ]).finally(() => {
      this.#settling = false;
      halted.abort();
    });
  }

  async #scanServer(side: Side, from: Checkpoint | null, then: JobRecord['at']): Promise<void> {
    const { servers } = this.context.sequencer;
    const copies = this.#authorities.includes(side) || (this.#written?.any ?? true);
    const measures = !this.request.dryRun && copies;
    const scanner = new Scanner(servers[side], this.#swaps, measures ? this.context.large : null, this.#flow.halting);
    try {
      const pages = scanner.pages(from);
      let coming = pages.next();
      for (;;) {
        const { done, value } = await coming;
        if (done === true) return;
        // The next page is asked for while the keys of this one are under way.
        coming = pages.next();
        coming.catch(() => undefined);
        this.#assertCurrent();
        const { id } = value;
        const { mine, extra, writtenMeanwhile, overwritten } = await this.#choose(side, value);
        for (const { key, large } of mine) if (large) this.#largeOnes.add(keyId(id, key));
        this.#counts.seen += this.request.kind === 'restore' ? extra.length : mine.length;
        this.#counts.overwritten += overwritten;
        if (this.request.dryRun) this.#countDeletes(extra);
        const keys = this.request.dryRun ? [] : [...mine, ...extra, ...writtenMeanwhile];
        const page: Page = {
          left: keys.length,
          keys: this.#isCounted(side) ? value.keys.length : 0,
          after: value.next === null ? then : { side, checkpoint: value.next },
        };
        this.#pages.push(page);
        this.#advanceCheckpoint();
        await this.#flow.take(id, keys, () => {
          if (--page.left === 0) this.#advanceCheckpoint();
        });
      }
    } finally {
      scanner.close();
    }
  }

  async #choose(side: Side, { id, keys }: ScannedPage): Promise<Chosen & { readonly overwritten: number }> {
    const chosen = await this.#swaps.undisturbed(async () => {
      this.#reportedOfPage = [];
      const db = this.#swaps.ids.numberOf(id);
      const found = await this.#chooser.choose(side, db, keys);
      const extra = await this.#stillExtra(side, db, found.extra);
      return { ...found, extra, overwritten: await this.#overwritten(side, db, found.mine) };
    }, this.#flow.halting);
    for (const reported of this.#reportedOfPage) this.#report(reported);
    return chosen;
  }

  /**
   * The keys without those that only the mirror had because their deletes were on the way there. What is left may be
   * foreign, and a delete of it is one of those that the operator confirmed.
   */
  async #stillExtra(mirror: Side, db: number, keys: readonly ScannedKey[]): Promise<readonly ScannedKey[]> {
    const { permissions, readers, sequencer } = this.context;
    const isOurs = ({ key }: ScannedKey): boolean => permissions.isOurs(sequencer.router.match(key, 0, key.length));
    if (this.request.kind === 'restore' || keys.every(isOurs)) return keys;
    await this.#settle();
    const absent = new Set(await readers[mirror].absent(db, keys));
    return keys.filter((scanned) => !absent.has(scanned));
  }

  /** How many of the keys the mirror has before they are copied, and the kit is not known to have written. */
  async #overwritten(side: Side, db: number, keys: readonly ScannedKey[]): Promise<number> {
    if (this.request.kind !== 'backfill') return 0;
    const { sequencer, permissions } = this.context;
    const uncertain = this.#workloads.some((workload) => permissions.of(workload).mayOverwrite)
      ? keys.filter(({ key }) => permissions.of(sequencer.router.match(key, 0, key.length)).mayOverwrite)
      : [];
    if (uncertain.length === 0) return 0;
    return uncertain.length - (await this.context.readers[otherSide(side)].absent(db, uncertain)).length;
  }

  /** Whether a key that only its mirror has may be deleted. */
  #mayDelete(workload: Workload, key: Buffer): boolean {
    return isTemporary(key) || (!this.#suspended && this.#deletes.allows(workload));
  }

  /** The key, which may be deleted, is about to be. */
  #deleting(workload: Workload, key: Buffer): void {
    if (!isTemporary(key)) this.#deletes.spend(workload);
  }

  /** A dry run: what would become of keys that only the mirror has. */
  #countDeletes(keys: readonly ScannedKey[]): void {
    const { router } = this.context.sequencer;
    for (const { key } of keys) {
      const workload = router.match(key, 0, key.length);
      const mayDelete = this.#mayDelete(workload, key);
      if (mayDelete) this.#deleting(workload, key);
      this.#counts[mayDelete ? 'deleted' : 'keptForeign']++;
    }
  }

  /** The sides to scan: authorities first, then mirrors. */
  async #sides(): Promise<Side[]> {
    const authorities = this.#authorities;
    const sides: Side[] = [];
    this.#total = 0;
    for (const side of new Set<Side>([...authorities, ...authorities.map(otherSide)])) {
      const isAuthority = authorities.includes(side);
      const keys = await this.context.sequencer.servers[side].keyCount();
      const restores = this.request.kind === 'restore';
      if (this.#isCounted(side)) this.#total += keys;
      // What an authority has lost, only its mirror has. A mirror that is empty now is scanned, too: clients write keys
      // there meanwhile, and some of these may expire on the authority before they are copied.
      if (!restores || !isAuthority || authorities.length > 1) sides.push(side);
    }
    return sides;
  }

  /** Whether the progress counts the keys of this server: an authority's, or what a restore reads from its mirror. */
  #isCounted(side: Side): boolean {
    return this.#authorities.includes(side) !== (this.request.kind === 'restore');
  }

  get #authorities(): Side[] {
    const sides = this.#workloads.flatMap(({ position: { keylessRule, whole } }): Side[] =>
      whole ? [keylessRule.authority] : ['source', 'target'],
    );
    return [...new Set(sides)];
  }

  /** Notes which suspicions the job will clear. */
  #remember(): void {
    this.#left.clear();
    for (const workload of this.#workloads) this.#timesSuspect.set(workload, this.#suspicions.times(workload));
  }

  /** @throws {RestartScan} if a workload became suspect since it began */
  #assertCurrent(): void {
    for (const workload of this.#workloads) if (!isMirrored(workload.position.stage)) this.#left.add(workload);
    const suspect = this.#workloads.find(
      (workload) => this.#suspicions.times(workload) !== this.#timesSuspect.get(workload),
    );
    if (suspect !== undefined)
      throw new RestartScan(
        `every key of "${suspect.name}" became a suspect meanwhile: ${this.#suspicions.last(suspect)}`,
      );
  }

  /** Notes how far the scan has come: behind the last page before which all are done. */
  #advanceCheckpoint(): void {
    while (this.#pages.length > 0 && this.#pages[0].left === 0) {
      const { keys, after } = this.#pages.shift()!;
      this.#counts.scanned += keys;
      this.#at = after;
    }
    if (monotonicMs() - this.#savedAt > SAVE_MS) this.#save();
  }

  // ── its end ─────────────────────────────────────────────────────────────────────────────────────────────────

  #failed(db: number, key: Buffer, why: string): void {
    const { redact, suspects, sequencer } = this.context;
    if (this.#failures.length < MAX_LISTED) this.#failures.push({ db, key: redact(key), why });
    // The key alone becomes a suspect: other keys of its workload may be equal.
    const workload = sequencer.router.match(key, 0, key.length);
    if (this.#copies || this.request.repair) suspects.mark(db, key, workload, 'not-copied');
  }

  #report(key: ReportedKey): void {
    const { differences, listed } = this.#counts;
    const isDifference = !NO_DIFFERENCES.has(key.kind);
    const counts = isDifference ? differences : listed;
    const count = (counts[key.kind] = (counts[key.kind] ?? 0) + 1);
    if (isDifference || count <= LISTED) this.context.reportKey(key);
  }

  #finish(): void {
    if (this.request.sample >= 100 && (this.#copies || this.request.repair)) {
      for (const workload of this.#workloads) {
        if (this.#left.has(workload)) continue;
        this.#suspicions.clear(workload);
        if ((this.#counts.differences.contested ?? 0) > 0) this.context.suspectWorkloads.mark(workload, CONTESTED);
      }
    }
    const names = [...this.#left].map(({ name }) => `"${name}"`);
    if (names.length === 0) this.#end('done', null);
    else this.#end('stopped', `${names.join(', ')} was off meanwhile, and keys were passed over: start it again`);
    if (this.#provesMirror && names.length === 0) this.context.proven(this.#workloads);
    this.context.cleared();
  }

  /** Whether every key of the mirrors was looked at, and none is left that the authority does not have. */
  get #provesMirror(): boolean {
    const { kind, repair, dryRun, sample } = this.request;
    const { differences, keptForeign, failed, unsure } = this.#counts;
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
    const willRescan = running && (!this.#isCurrent || this.#left.size > 0);
    return {
      version: 1,
      request: this.request,
      state: this.#state,
      reason: this.#reason,
      startedAt: this.#startedAt,
      endedAt: this.#endedAt,
      at: willRescan || this.#at === null ? null : this.#placed(this.#at, (id) => this.#swaps.ids.numberOf(id)),
      counts: willRescan ? noCounts() : this.#counts,
      paused: this.#paused,
      deleting: this.#deletes.record(running),
    };
  }

  /** Why nothing is copied or compared now; null if it is. */
  get #waits(): string | null {
    if (!this.#settling) return this.#flow.hindrance;
    return this.context.hindrance(this.#copies || this.request.repair) ?? SETTLING;
  }

  snapshot(): JobSnapshot {
    const { kind, repair, dryRun, sample, automatic } = this.request;
    const seconds = Math.max(0.001, (monotonicMs() - this.#since) / 1000);
    const { seen, scanned } = this.#counts;
    const moves = this.running && this.#paused === null;
    const rate = (from: number, to: number): number => (moves ? (to - from) / seconds : 0);
    const scanRate = rate(this.#scannedBefore, scanned);
    const total = this.#state === 'done' ? scanned : Math.max(this.#total, scanned);
    return {
      kind,
      repair,
      dryRun,
      sample,
      automatic,
      workloads: this.#workloads.map(({ name }) => name),
      state: this.#state,
      reason: this.running ? (this.#held ?? this.#waits ?? this.#reason) : this.#reason,
      limits: this.limits,
      paused: this.running ? this.#paused : null,
      startedAt: this.#startedAt,
      endedAt: this.#endedAt,
      total,
      ...this.#counts,
      keysPerSecond: rate(this.#before, seen),
      etaSeconds: scanRate > 0 && scanned < total ? (total - scanned) / scanRate : null,
      failures: this.#failures,
      examples: this.#examples,
    };
  }
}

const isFinal = (error: unknown): boolean =>
  error instanceof Halt || error instanceof ScanError || error instanceof RoomError;
