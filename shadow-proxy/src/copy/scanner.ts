/**
 * Walks over all keys of a server with SCAN, database by database, on a connection of its own. What is written meanwhile
 * may be met or not, or twice; what is there from the beginning to the end is met.
 *
 * A cursor means something to the process that gave it, and to no other: where another one answers, the database that
 * was being walked over starts over.
 */
import { isError, text, type Reply } from '../resp/decode.js';
import type { Connection } from '../lane/connection.js';
import type { Server } from '../lane/server.js';
import { isLarge, mayBeLarge, sizeOf, type Thresholds } from './large/size.js';

/** Where a walk goes on. */
export interface Checkpoint {
  /** Of the process that gave the cursor. */
  readonly runId: string;
  readonly db: number;
  /** An unsigned 64-bit number. */
  readonly cursor: string;
}

export interface ScannedKey {
  readonly key: Buffer;
  /** What it takes in memory, about; 0 where the server does not tell. */
  readonly bytes: number;
  /** Too large to be read and written at once; false where that was not asked. */
  readonly large: boolean;
}

export interface Page {
  readonly db: number;
  readonly keys: readonly ScannedKey[];
  /** Where the walk goes on after this page; null after the last one. */
  readonly next: Checkpoint | null;
}

/** A server does not let its keys be walked over. */
export class ScanError extends Error {
  readonly code = 'SCAN';
}

/** Keys that a server looks at for one page: well under a millisecond. */
const PAGE_KEYS = 1000;
const START = '0';

export class Scanner {
  #connection: Connection | undefined;
  #db = 0;

  /** @param thresholds from which size on a key is large; null where that is of no interest */
  constructor(
    private readonly server: Server,
    private readonly thresholds: Thresholds | null = null,
  ) {}

  /**
   * The pages from the checkpoint on; each is asked for when the one before it is taken.
   * @throws {ScanError} where the server refuses
   * @throws {Error} where the connection is lost
   */
  async *pages(from: Checkpoint | null): AsyncGenerator<Page, void, undefined> {
    const connection = await this.#open();
    const { runId } = this.server;
    const databases = await this.#databases(from?.db ?? 0);
    for (const [i, db] of databases.entries()) {
      if (db !== this.#db) await this.#ask(connection, 'SELECT', db);
      this.#db = db;
      let cursor = from !== null && from.db === db && from.runId === runId ? from.cursor : START;
      do {
        const [next, keys] = (await this.#ask(connection, 'SCAN', cursor, 'COUNT', PAGE_KEYS)).items!;
        cursor = text(next);
        const after = cursor !== START ? { runId, db, cursor } : i + 1 < databases.length ? { runId, db: databases[i + 1], cursor } : null;
        yield { db, keys: await this.#measured(connection, keys.items!.map(({ data }) => data!)), next: after };
      } while (cursor !== START);
    }
  }

  close(): void {
    this.#connection?.destroy();
  }

  /** About how many bytes each has, in one question; then more of those that may be large. */
  async #measured(connection: Connection, keys: readonly Buffer[]): Promise<ScannedKey[]> {
    const used = await connection.askAll(keys.map((key) => ['MEMORY', 'USAGE', key]));
    const measured: ScannedKey[] = [];
    for (const [i, key] of keys.entries()) {
      const large = this.thresholds !== null && mayBeLarge(used[i], this.thresholds) && isLarge(await sizeOf(connection, key), this.thresholds);
      measured.push({ key, bytes: Number(text(used[i])) || 0, large });
    }
    return measured;
  }

  async #open(): Promise<Connection> {
    this.#connection = await this.server.open({ db: 0, protocol: 2, credentials: this.server.endpoint.credentials });
    return this.#connection;
  }

  /** The databases that have keys now, from `first` on, ascending: one that is begun later has only what is written twice. */
  async #databases(first: number): Promise<number[]> {
    return [...(await this.server.databases()).keys()].filter((db) => db >= first).sort((a, b) => a - b);
  }

  async #ask(connection: Connection, ...args: (string | number)[]): Promise<Reply> {
    const reply = await connection.ask(...args);
    if (isError(reply)) throw new ScanError(`${this.server.endpoint.label} refuses ${args[0]}: ${text(reply)}; allow it to the kit's user`);
    return reply;
  }
}
