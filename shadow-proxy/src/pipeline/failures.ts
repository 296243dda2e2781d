/**
 * Exceptions of the proxy's own. An exception while a server's reply is handled is a defect of the proxy, and affects
 * only that operation. The reply counts as lost: the keys that the operation may have changed become suspects, and no
 * client waits for it. The connection, and the other operations on it, go on.
 */
import type { Operation } from './operation.js';

/** Why keys are suspects if the proxy has thrown at their operation. */
export const PROXY_FAILED = 'proxy-failed';

/** Replies on a connection can no longer be assigned to their commands: it must be closed. */
export class OutOfStep extends Error {}

/** The proxy has thrown at the reply; `cause` is the exception. */
export class ReplyFailed extends Error {
  readonly code = 'REPLY_FAILED';
}

/** Whether only a defect of the proxy throws such an error. */
export const isDefect = (problem: unknown): boolean =>
  problem instanceof ReplyFailed ||
  [TypeError, RangeError, ReferenceError, SyntaxError].some((kind) => problem instanceof kind);

/**
 * A command cannot be answered. Its client is closed, as after the loss of a server, or after a failure of the proxy.
 */
export function closeFor(problem: unknown, client: { failed(problem: unknown): void; destroy(): void }): void {
  if (isDefect(problem)) client.failed(problem);
  else client.destroy();
}

export class Failures {
  /** The number of failures since the start. */
  count = 0;

  constructor(private readonly log: (problem: Error, operation: Operation) => void) {}

  /**
   * Counts and logs an exception at the reply to the operation.
   * @throws {OutOfStep} if that is the exception
   */
  at(operation: Operation, thrown: unknown): ReplyFailed {
    if (thrown instanceof OutOfStep) throw thrown;
    const problem = thrown instanceof Error ? thrown : new Error(String(thrown));
    this.count++;
    this.log(problem, operation);
    return new ReplyFailed(`the proxy failed at a reply: ${problem.message}`, { cause: problem });
  }
}
