/** What happens to the effects that a mirror is sent, and to its connections. */
import type { Operation } from './operation.js';

export interface MirrorEvents {
  /** The mirror answered as the authority did. */
  matched(operation: Operation, now: number): void;
  /** The mirror's reply `buffer[start, end)` is not the authority's, byte by byte. */
  differs(operation: Operation, buffer: Buffer, start: number, end: number, now: number): void;
  /** An effect was accepted; its reply is not compared. */
  accepted(operation: Operation, now: number): void;
  /** The effect was sent and the connection lost: the mirror may or may not have run it. */
  unconfirmed(operation: Operation): void;
  /** The effect was not sent: the queue was full. */
  dropped(operation: Operation): void;
  /** The effect was not sent: the mirror refuses it. @param reason what it refuses */
  refused(operation: Operation, reason: RefusedFrame): void;
  /**
   * The proxy has thrown at the mirror's reply: it is unknown what happened to the operation.
   * @throws {OutOfStep} if that is the exception
   */
  failed(operation: Operation, thrown: unknown): void;
  /** The mirror refuses effects in the database (`why`), or accepts them again (null). */
  database(db: number, why: string | null): void;
  /** The mirror was connected or disconnected. */
  connected(up: boolean): void;
}

/** What the mirror refuses: the database of an effect, or the protocol of a read whose reply is compared. */
export type RefusedFrame = 'database-refused' | 'protocol-refused';
