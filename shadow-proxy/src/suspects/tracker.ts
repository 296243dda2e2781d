/**
 * Decides which keys become suspects by what happens on the lanes, and which commands depend on a suspect.
 *
 * Room: suspects: keys that may differ between the servers: why, since when, and which keys depend on them.
 * Called by: copy, stages, health, shard.
 * Calls: io, resp, route, command, compare, telemetry, storage, upstream, script, pipeline.
 */
import { Command } from '../command/command.js';
import { READS, WRITES } from '../command/keys.js';
import type { Journal } from '../storage/journal.js';
import { keyId, type Suspect, type Suspects } from './suspects.js';
import { argumentsOf } from '../resp/decode.js';
import type { Workload } from '../route/router.js';
import type { Sequencer } from '../pipeline/sequencer.js';
import { NOT_SENT, SPREAD, type ChunkedCopy, type SuspectKeys } from '../pipeline/suspicion.js';
import { swappedBy } from '../pipeline/swaps.js';
import type { Operation } from '../pipeline/operation.js';
import { Script } from '../script/catalog.js';

/** Keys about which both servers are being asked. */
interface Asking {
  /** How many differences have no verdict yet. */
  readonly undecided: number;
  asksAbout(id: string): boolean;
  /** The authority has run a write of the key, or may have, and the mirror is not sent it. */
  written(id: string): void;
  keysAsked(): Iterable<{ readonly db: number; readonly key: Buffer }>;
}

const ABOUT_TTL: ReadonlySet<string> = new Set(['ttl-lag', 'ttl-unknown', 'expiry-edge']);

export interface SuspectTrackerOptions {
  readonly sequencer: Pick<Sequencer, 'router' | 'table' | 'scripts' | 'keys'>;
  readonly suspects: Suspects;
  readonly adjudicator: Asking;
  readonly journal: Pick<Journal, 'noteKey' | 'noteWorkload' | 'noteEverything' | 'noteHidden'>;
}

export class SuspectTracker implements SuspectKeys {
  /** Chunked copies by `keyId`; all their keys are suspects. */
  readonly chunked = new Map<string, ChunkedCopy>();

  constructor(private readonly by: SuspectTrackerOptions) {}

  /** Whether anything is suspect. */
  get any(): boolean {
    const { suspects, adjudicator } = this.by;
    return suspects.size !== 0 || adjudicator.undecided !== 0 || suspects.workloads.count !== 0;
  }

  /**
   * Notes in the journal that the command at `start` of the frame is about to be sent, with the keys that it writes.
   */
  note(db: number, frame: Buffer, start: number): void {
    const { journal } = this.by;
    const { keys } = this.by.sequencer;
    const command = new Command(frame, start);
    if (!keys.eachWritten(db, command, (db, key) => journal.noteKey(db, key, 0, key.length))) journal.noteEverything();
    else if (keys.specOf(frame, start)?.handling === 'script' && this.#mayHide(command.args)) journal.noteHidden();
  }

  /** Whether the script with these arguments may write keys that it neither declares nor names. */
  #mayHide(args: readonly Buffer[]): boolean {
    const { scripts, table } = this.by.sequencer;
    if (scripts.find(args)?.writesNothing(table) === true) return false;
    return scripts.undeclared(args, table).writes?.length !== 0;
  }

  // ── what becomes a suspect ──────────────────────────────────────────────────────────────────────────────────

  key(db: number, key: Buffer, reason: string, script: string | null = null): void {
    this.#mark(db, key, reason, script, null);
  }

  named(db: number, key: Buffer, reason: string): void {
    this.#mark(db, key, reason, null, false);
  }

