/** The one server that this region's writers and readers use, as the library needs it. */

export type Command = readonly string[];

/** What a client library has to offer; `ioredis.ts` and `node-redis.ts` make it of theirs. */
export interface Store {
  /**
   * Sends a command. Those that are sent in one turn of the event loop run in this order.
   * @returns its reply: a string, a number, null, an array of these; a hash as the client has it
   * @throws what the client throws, an error reply of the server likewise
   */
  send(command: Command): Promise<unknown>;
}
