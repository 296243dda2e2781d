/**
 * One pass of a job over the keys of both servers, from a place on: it scans page after page, chooses the keys of the
 * job, and hands them to the scheduler. It ends with the last key, or with the first problem.
 *
 *   scan(side) ─▶ page ─▶ choose: keys of the wanted workloads ─▶ authority here? ── yes ─▶ scheduler
 *                                                          └─ no: deleted? ── yes ─▶ scheduler (a copy deletes it)
 *
 * Both servers are scanned: the second scan finds what only the mirror has. Databases are ids here
 * (`pipeline/swaps.ts`), and a page that was read while a SWAPDB was in progress is read again.
 */
import type { JobRecord, JobRequest } from '../../storage/job-file.js';
import { keyId } from '../../suspects/suspects.js';
import type { Workload } from '../../route/router.js';
import { otherSide, type Side } from '../../route/stage.js';
import type { Swaps } from '../../pipeline/swaps.js';
import { Chooser, type ChooserContext, type Chosen, type ReportedKey } from './chooser.js';
import type { DeleteBudget } from './delete-budget.js';
import type { RateLimiter } from './rate-limiter.js';
import { Scanner, type Checkpoint, type Page as ScannedPage, type ScannedKey } from './scanner.js';
import type { ScanProgress } from './scan-progress.js';
import type { ScanValidity } from './scan-validity.js';
import { CopyScheduler, type FlowContext } from './scheduler.js';
import { isBeingBuilt, isTemporary } from '../large/temporary.js';
import type { Thresholds } from '../large/size.js';

export interface ScanPassContext
  extends Omit<FlowContext, 'failed' | 'hindrance' | 'held' | 'mayDelete' | 'deleting' | 'recounted'>, ChooserContext {
  /** Why nothing may be copied or compared now; null if nothing forbids it. */
  readonly hindrance: (copies: boolean) => string | null;
  /** Resolves when everything that is in flight now is answered, and confirmed by the mirror. */
  readonly settle: () => Promise<void>;
  /** A key of this size or more is copied in chunks. */
  readonly large: Thresholds;
}

/** The job that makes the pass. */
export interface PassOwner {
  readonly request: JobRequest;
  readonly workloads: readonly Workload[];
  /** With which slot a sample begins. */
  readonly firstSlot: number;
  readonly pace: RateLimiter;
  readonly deletes: DeleteBudget;
  readonly progress: ScanProgress;
  readonly validity: ScanValidity;
  /** Why no key may begin, whatever the servers do; null if keys may. */
  readonly heldBecause: () => string | null;
  /** Whether the process ends: the next process continues the job. */
  readonly isSuspended: () => boolean;
  /** Called when the place of the scan has changed. */
  readonly advanced: () => void;
}

const SETTLING = 'it goes on when the mirror has confirmed what is in flight';

/** A page whose keys are under way. The scan has passed it when none of them is left. */
interface Page {
  left: number;
  /** How many keys of the page `total` counts. */
  readonly keys: number;
  /** The place of the scan after this page. */
  readonly after: JobRecord['at'];
}

/** The servers that are the authority of a key of these workloads. */
export function authoritiesOf(workloads: readonly Workload[]): Side[] {
  const sides = workloads.flatMap(({ position: { keylessRule, whole } }): Side[] =>
    whole ? [keylessRule.authority] : ['source', 'target'],
  );
  return [...new Set(sides)];
}

/** Whether the job changes the mirror. */
export const isWriting = ({ kind, dryRun, repair }: JobRequest): boolean => (kind === 'backfill' && !dryRun) || repair;

export class ScanPass {
  readonly #scheduler: CopyScheduler;
  readonly #chooser: Chooser;
  readonly #request: JobRequest;
  /** Pages that the scan has read and not passed, in its order. */
  readonly #pages: Page[] = [];
  /** What was found on the current page. */
  #reportedOfPage: ReportedKey[] = [];
  /** Whether the next scan waits for what is in flight. */
  #settling = false;

