/** Errors with a code that never changes. */

/**
 * - `REFUSED`: the server refused the write; nothing of it was counted.
 * - `UNCONFIRMED`: it is unknown whether the write arrived. It is in the writer's total, and the writer's next write or
 *   repair counts it at the latest: do not repeat it.
 * - `OPTION`: an option or argument that is not allowed; the message says what is.
 * - `FOREIGN_VALUE`: a key of the layout has a value that this library did not write.
 * - `CLOSED`: the counters were closed.
 */
export type CounterErrorCode = 'REFUSED' | 'UNCONFIRMED' | 'OPTION' | 'FOREIGN_VALUE' | 'CLOSED';

export class CounterError extends Error {
  override readonly name = 'CounterError';

  constructor(
    readonly code: CounterErrorCode,
    message: string,
    options?: { readonly cause?: unknown },
  ) {
    super(message, options);
  }
}

/** @throws {CounterError} OPTION */
export function demand(holds: boolean, message: string): asserts holds {
  if (!holds) throw new CounterError('OPTION', message);
}

/** Errors of a server that has not run the command. Other errors may come from a program in between. */
const NOT_RUN = /^(?:OOM|READONLY|NOAUTH|NOPERM|MISCONF|NOREPLICAS|LOADING|BUSY|MASTERDOWN|CLUSTERDOWN|EXECABORT) /;

/** The error for a failed write, which says what happened to its increments. */
export function failedWrite(cause: unknown): CounterError {
  const said = cause instanceof Error ? cause.message : String(cause);
  return NOT_RUN.test(said)
    ? new CounterError('REFUSED', `not counted, the server refused: ${said}`, { cause })
    : new CounterError(
        'UNCONFIRMED',
        `no answer to a write (${said}); this writer's next write counts it: do not repeat it`,
        { cause },
      );
}
