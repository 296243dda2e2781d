/** A server, as the counters package uses it: one connection of the kit's own, opened when it is needed. */
import type { Command, Store } from '../../../counters/src/index.js';
import type { Connection } from '../upstream/connection.js';
import { isError, text, type Reply, errorText } from '../resp/decode.js';

/** The server answered with an error. */
export class ErrorReply extends Error {}

export class ServerStore implements Store {
  #connection: Connection | null = null;
  #opening: Promise<Connection> | null = null;
  #closed = false;

  /** @param open opens a connection that is ready for use, in database 0 */
  constructor(private readonly open: () => Promise<Connection>) {}

  async send(command: Command): Promise<unknown> {
    const known = this.#connection;
    const connection = known !== null && !known.ended ? known : await this.#reconnect();
    // Names are bytes, so they are encoded as latin1.
    return valueOf(await connection.ask(...command.map((each) => Buffer.from(each, 'latin1'))));
  }

  /** Later commands go over a new connection; the old one is closed when it has answered. */
  renew(): void {
    const old = this.#connection;
    this.#connection = null;
    void old
      ?.ask('PING')
      .catch(() => undefined)
      .then(() => old.destroy());
  }

  /** Commands in flight are lost, and nothing is sent any more. */
  close(): void {
    this.#closed = true;
    this.#connection?.destroy();
  }

  #reconnect(): Promise<Connection> {
    if (this.#closed) return Promise.reject(new Error('the proxy is stopping'));
    this.#opening ??= this.open()
      .then((connection) => {
        this.#connection = connection;
        if (this.#closed) connection.destroy();
        return connection;
      })
      .finally(() => (this.#opening = null));
    return this.#opening;
  }
}

/** @throws {ErrorReply} */
function valueOf(reply: Reply): unknown {
  if (isError(reply)) throw new ErrorReply(errorText(reply));
  if (reply.items !== null) return reply.items.map(valueOf);
  if (reply.data === null) return null;
  return reply.type === ':' ? Number(text(reply)) : reply.data.toString('latin1');
}