  /** A key that a client has written, or may have written. */
  #written(db: number, key: Buffer, reason: string, script: string | null = null): void {
    this.#mark(db, key, reason, script, true);
  }

  #mark(db: number, key: Buffer, reason: string, script: string | null, written: boolean | null): void {
    const workload = this.by.sequencer.router.match(key, 0, key.length);
    if (!workload.position.rule(key, 0, key.length).mirrorsWrites) return;
    if (this.chunked.size > 0) this.chunked.get(keyId(db, key))?.suspected(reason);
    if (this.by.adjudicator.undecided > 0 && NOT_SENT.has(reason)) this.by.adjudicator.written(keyId(db, key));
    this.by.suspects.mark(db, key, workload, reason, script, written);
  }

  /** All keys that the operation wrote, or may have written, become suspects. */
  operation(operation: Operation, reason: string): void {
    if (operation.bundle?.keys) {
      for (const key of operation.bundle.keys) this.#written(operation.db, key, reason);
      return;
    }
    const { batch } = operation;
    if (batch !== null) {
      for (const [i, command] of batch.commands.entries())
        if (batch.writes[i]) this.command(operation.db, command, reason);
      return;
    }
    this.command(operation.db, operation.original, reason);
  }

  /** The keys of the command frame at `start` become suspects. */
  frame(db: number, frame: Buffer, start: number, reason: string): void {
    this.command(db, new Command(frame, start), reason);
  }

  command(db: number, command: Command, reason: string): void {
    const { keys } = this.by.sequencer;
    const { frame, start } = command;
    const isScript = keys.specOf(frame, start)?.handling === 'script';
    // Only keys that both servers have can differ in their time to live.
    if (isScript && !ABOUT_TTL.has(reason)) return this.script(db, command, reason);
    if (!keys.eachWritten(db, command, (db, key) => this.#written(db, key, reason))) this.hidden(reason);
  }

  /**
   * The keys that a script or function wrote become suspects: its declared keys, or, without any, those that its text
   * names. If it may write other keys, every workload becomes suspect: a script that declares a key of one workload may
   * write to another's.
   */
  script(db: number, command: Command, reason: string): void {
    const { scripts, table, keys } = this.by.sequencer;
    const { args } = command;
    const routine = scripts.find(args);
    if (routine?.writesNothing(table) === true) return;
    const title = scripts.titleOf(args);
    keys.eachOf(command, (key, access) => {
      if ((access & WRITES) !== 0) this.#written(db, key, reason, title);
    });
    const { writes } = scripts.undeclared(args, table);
    if (args[2]?.toString('latin1') === '0') {
      if (writes === null) this.hidden(reason);
      return;
    }
    // A function's keys are all those that its library names.
    if (routine !== undefined && !(routine instanceof Script))
      for (const key of writes ?? []) this.#written(db, key, reason, title);
    const trusted = routine instanceof Script ? writes?.length === 0 : routine !== undefined && writes !== null;
    if (!trusted) this.hidden(reason);
  }

  /** A write whose keys are unknown: every workload that is written twice becomes suspect. */
  hidden(reason: string): void {
    for (const workload of this.by.sequencer.router.workloads) {
      if (!workload.position.whole || workload.position.keylessRule.mirrorsWrites)
        this.#workload(workload, `a write with unknown keys (${reason})`);
    }
  }

  #workload(workload: Workload, why: string): void {
    const { workloads } = this.by.suspects;
    const known = workloads.of(workload) !== null;
    workloads.mark(workload, why);
    if (!known) this.by.journal.noteWorkload(workload.name, why);
  }

  /**
   * A key that is a suspect in one of the two databases of a SWAPDB becomes a suspect in the other, too: when the
   * authority has swapped them, and again when the mirror has, because of what was found meanwhile about earlier
   * commands.
   */
  swapped(frame: Buffer, start: number): void {
    const swapped = swappedBy(argumentsOf(frame, start));
    for (const { db, key } of [...this.by.suspects.all(), ...this.by.adjudicator.keysAsked()]) {
      if (swapped.includes(db)) for (const each of swapped) this.key(each, key, 'swapped');
    }
  }

  // ── what depends on one ─────────────────────────────────────────────────────────────────────────────────────

  /**
   * Whether the command at `start` of the frame reads, or may read, a suspect: then the keys that it writes become
   * suspects, too. A copy that is already in the order makes the key equal for later commands.
   */
  isReadBy(db: number, frame: Buffer, start: number): boolean {
    return this.#touchedBy(db, new Command(frame, start), READS, (suspect) => suspect.copied !== suspect.generation);
  }

  isWhole(workload: Workload): boolean {
    return this.by.suspects.workloads.of(workload) !== null;
  }

  /** Whether one of the keys of the command at `start` of the frame is, or may be, a suspect. */
  isIn(db: number, frame: Buffer, start: number): boolean {
    return this.#touchedBy(db, new Command(frame, start), READS | WRITES, () => true);
  }

  /**
   * Suspicion spreads. The write that the mirror confirms now may have read a key that became a suspect only after the
   * write was sent. The keys that it wrote are copied.
   */
  spread(operation: Operation): void {
    const { spec, batch, db } = operation;
    if (spec?.name === 'swapdb') return this.swapped(operation.frame, operation.start);
    if (batch === null) {
      if (spec?.derives === true && this.#touchedBy(db, operation.original, READS, () => true))
        this.operation(operation, SPREAD);
      return;
    }
    for (const [i, command] of batch.commands.entries()) {
      if (batch.derives[i] && this.#touchedBy(db, command, READS, () => true)) this.command(db, command, SPREAD);
    }
  }

  #touchedBy(db: number, command: Command, accesses: number, counts: (suspect: Suspect) => boolean): boolean {
    if (!this.any) return false;
    const { suspects, adjudicator } = this.by;
    const { router, keys } = this.by.sequencer;
    let found = false;
    const suspect = (id: string): boolean => {
      const suspect = suspects.get(id);
      return (suspect !== undefined && counts(suspect)) || adjudicator.asksAbout(id);
    };
    const all = keys.eachPlaced(db, command, (placed, key, access) => {
      if (found || (access & accesses) === 0) return;
      found = suspect(keyId(placed, key)) || this.isWhole(router.match(key, 0, key.length));
    });
    return found || !all;
  }
}
