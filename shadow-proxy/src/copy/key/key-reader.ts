/** Questions to a server about keys, on a separate connection, outside the order of the lanes. */
import { lifeFromPttl } from '../../resp/key-life.js';
import { Connection } from '../../upstream/connection.js';
import type { Dialer } from '../../upstream/dialer.js';
import { greet, requireMaster } from '../../upstream/handshake.js';
import { ScanError } from '../../upstream/scan-page.js';
import type { Turn } from '../../io/turn.js';
import { isError, isNull, text, type Reply, errorText } from '../../resp/decode.js';
import type { Argument } from '../../resp/encode.js';
import { keyDump, type KeyDump } from './key-dump.js';

/** How many keys are asked for in one question while none is missing. */
const TOGETHER = 64;

export class KeyReader {
  #opening: Promise<Connection> | undefined;

  constructor(
    /** The server, in messages. */
    readonly name: string,
    private readonly open: () => Promise<Connection>,
    /** Whether the server is a cluster's node: one command takes keys of one slot only. */
    private readonly isCluster: boolean,
  ) {}

  /** The keys that the server does not have. @throws {ScanError} {Error} */
  async absent<T extends { readonly key: Buffer }>(db: number, keys: readonly T[]): Promise<T[]> {
    const together = this.isCluster ? 1 : TOGETHER;
    const groups = Array.from({ length: Math.ceil(keys.length / together) }, (_, i) =>
      keys.slice(i * together, (i + 1) * together),
    );
    const found = await this.#ask(
      db,
      groups.map((group) => ['EXISTS', ...group.map(({ key }) => key)]),
    );
    if (found === null) return [...keys];
    const incomplete = groups.filter((group, i) => Number(text(found[i])) < group.length).flat();
    const each = await this.#ask(
      db,
      incomplete.map(({ key }) => ['EXISTS', key]),
    );
    return incomplete.filter((_, i) => each === null || text(each[i]) === '0');
  }

  /** What each key holds. @throws {ScanError} {Error} */
  async read(db: number, keys: readonly { readonly key: Buffer }[]): Promise<KeyDump[]> {
    const replies = await this.#ask(
      db,
      keys.flatMap(({ key }) => [
        ['DUMP', key],
        ['PTTL', key],
      ]),
    );
    // If this server cannot hold the value, that says nothing about the other server.
    if (replies === null) throw new Error(`${this.name} has no database ${db}`);
    return keys.map((_, i) =>
      keyDump(isNull(replies[2 * i]) ? null : replies[2 * i].data!, lifeFromPttl(Number(text(replies[2 * i + 1])))),
    );
  }

  close(): void {
    this.#opening?.then(
      (connection) => connection.destroy(),
      () => undefined,
    );
    this.#opening = undefined;
  }

  /** Null if the server has no such database. */
  async #ask(db: number, commands: readonly (readonly Argument[])[]): Promise<Reply[] | null> {
    if (commands.length === 0) return [];
    try {
      const connection = await this.#connection();
      const replies = await connection.askAll([['SELECT', db], ...commands]);
      if (isError(replies[0]) && /out of range/.test(text(replies[0]))) return null;
      const refused = replies.find(isError);
      if (refused === undefined) return replies.slice(1);
      // Other errors, such as LOADING, may be over soon.
      if (text(refused).startsWith('NOPERM')) throw new ScanError(`${this.name} refuses`, errorText(refused));
      throw new Error(errorText(refused));
    } catch (error) {
      if (error instanceof ScanError) throw error;
      throw new Error(`${this.name} cannot be read: ${(error as Error).message}`, { cause: error });
    }
  }

  async #connection(): Promise<Connection> {
    const opening = (this.#opening ??= this.open());
    const connection = await opening.catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    if (!connection.ended) return connection;
    this.#opening = undefined;
    return this.#connection();
  }
}

/** A connection to a server that is none of this shard's. @throws {HandshakeRefused} {Error} */
export async function connectTo(dialer: Dialer, name: string, turn: Turn): Promise<Connection> {
  const connection = new Connection(await dialer.connect(await dialer.resolve()), turn);
  try {
    await greet(connection, 2, dialer.credentials, name);
    if (dialer.followsMaster) await requireMaster(connection, dialer.label);
    return connection;
  } catch (error) {
    connection.destroy();
    throw error;
  }
}
