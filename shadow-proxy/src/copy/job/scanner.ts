/**
 * Reads all keys of a server with SCAN, database by database, on a connection of its own. What is written
 * meanwhile may be met or not, or twice; what is there from the beginning to the end is met.
 *
 * A cursor means something to the process that gave it, and to no other: where another one answers, the database that
 * was being scanned starts over. It goes with its database when SWAPDB gives that another number (on Redis 7.0.15 and
 * KeyDB 6.3.4).
 */
import { errorText, isError } from '../../resp/decode.js';
import { Scalars } from '../../resp/scalars.js';
import { CommandWriter } from '../../resp/command-writer.js';
import type { Swaps } from '../../pipeline/swaps.js';
import type { Connection } from '../../upstream/connection.js';
import { FIRST_PAGE, scanPage, ScanError, type KeyPage } from '../../upstream/scan-page.js';
import type { Server } from '../../upstream/server.js';
import { isLarge, mayBeLarge, sizeOf, type Thresholds } from '../large/size.js';

/** The place at which a scan continues. Databases are ids here, and numbers on the disk. */
export interface Checkpoint {
  /** The run ID of the process that gave the cursor. */
  readonly runId: string;
  readonly db: number;
  /** An unsigned 64-bit number. */
  readonly cursor: string;
  /** Databases that are to be scanned after this one; absent in the records of 0.1.0: those with higher numbers. */
  readonly left?: readonly number[];
}

/** The same place with each database as `to` says. */
export const inDatabases = (checkpoint: Checkpoint, to: (db: number) => number): Checkpoint => ({
  ...checkpoint,
  db: to(checkpoint.db),
  ...(checkpoint.left && { left: checkpoint.left.map(to) }),
});

export interface ScannedKey {
  readonly key: Buffer;
  /** About how many bytes of memory the key takes. */
  readonly bytes: number;
  /** Whether the key is too large to be copied in one piece; false if its size was not asked. */
  readonly large: boolean;
  /** Whether its mirror has the key, and its authority did not when it was asked. */
  readonly extra?: boolean;
}

export interface Page {
  /** The id of its database: the number may have changed since the page was read. */
  readonly id: number;
  readonly keys: readonly ScannedKey[];
  /** The place at which the scan continues after this page; null after the last one. */
  readonly next: Checkpoint | null;
}

/**
 * Keys that a server looks at for one page: so few that they are still in the cache of its core when their sizes, and
 * then their values, are asked for.
 */
const PAGE_KEYS = 500;
/** The assumed size of a key whose size is not known, in bytes. */
const UNKNOWN_BYTES = 16 << 10;
const MEMORY_USAGE = Buffer.from('*3\r\n$6\r\nMEMORY\r\n$5\r\nUSAGE\r\n');
const QUESTION_BYTES = 64;

export class Scanner {
  #connection: Connection | undefined;
  /** The connection's database, and how many swaps had begun when it was selected. */
  #selected = { db: -1, begun: -1 };
  /** The next page of that database, which was asked for already. */
  #coming: Promise<KeyPage> | undefined;

  /**
   * @param thresholds from which size on a key is large; null if sizes are of no interest
   * @param signal aborts the wait for the end of a SWAPDB
   */
  constructor(
    private readonly server: Server,
    private readonly swaps: Swaps,
    private readonly thresholds: Thresholds | null = null,
    private readonly signal?: AbortSignal,
  ) {}

  /**
   * The pages from the checkpoint on; each is asked for together with the sizes of the one before it.
   * @throws {ScanError} if the server refuses
   * @throws {Error} if the connection is lost
   */
  async *pages(from: Checkpoint | null): AsyncGenerator<Page, void, undefined> {
    const { swaps, signal } = this;
    const connection = await this.#open();
    const { runId } = this.server;
    let cursor = from?.runId === runId ? from.cursor : FIRST_PAGE;
    let todo = await swaps.undisturbed(() => this.#databases(from), signal);
    const { unknown } = swaps;
    while (todo.length > 0) {
      const [id, ...left] = todo;
      const page = await swaps.undisturbed(() => this.#page(connection, id, cursor), signal);
      if (swaps.unknown !== unknown) throw new Error('databases were swapped, and it is unknown which');
      ({ cursor } = page);
      if (cursor === FIRST_PAGE) todo = left;
      const next = todo.length > 0 ? { runId, db: todo[0], cursor, left: todo.slice(1) } : null;
      yield { id, keys: page.keys, next };
    }
  }

  close(): void {
    this.#connection?.destroy();
  }

  /** The page at the cursor, and the sizes of its keys; the next one is asked for together with these. */
  async #page(
    connection: Connection,
    id: number,
    cursor: string,
  ): Promise<{ readonly cursor: string; readonly keys: readonly ScannedKey[] }> {
    const { begun, ids } = this.swaps;
    const db = ids.numberOf(id);
    // After SWAPDB, Redis leaves the connection with the number, and KeyDB with what the database held.
    if (this.#selected.db !== db || this.#selected.begun !== begun) {
      this.#coming = undefined;
      await this.#select(connection, db);
      this.#selected = { db, begun };
    }
    const coming = this.#coming ?? this.#scan(connection, cursor);
    this.#coming = undefined;
    const page = await coming;
    if (page.cursor !== FIRST_PAGE) this.#coming = this.#scan(connection, page.cursor);
    return { cursor: page.cursor, keys: await this.#measured(connection, page.keys) };
  }

  #scan(connection: Connection, cursor: string): Promise<KeyPage> {
    const page = scanPage(this.server, connection, cursor, PAGE_KEYS);
    // A failure is reported when the page is awaited.
    page.catch(() => undefined);
    return page;
  }

  /** Asks for the size of each key in one write, then for the exact size of those that may be large. */
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
   * The ids of databases to scan, that of the checkpoint first. Without one, those that have keys now: a database that
   * is begun later has only what is written twice.
   */
  async #databases(from: Checkpoint | null): Promise<number[]> {
    if (from?.left !== undefined) return [from.db, ...from.left];
    const { ids } = this.swaps;
    const numbers = [...(await this.server.databases()).keys()].sort((a, b) => a - b);
    if (from === null) return numbers.map((db) => ids.idOf(db));
    const first = ids.numberOf(from.db);
    return [from.db, ...numbers.filter((db) => db > first).map((db) => ids.idOf(db))];
  }

  async #select(connection: Connection, db: number): Promise<void> {
    const reply = await connection.ask('SELECT', db);
    if (isError(reply)) throw new ScanError(`${this.server.endpoint.label} refuses SELECT`, errorText(reply));
  }
}

/** A reply of MEMORY USAGE; null if it is refused: servers before 4.0, and users who may not, have none. */
function readBytes(replies: Scalars): number | null {
  if (!replies.isError) return Math.max(0, replies.integer());
  replies.skipLine();
  return null;
}
