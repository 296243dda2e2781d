/**
 * The keys of a page that a job is about: those whose authority the server is, and those that theirs does not have.
 * What is nobody's, another shard's, or in no workload, is reported.
 */
import type { Sequencer } from '../../pipeline/sequencer.js';
import type { JobRequest } from '../../storage/job-file.js';
import { isPart } from '../../route/counter-keys.js';
import type { Workload } from '../../route/router.js';
import { hashSlot, SLOTS } from '../../route/slot.js';
import { otherSide, type Side } from '../../route/stage.js';
import { isBeingBuilt, isTemporary } from '../large/temporary.js';
import type { ScannedKey } from './scanner.js';
import {
  claim,
  reportUnowned,
  type Holders,
  type ForeignKind,
  type SharedTargetContext,
} from '../foreign/shared-target.js';

export interface ChooserContext extends SharedTargetContext {
  readonly sequencer: Sequencer;
}

/**
 * - `contested`: it is unknown whose it is: two sources hold it.
 * - `undeclared`: this source has it, and no shard by the plan: it does not move.
 * - `unowned`: the target has it, and no shard.
 * - `other-shard`: this source has it, and by the plan it is another shard's.
 * - `no-workload`: it falls to `default`.
 */
export type ReportedKind = ForeignKind | 'other-shard' | 'no-workload' | 'miscounted';

export interface ReportedKey {
  readonly kind: ReportedKind;
  readonly workload: Workload;
  readonly db: number;
  readonly key: Buffer;
  readonly holders: Holders;
}

export interface Chosen {
  /** Keys whose authority is the scanned server. */
  readonly mine: readonly ScannedKey[];
  /** Keys whose authority is the other server, which does not have them. */
  readonly extra: readonly ScannedKey[];
  /**
   * Of which that is the other one, which has them, and clients wrote them during the scan. A key that the scan of the
   * authority did not meet, because it had expired there, may be one that was written again behind it: its mirror still
   * has what was written to the old one.
   */
  readonly writtenMeanwhile: readonly ScannedKey[];
}

/** Nothing of it is copied, or its size is asked then. */
const extraKey = (scanned: ScannedKey): ScannedKey => ({ ...scanned, large: false, extra: true });

export class Chooser {
  readonly #reportsDefault: boolean;

  constructor(
    private readonly context: ChooserContext,
    private readonly request: JobRequest,
    private readonly workloads: readonly Workload[],
    /** Whether clients may have written the key since the scan began. */
    private readonly written: (db: number, key: Buffer) => boolean,
    /** With which slot a sample begins. */
    private readonly firstSlot: number,
    private readonly report: (key: ReportedKey) => void,
  ) {
    const { router } = context.sequencer;
    this.#reportsDefault =
      router.workloads.length > 1 && (request.workloads === null || request.workloads.includes('default'));
  }

  async choose(side: Side, db: number, keys: readonly ScannedKey[]): Promise<Chosen> {
    const { sequencer, owners, readers } = this.context;
    const { router } = sequencer;
    const { chunked } = sequencer.suspects;
    const [mine, others, nobodys]: ScannedKey[][] = [[], [], []];
    for (const scanned of keys) {
      const { key } = scanned;
      // Not a client's data: a part of a counter, or the temporary key of a chunked copy, perhaps another shard's.
      if (isPart(key) || (isTemporary(key) && (owners !== null || isBeingBuilt(key, chunked)))) continue;
      if (!this.#isSampled(key)) continue;
      const workload = owners === null ? router.match(key, 0, key.length) : router.byPattern(key);
      const owner = owners === null ? 'mine' : owners.of(key, 0, key.length);
      if (owner !== 'mine' && owners!.partitioned) continue;
      const { authority, mirrorsWrites } = workload.position.rule(key, 0, key.length);
      if (workload === router.default && authority === side && (owner === 'mine' || side === 'source'))
        this.#tellOfDefault(db, key);
      if (!mirrorsWrites || !this.workloads.includes(workload)) continue;
      if (owner === 'nobody') nobodys.push(scanned);
      else if (owner === 'another') this.#tellOfOther(side, db, key);
      else if (authority === side) mine.push(scanned);
      else others.push(scanned);
    }
    // What an authority has lost is with its mirror.
    if (this.request.kind === 'restore') return { mine: [], extra: others.map(extraKey), writtenMeanwhile: [] };
    if (nobodys.length > 0) mine.push(...(await this.#claimed(side, db, nobodys)));
    const extra = await readers[otherSide(side)].absent(db, others);
    const absent = new Set(extra);
    const onBoth = others.filter((scanned) => !absent.has(scanned));
    return { mine, extra: extra.map(extraKey), writtenMeanwhile: await this.#writtenMeanwhile(side, db, onBoth) };
  }

  /** Keys that the mirror and the authority have. What is not suspect is the same on both, whenever it expires. */
  async #writtenMeanwhile(mirror: Side, db: number, keys: readonly ScannedKey[]): Promise<ScannedKey[]> {
    const { router, suspects, lanes } = this.context.sequencer;
    const unknown = keys.filter(({ key }) => suspects.isWhole(router.match(key, 0, key.length)));
    if (unknown.length === 0) return [];
    // A write that the authority has run, as was just seen, is noted when it is answered.
    await lanes[otherSide(mirror)].quiet();
    return unknown.filter(({ key }) => this.written(db, key));
  }

  async #claimed(side: Side, db: number, keys: readonly ScannedKey[]): Promise<ScannedKey[]> {
    const report = (kind: ForeignKind, _db: number, key: Buffer, holders: Holders): void =>
      this.#reportKey(kind, db, key, holders);
    if (side === 'source') return claim(this.context, db, keys, report);
    await reportUnowned(this.context, db, keys, report);
    return [];
  }

  #tellOfDefault(db: number, key: Buffer): void {
    if (this.#reportsDefault) this.#reportKey('no-workload', db, key);
  }

  #tellOfOther(side: Side, db: number, key: Buffer): void {
    // On the target it is where it belongs.
    if (side === 'source') this.#reportKey('other-shard', db, key);
  }

  #reportKey(kind: ReportedKind, db: number, key: Buffer, holders: Holders = {}): void {
    this.report({ kind, workload: this.context.sequencer.router.byPattern(key), db, key, holders });
  }

  /** By hash slot, other ones each time. */
  #isSampled(key: Buffer): boolean {
    const { sample } = this.request;
    if (sample >= 100) return true;
    return (hashSlot(key, 0, key.length) - this.firstSlot + SLOTS) % SLOTS < (sample / 100) * SLOTS;
  }
}
