/**
 * What was written since an authority restarted or was replaced. On everything else its mirror is right: it has
 * confirmed what the authority acknowledged before, and nothing came after that.
 */
import type { Operation } from '../../pipeline/operation.js';
import type { Sequencer } from '../../pipeline/sequencer.js';
import { keyId, type Suspect, type Suspects } from '../../suspects/suspects.js';
import type { Workload } from '../../route/router.js';
import { otherSide, type Side } from '../../route/stage.js';
import { eachWrittenKey } from './written-keys.js';

/** More keys are not remembered: then all of them may have been written. */
const MAX_KEYS = 1_000_000;
/** Suspicions that come from replies of reads, too; those of writes are known by their order. */
const OF_READS: ReadonlySet<string> = new Set(['mismatch', 'inconclusive', 'evicted']);

export class WritesSinceRestart {
  readonly #written = new Set<string>();
  /** What was on its way to the mirror at that time, and not judged yet. */
  readonly #pending = new Set<string>();
  #everything = false;
  readonly #unlisten: () => void;

  /** What is suspect already is not known to be right on the mirror. */
  constructor(
    private readonly sequencer: Sequencer,
    private readonly suspects: Suspects,
    authority: Side,
  ) {
    const mirror = sequencer.mirrors[otherSide(authority)];
    for (const { db, key } of suspects.all()) this.#add(db, key);
    mirror.eachQueued((operation) => {
      eachWrittenKey(sequencer, operation, (db, key) => this.#pending.add(keyId(db, key)));
      return true;
    });
    this.#unlisten = mirror.listen((operation) => this.#ordered(operation));
  }

  /** A key is suspect (again). */
  marked({ db, key, reason }: Suspect): void {
    if (!OF_READS.has(reason) || this.#pending.has(keyId(db, key))) this.#add(db, key);
  }

  /** Whether the mirror has what the key was before the authority was lost. */
  isUntouched(db: number, key: Buffer, workload: Workload): boolean {
    return !this.#everything && this.suspects.workloads.of(workload) === null && !this.#written.has(keyId(db, key));
  }

  end(): void {
    this.#unlisten();
  }

  #add(db: number, key: Buffer): void {
    if (this.#written.size < MAX_KEYS) this.#written.add(keyId(db, key));
    else this.#everything = true;
  }

  #ordered(operation: Operation): void {
    if (!eachWrittenKey(this.sequencer, operation, (db, key) => this.#add(db, key))) this.#everything = true;
  }
}
