/** Which databases a server lets the kit's user select: its own SELECT says so, whatever its settings are. */
import { isError, text, type Reply, errorText } from '../resp/decode.js';
import type { Argument } from '../resp/encode.js';

export interface DatabaseLimit {
  /** Databases 0 to `count - 1` can be selected; 1 where the server refuses every SELECT of another one. */
  readonly count: number;
  /** The server's answer to a SELECT of the next one; null where it was not found. */
  readonly refusal: string | null;
}

/** What a server has that was not configured otherwise. */
const DEFAULT = 16;
/** More are not looked for. */
const MOST = 2 ** 20;

/** What a refused SELECT says of the state of the server, and not of the database. */
const PASSING = /^(BUSY|LOADING|MASTERDOWN|NOAUTH|WRONGPASS|TRYAGAIN|UNBLOCKED) /;

/** Whether the error, a server's answer to SELECT, says that it does not let this user into the database. */
export const refusesDatabase = (refusal: string): boolean => !PASSING.test(refusal);

/**
 * Asks on a connection that is used for nothing else: it ends in any database.
 * @param configured what `CONFIG GET databases` says, which is looked at first; null where that is refused
 * @throws {Error} where the server answers SELECT with an error that says nothing of databases
 */
export async function findDatabaseLimit(
  ask: (...args: Argument[]) => Promise<Reply>,
  configured: number | null,
): Promise<DatabaseLimit> {
  const guess = configured ?? DEFAULT;
  const guesses = [guess, guess - 1];
  let refusal: string | null = null;
  // Database `low - 1` can be selected, and `high` cannot, or is not looked for.
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
