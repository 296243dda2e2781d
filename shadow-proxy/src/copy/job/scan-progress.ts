/**
 * What a job knows of its scan: the place, the counts, and the keys that were found. It outlives a pass that fails; a
 * scan that starts again begins with nothing.
 */
import { noCounts, type JobCounts, type JobRecord } from '../../storage/job-file.js';
import type { JobDifference, JobFailure } from '../../telemetry/snapshot.js';
import type { Sequencer } from '../../pipeline/sequencer.js';
import { WrittenKeys } from '../repair/written-keys.js';
import type { ReportedKey } from './chooser.js';
import { inDatabases } from './scanner.js';

/** How many keys that failed, and how many that differ, are listed one by one. */
const MAX_LISTED = 20;
/** How many keys of a kind that is no difference are listed in the report. */
const MAX_REPORTED = 1_000;

const NO_DIFFERENCES: ReadonlySet<string> = new Set(['other-shard', 'no-workload', 'miscounted']);

export interface ScanProgressContext {
  readonly sequencer: Sequencer;
  /** Called with each key that the job does not copy, for the report. */
  readonly reportKey: (key: ReportedKey) => void;
  readonly redact: (key: Buffer) => string;
}

export class ScanProgress {
  /** The place of the scan, with databases by their ids; null at the start. */
  at: JobRecord['at'];
  counts: JobCounts;
  /** The keys of the scanned servers that the progress counts. */
  total = 0;
  readonly failures: JobFailure[] = [];
  readonly examples: JobDifference[] = [];
  /** Large keys that the scan of the authority has met, by the ids of their databases: they are copied, once. */
  readonly largeKeys = new Set<string>();
  /** What clients write while the job runs; null before it begins, and if it continues another process's job. */
  written: WrittenKeys | null = null;

  constructor(
    private readonly context: ScanProgressContext,
    resumed: JobRecord | null,
  ) {
    this.at = resumed?.at ? this.#placed(resumed.at, (db) => context.sequencer.swaps.ids.idOf(db)) : null;
    this.counts = resumed?.counts ?? noCounts();
  }

  /** The place of the scan, with databases by their present numbers. */
  get recordedPlace(): JobRecord['at'] {
    const { ids } = this.context.sequencer.swaps;
    return this.at === null ? null : this.#placed(this.at, (id) => ids.numberOf(id));
  }

  #placed(at: NonNullable<JobRecord['at']>, to: (db: number) => number): JobRecord['at'] {
    return { ...at, checkpoint: at.checkpoint && inDatabases(at.checkpoint, to) };
  }

  noteWrites(): void {
    this.written = new WrittenKeys(this.context.sequencer);
  }

  /** Begins again with the first key. */
  restart(): void {
    this.at = null;
    this.counts = noCounts();
    this.largeKeys.clear();
    this.failures.length = 0;
    this.examples.length = 0;
    this.written?.end();
    this.noteWrites();
  }

  addFailure(db: number, key: Buffer, why: string): void {
    if (this.failures.length < MAX_LISTED) this.failures.push({ db, key: this.context.redact(key), why });
  }

  addExample(db: number, key: Buffer, kind: JobDifference['kind']): void {
    if (this.examples.length < MAX_LISTED) this.examples.push({ db, key: this.context.redact(key), kind });
  }

  /** Counts a key that the job does not copy. */
  report(key: ReportedKey): void {
    const { differences, listed } = this.counts;
    const isDifference = !NO_DIFFERENCES.has(key.kind);
    const counts = isDifference ? differences : listed;
    const count = (counts[key.kind] = (counts[key.kind] ?? 0) + 1);
    if (isDifference || count <= MAX_REPORTED) this.context.reportKey(key);
  }

  end(): void {
    this.written?.end();
  }
}
