/**
 * What a mirror's replies mean: compared and matched, accepted, never confirmed, never sent. If a reply does not show
 * what happened, the operation's keys become suspects, or the comparison counts as inconclusive.
 */
import { increment, type Counters } from '../telemetry/workload-counters.js';
import type { CommandTable } from '../command/table.js';
import type { Scripts } from '../script/catalog.js';
import type { MirrorLane } from './mirror.js';
import { PROXY_FAILED, type Failures } from './failures.js';
import type { MirrorEvents, RefusedFrame } from './mirror-events.js';
import { TTL_TOLERANCE_MS, WRITE, type Operation } from './operation.js';
import type { ExpiryEdges, SuspectKeys, Verdicts } from './suspicion.js';

/** What confirmations need of the sequencer. */
export interface ConfirmationsContext {
  readonly counters: Counters;
  readonly scripts: Scripts;
  readonly table: Pick<CommandTable, 'byName'>;
  readonly suspects: SuspectKeys;
  readonly verdicts: Verdicts;
  readonly expiry: ExpiryEdges;
  readonly failures: Failures;
  mirrorOf(operation: Operation): MirrorLane;
}

/** The confirmations of one mirror. */
export class Confirmations implements MirrorEvents {
  #droppedCount = 0;

  /**
   * @param connected is called when the mirror is connected or disconnected
   * @param database is called when the mirror refuses effects in a database (`why`), or accepts them again (null)
   */
  constructor(
    private readonly context: ConfirmationsContext,
    readonly connected: (up: boolean) => void,
    readonly database: (db: number, why: string | null) => void,
  ) {}

  /** Effects dropped because the queue was full, since the start. */
  get droppedEffects(): number {
    return this.#droppedCount;
  }

  matched(operation: Operation, now: number): void {
    const counters = this.context.counters.of(operation.workload);
    counters.compared++;
    counters.matched++;
    this.accepted(operation, now);
  }

  differs(operation: Operation, buffer: Buffer, start: number, end: number, now: number): void {
    const { expiry, verdicts } = this.context;
    // A key that may just have expired on one side becomes a suspect before its replies are compared.
    if (operation.follow === WRITE) expiry.confirmed(operation, true);
    verdicts.differs(operation, buffer, start, end, now);
    if (operation.follow === WRITE) this.#outcome(operation, now);
  }

  accepted(operation: Operation, now: number): void {
    if (operation.follow !== WRITE) return;
    this.#outcome(operation, now);
    this.context.expiry.confirmed(operation, false);
  }

  unconfirmed(operation: Operation): void {
    if (operation.follow === WRITE) this.#notApplied(operation, 'unconfirmed');
    else increment(this.context.counters.of(operation.workload).inconclusive, 'mirror-lost');
  }

  dropped(operation: Operation): void {
    this.#droppedCount++;
    if (operation.follow === WRITE) this.#notApplied(operation, 'queue-full');
    else increment(this.context.counters.of(operation.workload).inconclusive, 'queue-full');
    operation.confirmed?.(null);
  }

  refused(operation: Operation, reason: RefusedFrame): void {
    if (operation.follow === WRITE) this.#notApplied(operation, reason);
    else increment(this.context.counters.of(operation.workload).inconclusive, reason);
  }

  failed(operation: Operation, thrown: unknown): void {
    this.context.failures.at(operation, thrown);
    if (operation.follow === WRITE) this.#notApplied(operation, PROXY_FAILED);
    else increment(this.context.counters.of(operation.workload).inconclusive, PROXY_FAILED);
  }

  /** Checks what a confirmed write may have left behind: a wrong time to live, or data taken from a suspect. */
  #outcome(operation: Operation, now: number): void {
    const { suspects, verdicts } = this.context;
    if (now - operation.answeredAt + operation.stalledMs > TTL_TOLERANCE_MS) verdicts.late(operation, now);
    if (suspects.any) suspects.spread(operation);
  }

  /** An effect, or the text of a script, may not have reached the mirror. */
  #notApplied(operation: Operation, reason: string): void {
    const { scripts, suspects, table } = this.context;
    const { batch } = operation;
    const specs = batch === null ? [operation.spec] : batch.names.map((name) => table.byName(name));
    if (specs.some((spec) => spec?.handling === 'script' || spec?.aboutCode === true))
      scripts.forget(this.context.mirrorOf(operation).server);
    const isMessage = specs.map((spec) => spec?.handling === 'publish');
    for (const each of isMessage)
      if (each) increment(this.context.counters.of(operation.workload).inconclusive, 'publish-lost');
    if (isMessage.includes(false)) suspects.operation(operation, reason);
  }
}
