/** What becomes of the effects that a mirror is sent, and of its connections. */
import type { Operation } from './operation.js';

export interface MirrorEvents {
  /** The mirror answered as the authority did. */
  matched(operation: Operation, now: number): void;
  /** The mirror's reply `buffer[start, end)` is not the authority's, byte by byte. */
  differs(operation: Operation, buffer: Buffer, start: number, end: number, now: number): void;
  /** An effect whose own reply is not compared was accepted. */
  accepted(operation: Operation, now: number): void;
  /** The effect was sent and the connection lost: the mirror may have run it or not. */
  unconfirmed(operation: Operation): void;
  /** The effect was not sent: the queue was full. */
  dropped(operation: Operation): void;
  /** The effect was not sent: the mirror does not take it. `reason` names what it refuses. */
  refused(operation: Operation, reason: RefusedFrame): void;
  /**
   * The proxy has failed at the mirror's reply: what became of the operation is not known.
   * @throws {OutOfStep} what was thrown, where it is that
   */
  failed(operation: Operation, thrown: unknown): void;
  /** The mirror lets effects into the database, or not; `why` is null where it does. */
  database(db: number, why: string | null): void;
  /** The mirror is connected again, or not any more. */
  connected(up: boolean): void;
}

/** What the mirror refuses: the database of an effect, or the protocol of a read whose reply is compared. */
export type RefusedFrame = 'database-refused' | 'protocol-refused';
