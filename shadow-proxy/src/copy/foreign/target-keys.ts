/**
 * What a target holds of a workload before the kit first writes it there. The whole target is scanned on a connection
 * of its own, page by page, and no key is changed.
 *
 *   scan(target) ─▶ keys of the workload, of this shard ─▶ still there? ─▶ found ─▶ on the source, too? ─▶ onSource
 *
 * Room: copy/foreign: keys on the target that the kit did not write.
 * Called by: copy/job, stages, shard.
 * Calls: io, route, pipeline, copy/job, copy/key, copy/large.
 */
import { monotonicMs } from '../../io/clock.js';
import { sleep } from '../../io/timers.js';
import type { Sequencer } from '../../pipeline/sequencer.js';
import { isPart } from '../../route/counter-keys.js';
import type { Workload } from '../../route/router.js';
import { isTemporary } from '../large/temporary.js';
import { Scanner, type ScannedKey } from '../job/scanner.js';
import type { SharedTargetContext } from './shared-target.js';

export interface TargetKeys {
  /** Keys of the workload on the target that the kit is not known to have written; a lower bound unless `complete`. */
  readonly found: number;
  /** How many of them the source has, too: a copy overwrites these. The others are foreign keys. */
  readonly onSource: number;
  /** Some of them, redacted. */
  readonly examples: readonly string[];
  /** Keys of the target, of any workload, that were looked at, and about how many it has. */
  readonly looked: number;
  readonly of: number;
  /** Whether all were looked at. */
  readonly complete: boolean;
}

export interface TargetKeysContext extends SharedTargetContext {
  readonly sequencer: Sequencer;
  readonly redact: (key: Buffer) => string;
}

/** A count that takes longer goes on, and is given to the next who asks. */
const WAIT_MS = 5_000;
/** A count that took so long is not made again for twice as long. */
const LONG_MS = 1_000;
const EXAMPLES = 3;

export class TargetKeysCounter {
  readonly #counts = new Map<Workload, Count>();
  #closed = false;

  constructor(private readonly context: TargetKeysContext) {}

  /**
   * Counts, for at most `waitMs`: what takes longer goes on behind this, and is not `complete` yet.
   * @throws {ScanError} if a server refuses
   * @throws {Error} if a connection is lost
   */
  async of(workload: Workload, waitMs = WAIT_MS): Promise<TargetKeys> {
    let count = this.#counts.get(workload);
    if (count === undefined || count.isOver) {
      count = new Count(this.context, workload, () => this.#closed);
      this.#counts.set(workload, count);
    }
    await Promise.race([count.ended, sleep(waitMs, undefined, { ref: false })]);
    return count.result;
  }

  /** What was found last, as far as it has come; null if nobody asked. */
  last(workload: Workload): TargetKeys | null {
    return this.#counts.get(workload)?.sum ?? null;
  }

  forget(workload: Workload): void {
    this.#counts.delete(workload);
  }

  close(): void {
    this.#closed = true;
  }
}

class Count {
  readonly ended: Promise<void>;
  readonly #examples: string[] = [];
  readonly #began = monotonicMs();
  #endedAt: number | null = null;
  #problem: Error | null = null;
  #found = 0;
  #onSource = 0;
  #looked = 0;
  #of = 0;

  constructor(
    private readonly context: TargetKeysContext,
    private readonly workload: Workload,
    private readonly closed: () => boolean,
  ) {
    this.ended = this.#run()
      .catch((problem: Error) => void (this.#problem = problem))
      .then(() => void (this.#endedAt = monotonicMs()));
  }

  /** Whether the count is out of date: the next caller has it counted again. */
  get isOver(): boolean {
    if (this.#endedAt === null) return false;
    const took = this.#endedAt - this.#began;
    return this.#problem !== null || took < LONG_MS || monotonicMs() - this.#endedAt > 2 * took;
  }

  /** @throws what stopped it */
  get result(): TargetKeys {
    if (this.#problem !== null) throw this.#problem;
    return this.sum;
  }

  get sum(): TargetKeys {
    const complete = this.#endedAt !== null && this.#problem === null;
    const examples = this.#examples;
    return {
      found: this.#found,
      onSource: this.#onSource,
      examples,
      looked: this.#looked,
      of: Math.max(this.#of, this.#looked),
      complete,
    };
  }

  async #run(): Promise<void> {
    const { sequencer, readers, redact } = this.context;
    const { target } = sequencer.servers;
    this.#of = await target.keyCount();
    if (this.#of === 0) return;
    const { swaps } = sequencer;
    const scanner = new Scanner(target, swaps);
    try {
      for await (const { id, keys } of scanner.pages(null)) {
        if (this.closed()) throw new Error('the proxy is stopping');
        this.#looked += keys.length;
        const { mine, onlyThere, absent } = await swaps.undisturbed(async () => {
          const db = swaps.ids.numberOf(id);
          const mine = await this.#mine(db, keys);
          const onlyThere = new Set(await readers.source.absent(db, mine));
          // The key may have expired since the scan.
          return { mine, onlyThere, absent: new Set(await readers.target.absent(db, mine)) };
        });
        for (const scanned of mine) {
          if (absent.has(scanned)) continue;
          this.#found++;
          if (!onlyThere.has(scanned)) this.#onSource++;
          if (this.#examples.length < EXAMPLES) this.#examples.push(redact(scanned.key));
        }
      }
    } finally {
      scanner.close();
    }
  }

  /**
   * Keys of the workload and of this shard; of those that no shard of a shared target owns, those that its source alone
   * has: it copies them.
   */
  async #mine(db: number, keys: readonly ScannedKey[]): Promise<ScannedKey[]> {
    const { sequencer, owners, readers, neighbours } = this.context;
    const mine: ScannedKey[] = [];
    let nobodys: ScannedKey[] = [];
    for (const scanned of keys) {
      const { key } = scanned;
      if (isPart(key) || isTemporary(key) || sequencer.router.byPattern(key) !== this.workload) continue;
      const owner = owners === null ? 'mine' : owners.of(key, 0, key.length);
      if (owner === 'mine') mine.push(scanned);
      else if (owner === 'nobody' && owners!.mine === null) nobodys.push(scanned);
    }
    if (nobodys.length === 0) return mine;
    const absent = new Set(await readers.source.absent(db, nobodys));
    nobodys = nobodys.filter((scanned) => !absent.has(scanned));
    for (const neighbour of neighbours) nobodys = await neighbour.absent(db, nobodys);
    return [...mine, ...nobodys];
  }
}
