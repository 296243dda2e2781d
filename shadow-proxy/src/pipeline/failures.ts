/**
 * What the proxy fails at: an exception while a server's reply is handled is a defect of the proxy, and stays with the
 * one operation. The reply counts as lost, so that what the operation may have changed is suspect, and nobody waits for
 * it forever. The connection goes on, and so do the other operations on it.
 */
import type { Operation } from './operation.js';

/** Why keys are suspect whose operation the proxy has failed at. */
export const PROXY_FAILED = 'proxy-failed';

/** The replies on a connection cannot be assigned to its commands any more: it must be closed. */
export class OutOfStep extends Error {}

/** The proxy has failed at the reply; `cause` is what it threw. */
export class ReplyFailed extends Error {
  readonly code = 'REPLY_FAILED';
}

/** Whether only a defect of the proxy throws such a thing. */
export const isDefect = (problem: unknown): boolean =>
  problem instanceof ReplyFailed ||
  [TypeError, RangeError, ReferenceError, SyntaxError].some((kind) => problem instanceof kind);

/** A command cannot be answered: its client is closed, as by the loss of a server, or by a failure of the proxy. */
export function closeFor(problem: unknown, client: { failed(problem: unknown): void; destroy(): void }): void {
  if (isDefect(problem)) client.failed(problem);
  else client.destroy();
}

export class Failures {
  /** Since the start. */
  count = 0;

  constructor(private readonly log: (problem: Error, operation: Operation) => void) {}

  /**
   * Counts and logs what was thrown at the reply to the operation.
   * @throws {OutOfStep} what was thrown, where it is that
   */
  at(operation: Operation, thrown: unknown): ReplyFailed {
    if (thrown instanceof OutOfStep) throw thrown;
    const problem = thrown instanceof Error ? thrown : new Error(String(thrown));
    this.count++;
    this.log(problem, operation);
    return new ReplyFailed(`the proxy failed at a reply: ${problem.message}`, { cause: problem });
  }
}