  constructor(
    private readonly context: ScanPassContext,
    private readonly job: PassOwner,
  ) {
    const { request, progress } = job;
    this.#request = request;
    this.#chooser = new Chooser(
      context,
      request,
      job.workloads,
      (db, key) =>
        !progress.largeKeys.has(keyId(this.#swaps.ids.idOf(db), key)) && (progress.written?.has(db, key) ?? true),
      job.firstSlot,
      (reported) => void this.#reportedOfPage.push(reported),
    );
    this.#scheduler = new CopyScheduler(
      {
        ...context,
        report: (key, difference) => {
          context.report(key, difference);
          progress.addExample(key.db, key.key, difference.kind);
        },
        mayDelete: (workload, key) => this.#mayDelete(workload, key),
        deleting: (workload, key) => this.#deleting(workload, key),
        hindrance: () => job.heldBecause() ?? this.#hindrance,
        held: () => job.heldBecause() !== null,
        recounted: ({ workload, db, key }) => progress.report({ kind: 'miscounted', workload, db, key, holders: {} }),
        failed: ({ db, key }, { message }) => this.#failed(db, key, message),
      },
      request,
      () => progress.counts,
      job.pace,
    );
  }

  /** Resolves when every key was handled. @throws what `halt` was given {RestartScan} {ScanError} */
  async run(): Promise<void> {
    await this.#settle();
    const sides = await this.#sides();
    const from = this.job.progress.at;
    const first = from === null ? 0 : Math.max(0, sides.indexOf(from.side));
    for (let i = first; i < sides.length; i++) {
      const then = { side: sides[i + 1] ?? sides[i], checkpoint: null };
      await this.#scanServer(sides[i], from?.side === sides[i] ? from.checkpoint : null, then);
    }
    await this.#scheduler.ended();
    if (this.#scheduler.halted !== null) throw this.#scheduler.halted;
    this.job.validity.assertCurrent();
  }

  /** Stops the pass. */
  halt(error: Error): void {
    this.#scheduler.halt(error);
  }

  /** For a pass that has failed: resolves when no key is under way. The place of the scan stays from then on. */
  async ended(): Promise<void> {
    await this.#scheduler.ended();
    this.#pages.length = 0;
  }

  /** Why nothing is copied or compared now; null if it is. */
  get waitsFor(): string | null {
    return this.#settling ? (this.#hindrance ?? SETTLING) : this.#scheduler.hindrance;
  }

  get #hindrance(): string | null {
    return this.context.hindrance(isWriting(this.#request));
  }

  get #swaps(): Swaps {
    return this.context.sequencer.swaps;
  }

  get #authorities(): Side[] {
    return authoritiesOf(this.job.workloads);
  }

  /**
   * A key that is written and deleted before a scan may be on the mirror behind it: the write waits in the mirror's
   * queue, and not each command that deletes keys is sent there (FLUSHDB, or a script that hides them). Such a command
   * makes the workload suspect, and the scan starts again. So a scan begins when what was in flight is confirmed.
   * @throws what `halt` was given
   */
  async #settle(): Promise<void> {
    const { halting } = this.#scheduler;
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

  /** The sides to scan: authorities first, then mirrors. */
  async #sides(): Promise<Side[]> {
    const { progress } = this.job;
    const authorities = this.#authorities;
    const sides: Side[] = [];
    progress.total = 0;
    for (const side of new Set<Side>([...authorities, ...authorities.map(otherSide)])) {
      const isAuthority = authorities.includes(side);
      const keys = await this.context.sequencer.servers[side].keyCount();
      const restores = this.#request.kind === 'restore';
      if (this.#isCounted(side)) progress.total += keys;
      // What an authority has lost, only its mirror has. A mirror that is empty now is scanned, too: clients write keys
      // there meanwhile, and some of these may expire on the authority before they are copied.
      if (!restores || !isAuthority || authorities.length > 1) sides.push(side);
    }
    return sides;
  }

