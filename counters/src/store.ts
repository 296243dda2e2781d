/** The one server that this region's writers and readers use, as the library needs it. */

export type Command = readonly string[];

/** What a client library has to offer; `ioredis.ts` and `node-redis.ts` make it of theirs. */
export interface Store {
  /**
   * Runs the commands as one transaction (MULTI, EXEC); a single one plainly.
   * @returns their replies, in order: strings, numbers, null, arrays of these
   * @throws what the client throws; an error among the replies likewise
   */
  run(commands: readonly Command[]): Promise<unknown[]>;
}
