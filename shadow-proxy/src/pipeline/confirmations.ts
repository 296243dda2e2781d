/**
 * What a mirror's answers mean: compared and matched, accepted, never confirmed, never sent. What cannot be read from
 * an answer makes the operation's keys suspects, or is counted as inconclusive.
 */
import { increment } from '../route/router.js';
import type { Scripts } from '../script/catalog.js';
import type { MirrorLane } from './mirror.js';
import { PROXY_FAILED, type Failures } from './failures.js';
import type { MirrorEvents, RefusedFrame } from './mirror-events.js';
import { TTL_TOLERANCE_MS, WRITE, type Operation } from './operation.js';
import type { ExpiryEdges, SuspectKeys, Verdicts } from './suspicion.js';

/** The parts of the order that confirmations need. */
export interface ConfirmationsOrder {
  readonly scripts: Scripts;
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
   * @param connected is called when the mirror is connected again, or not any more
   * @param database is called when it lets effects into a database no more (`why`), or again (null)
   */
  constructor(
    private readonly order: ConfirmationsOrder,
    readonly connected: (up: boolean) => void,
    readonly database: (db: number, why: string | null) => void,
  ) {}

  /** Effects dropped because the queue was full, since the start. */
  get droppedEffects(): number {
    return this.#droppedCount;
  }

  matched(operation: Operation, now: number): void {
    const { counters } = operation.workload;
    counters.compared++;
    counters.matched++;
    this.accepted(operation, now);
  }

  differs(operation: Operation, buffer: Buffer, start: number, end: number, now: number): void {
    const { expiry, verdicts } = this.order;
    // A key that may just have expired on one side is a suspect before its replies are compared.
    if (operation.follow === WRITE) expiry.confirmed(operation, true);
    verdicts.differs(operation, buffer, start, end, now);
    if (operation.follow === WRITE) this.#outcome(operation, now);
  }

  accepted(operation: Operation, now: number): void {
    if (operation.follow !== WRITE) return;
    this.#outcome(operation, now);
    this.order.expiry.confirmed(operation, false);
  }

  unconfirmed(operation: Operation): void {
    if (operation.follow === WRITE) this.#notApplied(operation, 'unconfirmed');
    else increment(operation.workload.counters.inconclusive, 'mirror-lost');
  }

  dropped(operation: Operation): void {
    this.#droppedCount++;
    if (operation.follow === WRITE) this.#notApplied(operation, 'queue-full');
    else increment(operation.workload.counters.inconclusive, 'queue-full');
    operation.confirmed?.(null);
  }

  refused(operation: Operation, reason: RefusedFrame): void {
    if (operation.follow === WRITE) this.#notApplied(operation, reason);
    else increment(operation.workload.counters.inconclusive, reason);
  }

  failed(operation: Operation, thrown: unknown): void {
    this.order.failures.at(operation, thrown);
    if (operation.follow === WRITE) this.#notApplied(operation, PROXY_FAILED);
    else increment(operation.workload.counters.inconclusive, PROXY_FAILED);
  }

  /** What a confirmed write may have left behind: a time to live that is off, or what it took from a suspect. */
  #outcome(operation: Operation, now: number): void {
    const { suspects, verdicts } = this.order;
    if (now - operation.answeredAt + operation.stalledMs > TTL_TOLERANCE_MS) verdicts.late(operation, now);
    if (suspects.any) suspects.spread(operation);
  }

  /** An effect may not have reached the mirror; the text of a script neither. */
  #notApplied(operation: Operation, reason: string): void {
    const { scripts, suspects } = this.order;
    const { spec } = operation;
    if (spec?.handling === 'script' || spec?.aboutCode === true) scripts.forget(this.order.mirrorOf(operation).server);
    if (spec?.handling === 'publish') increment(operation.workload.counters.inconclusive, 'publish-lost');
    else suspects.operation(operation, reason);
  }
}
