/** The only server that this region's writers and readers use, as the library sees it. */

export type Command = readonly string[];

/** The interface that the library needs; `ioredis.ts` and `node-redis.ts` implement it. */
export interface Store {
  /**
   * Sends a command. Commands that are sent in one turn of the event loop run in this order.
   * @returns its reply: a string, a number, null, an array of these; a hash in the client library's form
   * @throws errors of the client library, including error replies of the server
   */
  send(command: Command): Promise<unknown>;
}
