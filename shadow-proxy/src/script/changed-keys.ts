/**
 * Finds which keys a script has changed if its text does not show it: the server reports them to a connection with
 * `CLIENT TRACKING ON BCAST`. The server reports changes before it answers the next command on that connection. So all
 * changes by the script precede the answer to a PING that is sent after the script was answered.
 *
 *   begin ─▶ script sent … answered ─▶ end ─▶ PING … PONG ─▶ the keys that changed meanwhile, including changes by
 * others
 */
import { monotonicMs } from '../io/clock.js';
import { clearTimer, every, type Timer } from '../io/timers.js';
import { decodeReply, isNull } from '../resp/decode.js';
import { encodeCommand } from '../resp/encode.js';
import type { FrameReader } from '../resp/frame-reader.js';
import type { Connection, ConnectionOwner } from '../upstream/connection.js';
import type { Server } from '../upstream/server.js';

/** How long to wait, in ms, before a server that refused this is asked again. */
const RETRY_MS = 10_000;
/** If no script needs it for this time, in ms, the server is asked to stop. */
const IDLE_MS = 60_000;

/** Changes from `begin` on, in a database that the server does not report. */
export interface Span {
  readonly db: number;
  /** The lane that carries the script. */
  readonly lane: object;
  /** When the span began, in ms of the monotonic clock. */
  readonly since: number;
  /** The position in the log at which the span begins. */
  readonly from: number;
  /** Whether the server did not report everything, or the connection was lost. */
  broken: boolean;
}

export class Changes implements ConnectionOwner {
  #connection: Connection | undefined;
  #starting: Promise<void> | undefined;
  #refusedAt = -Infinity;
  #usedAt = 0;
  /** Oldest first. */
  readonly #open = new Set<Span>();
  /** Keys in the order in which they changed, from position `#at` on. */
  #log: string[] = [];
  #at = 0;
  /** The position up to which changes were returned, by database. No change is returned twice. */
  readonly #handedOut = new Map<number, number>();
  readonly #pinged: (() => void)[] = [];
  #idle: Timer | undefined;

  constructor(private readonly server: Server) {}

  get waits(): boolean {
    return this.#pinged.length > 0;
  }

  get ready(): boolean {
    return this.#connection !== undefined;
  }

  /** Whether a caller should wait for `start`. */
  get mayStart(): boolean {
    return monotonicMs() - this.#refusedAt > RETRY_MS;
  }

  /** Resolves when it is ready, or known not to be possible. */
  start(): Promise<void> {
    this.#starting ??= this.#start().finally(() => (this.#starting = undefined));
    return this.#starting;
  }

  async #start(): Promise<void> {
    if (this.#connection !== undefined) return;
    try {
      const connection = await this.server.open({ db: 0, protocol: 3, credentials: this.server.endpoint.credentials });
      const reply = await connection.ask('CLIENT', 'TRACKING', 'ON', 'BCAST');
      if (reply.type !== '+') {
        connection.destroy();
        throw new Error('the server does not broadcast');
      }
      connection.attach(this);
      this.#connection = connection;
      this.#usedAt = monotonicMs();
      this.#idle ??= every(IDLE_MS / 2, () => this.#closeIdle()).unref();
    } catch {
      this.#refusedAt = monotonicMs();
    }
  }

  /** Records changes from now on, until the span ends; null while it is not ready. */
  begin(db: number, lane: object): Span | null {
    if (this.#connection === undefined) return null;
    this.#usedAt = monotonicMs();
    const span: Span = { db, lane, since: this.#usedAt, from: this.#at + this.#log.length, broken: false };
    this.#open.add(span);
    return span;
  }

  /**
   * Whether a reply that came on `lane` at `answeredAt` may depend on a change by a script on another lane that the
   * server has not reported yet.
   */
  mayShow(db: number, lane: object, answeredAt: number): boolean {
    for (const span of this.#open) if (span.db === db && span.lane !== lane && span.since <= answeredAt) return true;
    return false;
  }

  /**
   * Calls `then` when everything is known that happened at the server up to now. It gets the keys that changed since
   * the oldest open span of that database, without changes that were returned before; null if they are unknown. A span
   * may end before an older one: so it gets that one's changes, too.
   */
  end(span: Span, then: (keys: ReadonlySet<string> | null) => void): void {
    const done = (): void => {
      const keys = span.broken ? null : this.#handOut(span);
      this.drop(span);
      then(keys);
    };
    if (this.#connection === undefined || span.broken) return done();
    this.#pinged.push(done);
    this.#connection.outbox.addWhole(PING);
  }

  #handOut({ db }: Span): Set<string> {
    let begin = Infinity;
    for (const span of this.#open) if (span.db === db) begin = Math.min(begin, span.from);
    begin = Math.max(begin, this.#handedOut.get(db) ?? 0);
    this.#handedOut.set(db, this.#at + this.#log.length);
    return new Set(this.#log.slice(begin - this.#at));
  }

  /** Discards a span. */
  drop(span: Span): void {
    this.#open.delete(span);
    const [oldest] = this.#open;
    const keep = oldest?.from ?? this.#at + this.#log.length;
    // Not after every span, because the rest of the log is moved.
    if (this.#open.size > 0 && keep - this.#at < this.#log.length / 2) return;
    this.#log = this.#log.slice(keep - this.#at);
    this.#at = keep;
  }

  readable(reader: FrameReader): void {
    while (reader.next()) {
      if (reader.buffer[reader.start] !== PUSH) this.#pinged.shift()?.();
      else if (this.#open.size > 0) this.#note(reader.buffer, reader.start);
    }
  }

  #note(buffer: Buffer, start: number): void {
    const [, keys] = decodeReply(buffer, start).reply.items ?? [];
    // FLUSHALL and similar commands report no keys.
    if (keys === undefined || isNull(keys) || keys.items === null) this.#break();
    else for (const { data } of keys.items) this.#log.push(data!.toString('latin1'));
  }

  #break(): void {
    for (const span of this.#open) span.broken = true;
  }

  lost(): void {
    this.#connection = undefined;
    this.#break();
    for (const done of this.#pinged.splice(0)) done();
  }

  close(): void {
    clearTimer(this.#idle);
    this.#connection?.destroy();
  }

  #closeIdle(): void {
    if (this.#open.size === 0 && this.#pinged.length === 0 && monotonicMs() - this.#usedAt > IDLE_MS)
      this.#connection?.destroy();
  }
}

const PUSH = '>'.charCodeAt(0);
const PING = encodeCommand(['PING']);
