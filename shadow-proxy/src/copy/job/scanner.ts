/**
 * Reads all keys of a server with SCAN, database by database, on a connection of its own. What is written
 * meanwhile may be met or not, or twice; what is there from the beginning to the end is met.
 *
 * A cursor means something to the process that gave it, and to no other: where another one answers, the database that
 * was being scanned starts over.
 */
import { errorText, isError } from '../../resp/decode.js';
import { Scalars } from '../../resp/scalars.js';
import { CommandWriter } from '../../resp/writer.js';
import type { Connection } from '../../upstream/connection.js';
import { FIRST_PAGE, scanPage, ScanError, type KeyPage } from '../../upstream/scan-page.js';
import type { Server } from '../../upstream/server.js';
import { isLarge, mayBeLarge, sizeOf, type Thresholds } from '../large/size.js';

/** Where a scan continues. */
export interface Checkpoint {
  /** Of the process that gave the cursor. */
  readonly runId: string;
  readonly db: number;
  /** An unsigned 64-bit number. */
  readonly cursor: string;
}

export interface ScannedKey {
  readonly key: Buffer;
  /** What it takes in memory, about. */
  readonly bytes: number;
  /** Too large to be read and written at once; false where that was not asked. */
  readonly large: boolean;
}

export interface Page {
  readonly db: number;
  readonly keys: readonly ScannedKey[];
  /** Where the scan continues after this page; null after the last one. */
  readonly next: Checkpoint | null;
}

/**
 * Keys that a server looks at for one page: so few that they are still in the cache of its core when their sizes, and
 * then their values, are asked for.
 */
const PAGE_KEYS = 500;
/** What a key is taken for whose size is not known, in bytes. */
const UNKNOWN_BYTES = 16 << 10;
const MEMORY_USAGE = Buffer.from('*3\r\n$6\r\nMEMORY\r\n$5\r\nUSAGE\r\n');
const QUESTION_BYTES = 64;

export class Scanner {
  #connection: Connection | undefined;
  #db = 0;

  /** @param thresholds from which size on a key is large; null where sizes are of no interest */
  constructor(
    private readonly server: Server,
    private readonly thresholds: Thresholds | null = null,
  ) {}

  /**
   * The pages from the checkpoint on; each is asked for together with the sizes of the one before it.
   * @throws {ScanError} where the server refuses
   * @throws {Error} where the connection is lost
   */
  async *pages(from: Checkpoint | null): AsyncGenerator<Page, void, undefined> {
    const connection = await this.#open();
    const { runId } = this.server;
    const databases = await this.#databases(from?.db ?? 0);
    for (const [i, db] of databases.entries()) {
      if (db !== this.#db) await this.#select(connection, db);
      let coming = this.#scan(
        connection,
        from !== null && from.db === db && from.runId === runId ? from.cursor : FIRST_PAGE,
      );
      for (let cursor = ''; cursor !== FIRST_PAGE;) {
        const page = await coming;
        cursor = page.cursor;
        if (cursor !== FIRST_PAGE) coming = this.#scan(connection, cursor);
        const keys = await this.#measured(connection, page.keys);
        const after =
          cursor !== FIRST_PAGE
            ? { runId, db, cursor }
            : i + 1 < databases.length
              ? { runId, db: databases[i + 1], cursor }
              : null;
        yield { db, keys, next: after };
      }
    }
  }

  close(): void {
    this.#connection?.destroy();
  }

  #scan(connection: Connection, cursor: string): Promise<KeyPage> {
    const page = scanPage(this.server, connection, cursor, PAGE_KEYS);
    // Its failure is reported when it is looked at.
    page.catch(() => undefined);
    return page;
  }

  /** About how many bytes each has, in one question; then more of those that may be large. */
  async #measured(connection: Connection, keys: readonly Buffer[]): Promise<ScannedKey[]> {
    const { thresholds } = this;
    if (thresholds === null) return keys.map((key) => ({ key, bytes: UNKNOWN_BYTES, large: false }));
    if (keys.length === 0) return [];
    const questions = new CommandWriter(keys.length * QUESTION_BYTES);
    for (const key of keys) questions.raw(MEMORY_USAGE).argument(key);
    const used = new Scalars(await connection.askBytes(questions.finish(), keys.length));
    const measured: ScannedKey[] = [];
    for (const key of keys) {
      const bytes = readBytes(used);
      const large = mayBeLarge(bytes, thresholds) && isLarge(await sizeOf(connection, key), thresholds);
      measured.push({ key, bytes: bytes ?? UNKNOWN_BYTES, large });
    }
    return measured;
  }

  async #open(): Promise<Connection> {
    this.#connection = await this.server.open({ db: 0, protocol: 2, credentials: this.server.endpoint.credentials });
    return this.#connection;
  }

  /**
   * The databases that have keys now, from `first` on, ascending: one that is begun later has only what is written
   * twice.
   */
  async #databases(first: number): Promise<number[]> {
    return [...(await this.server.databases()).keys()].filter((db) => db >= first).sort((a, b) => a - b);
  }

  async #select(connection: Connection, db: number): Promise<void> {
    const reply = await connection.ask('SELECT', db);
    if (isError(reply)) throw new ScanError(`${this.server.endpoint.label} refuses SELECT`, errorText(reply));
    this.#db = db;
  }
}

/** A reply of MEMORY USAGE; null where it is refused: servers before 4.0, and users who may not, have none. */
function readBytes(replies: Scalars): number | null {
  if (!replies.isError) return Math.max(0, replies.integer());
  replies.skipLine();
  return null;
}