  /** Whether the progress counts the keys of this server: an authority's, or what a restore reads from its mirror. */
  #isCounted(side: Side): boolean {
    return this.#authorities.includes(side) !== (this.#request.kind === 'restore');
  }

  async #scanServer(side: Side, from: Checkpoint | null, then: JobRecord['at']): Promise<void> {
    const { servers } = this.context.sequencer;
    const { progress, validity } = this.job;
    const { dryRun, kind } = this.#request;
    const copies = this.#authorities.includes(side) || (progress.written?.any ?? true);
    const measures = !dryRun && copies;
    const { halting } = this.#scheduler;
    const scanner = new Scanner(servers[side], this.#swaps, measures ? this.context.large : null, halting);
    try {
      const pages = scanner.pages(from);
      let coming = pages.next();
      for (;;) {
        const { done, value } = await coming;
        if (done === true) return;
        // The next page is asked for while the keys of this one are under way.
        coming = pages.next();
        coming.catch(() => undefined);
        validity.assertCurrent();
        const { id } = value;
        const { mine, extra, writtenMeanwhile, overwritten } = await this.#choose(side, value);
        for (const { key, large } of mine) if (large) progress.largeKeys.add(keyId(id, key));
        progress.counts.seen += kind === 'restore' ? extra.length : mine.length;
        progress.counts.overwritten += overwritten;
        if (dryRun) this.#countDeletes(extra);
        const keys = dryRun ? [] : [...mine, ...extra, ...writtenMeanwhile];
        const page: Page = {
          left: keys.length,
          keys: this.#isCounted(side) ? value.keys.length : 0,
          after: value.next === null ? then : { side, checkpoint: value.next },
        };
        this.#pages.push(page);
        this.#advanceCheckpoint();
        await this.#scheduler.take(id, keys, () => {
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
    }, this.#scheduler.halting);
    for (const reported of this.#reportedOfPage) this.job.progress.report(reported);
    return chosen;
  }

  /**
   * The keys without those that only the mirror had because their deletes were on the way there. What is left may be
   * foreign, and a delete of it is one of those that the operator confirmed.
   */
  async #stillExtra(mirror: Side, db: number, keys: readonly ScannedKey[]): Promise<readonly ScannedKey[]> {
    const { permissions, readers, sequencer } = this.context;
    const isOurs = ({ key }: ScannedKey): boolean => permissions.isOurs(sequencer.router.match(key, 0, key.length));
    if (this.#request.kind === 'restore' || keys.every(isOurs)) return keys;
    await this.#settle();
    const absent = new Set(await readers[mirror].absent(db, keys));
    return keys.filter((scanned) => !absent.has(scanned));
  }

  /** How many of the keys the mirror has before they are copied, and the kit is not known to have written. */
  async #overwritten(side: Side, db: number, keys: readonly ScannedKey[]): Promise<number> {
    if (this.#request.kind !== 'backfill') return 0;
    const { sequencer, permissions } = this.context;
    const uncertain = this.job.workloads.some((workload) => permissions.of(workload).mayOverwrite)
      ? keys.filter(({ key }) => permissions.of(sequencer.router.match(key, 0, key.length)).mayOverwrite)
      : [];
    if (uncertain.length === 0) return 0;
    return uncertain.length - (await this.context.readers[otherSide(side)].absent(db, uncertain)).length;
  }

  /** Whether a key that only its mirror has may be deleted. */
  #mayDelete(workload: Workload, key: Buffer): boolean {
    // A chunked copy may have begun since the key was found.
    if (isTemporary(key)) return !isBeingBuilt(key, this.context.sequencer.suspects.chunked);
    return !this.job.isSuspended() && this.job.deletes.allows(workload);
  }

  /** The key, which may be deleted, is about to be. */
  #deleting(workload: Workload, key: Buffer): void {
    if (!isTemporary(key)) this.job.deletes.spend(workload);
  }

  /** A dry run: what would become of keys that only the mirror has. */
  #countDeletes(keys: readonly ScannedKey[]): void {
    const { router } = this.context.sequencer;
    for (const { key } of keys) {
      const workload = router.match(key, 0, key.length);
      const mayDelete = this.#mayDelete(workload, key);
      if (mayDelete) this.#deleting(workload, key);
      this.job.progress.counts[mayDelete ? 'deleted' : 'keptForeign']++;
    }
  }

  #failed(db: number, key: Buffer, why: string): void {
    const { suspects, sequencer } = this.context;
    this.job.progress.addFailure(db, key, why);
    // The key alone becomes a suspect: other keys of its workload may be equal.
    const workload = sequencer.router.match(key, 0, key.length);
    if (isWriting(this.#request)) suspects.mark(db, key, workload, 'not-copied');
  }

  /** Notes how far the scan has come: behind the last page before which all are done. */
  #advanceCheckpoint(): void {
    const { progress } = this.job;
    while (this.#pages.length > 0 && this.#pages[0].left === 0) {
      const { keys, after } = this.#pages.shift()!;
      progress.counts.scanned += keys;
      progress.at = after;
    }
    this.job.advanced();
  }
}
