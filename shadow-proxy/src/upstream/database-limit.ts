/** Which databases a server lets the kit's user select. The server's answers to SELECT decide, not its settings. */
import { isError, text, type Reply, errorText } from '../resp/decode.js';
import type { Argument } from '../resp/encode.js';

export interface DatabaseLimit {
  /** Databases 0 to `count - 1` can be selected; 1 if the server refuses all others. */
  readonly count: number;
  /** The server's error for database `count`; null if no limit was found. */
  readonly refusal: string | null;
}

/** The number of databases of a server with default settings. */
const DEFAULT = 16;
/** The search ends here. */
const MOST = 2 ** 20;

/** Errors to SELECT that are about the state of the server, and not about the database. */
const PASSING = /^(BUSY|LOADING|MASTERDOWN|NOAUTH|WRONGPASS|TRYAGAIN|UNBLOCKED) /;

/** Whether the error, an answer to SELECT, says that this user may not use the database. */
export const refusesDatabase = (refusal: string): boolean => !PASSING.test(refusal);

/**
 * Finds the limit, on a connection that is used for nothing else: afterwards any database may be selected on it.
 * @param configured the answer to `CONFIG GET databases`, which is tried first; null if that is refused
 * @throws {Error} if the server answers SELECT with an error that is not about databases
 */
export async function findDatabaseLimit(
  ask: (...args: Argument[]) => Promise<Reply>,
  configured: number | null,
): Promise<DatabaseLimit> {
  const guess = configured ?? DEFAULT;
  const guesses = [guess, guess - 1];
  let refusal: string | null = null;
  // Database `low - 1` can be selected. Database `high` cannot, or is beyond the end of the search.
  let [low, high] = [1, MOST];
  while (low < high) {
    const next = guesses.shift() ?? (high === MOST ? low * 2 : (low + high) >> 1);
    const db = Math.min(Math.max(next, low), high - 1);
    const reply = await ask('SELECT', db);
    if (!isError(reply)) low = db + 1;
    else if (refusesDatabase(text(reply))) [high, refusal] = [db, errorText(reply)];
    else throw new Error(errorText(reply));
  }
  return { count: low, refusal };
}
