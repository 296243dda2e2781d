/** The report of a job: one JSON line for each key that differs, or is left out, redacted as the ledger is. */
import { writeFile } from '../../io/files.js';
import { randomBytes } from '../../io/random.js';
import { pttlOf } from '../../resp/key-life.js';
import type { LedgerPlan } from '../../plan/plan.js';
import type { ReportedKey } from './chooser.js';
import { digestOf } from '../verify/digest.js';
import type { CopiedKey, KeyDump } from '../key/key-dump.js';
import type { LargeDifference, Summary } from '../large/verify.js';
import { decodeDump } from '../rdb/transcode.js';
import type { Difference } from '../verify/verifier.js';

export class Report {
  /** The size of the file; Infinity once the disk is full. */
  #bytes = 0;
  readonly #salt = randomBytes(16);

  constructor(
    readonly path: string,
    private readonly limits: () => Pick<LedgerPlan, 'maxBytes'>,
    /** A key as it may be written down. */
    private readonly nameOf: (key: Buffer) => string,
    /** The disk did not take a line: this job lists no more. Called once for a job. */
    private readonly failed: (problem: Error) => void,
  ) {}

  /** @throws {Error} if the disk does not take it */
  begin(): void {
    this.#bytes = 0;
    writeFile(this.path, 'w', '');
  }

  /** What does not fit into the file is counted by the job all the same. */
  add({ db, key, workload }: CopiedKey, { kind, authority, mirror }: Difference | LargeDifference): void {
    this.#write({
      kind,
      workload: workload.name,
      db,
      key: this.nameOf(key),
      authority: describe(authority),
      mirror: describe(mirror),
    });
  }

  /**
   * A key that is left alone, who holds it, and the digest of what: equal ones are equal values, as long as the process
   * lives.
   */
  list({ kind, workload, db, key, holders }: ReportedKey): void {
    const held = Object.entries(holders).map(([name, each]) => [name, each && this.#digested(each)]);
    this.#write({
      kind,
      workload: workload.name,
      db,
      key: this.nameOf(key),
      ...(held.length > 0 && { holders: Object.fromEntries(held) as object }),
    });
  }

  #digested(dump: KeyDump): object | null {
    try {
      return dump.payload && { ...describe(dump), digest: digestOf(dump.payload, this.#salt) };
    } catch (error) {
      return { problem: (error as Error).message };
    }
  }

  #write(entry: object): void {
    if (this.#bytes > this.limits().maxBytes) return;
    const line = `${JSON.stringify(entry)}\n`;
    this.#bytes += line.length;
    try {
      writeFile(this.path, 'a+', line);
    } catch (problem) {
      this.#bytes = Infinity;
      this.failed(problem as Error);
    }
  }
}

/**
 * Type, bytes of the DUMP payload (or length, of what is too large for that), and time to live in ms (-1 for none);
 * null if the key is not there.
 */
function describe(content: KeyDump | Summary | null): object | null {
  if (content === null) return null;
  if (!('payload' in content)) return { type: content.type, length: content.length, pttl: pttlOf(content.life) };
  return (
    content.payload && {
      type: decodeDump(content.payload).type,
      bytes: content.payload.length,
      pttl: pttlOf(content.life),
    }
  );
}
