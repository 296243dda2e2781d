/**
 * The one lane to a shard's mirror: effects in the order of the authority's replies, across all databases, users
 * and protocols, sent by the kit's own user; and the mirror's replies held against the authority's.
 *
 *   append(operation) ──▶ unsent ──(batch)──▶ sent ──▶ reply ──▶ equal bytes? ── yes ─▶ confirmed
 *                                                                    └─ no ─▶ differs(operation, reply)
 *
 * Equal bytes are the rule, so the mirror's stream is compared before it is parsed: as many expected replies as lie
 * side by side are one comparison.
 */
import type { FrameReader } from '../resp/reader.js';
import { encodeCommand } from '../resp/encode.js';
import { shiftTtl, shortenTtl } from '../command/ttl.js';
import type { Workload } from '../route/router.js';
import type { Connection, ConnectionOwner } from '../upstream/connection.js';
import type { LatencyRecorder } from '../io/latency.js';
import { ACCEPT, COMPARE, FRAMING, NOTHING, Operation, WRITE } from './operation.js';
import { Ring } from '../io/ring.js';
import type { Server } from '../upstream/server.js';
import type { Turn } from '../io/turn.js';

export interface MirrorEvents {
  /** The mirror answered as the authority did. */
  matched(operation: Operation, now: number): void;
  /** It did not, byte by byte: `buffer[start, end)` is its reply. */
  differs(operation: Operation, buffer: Buffer, start: number, end: number, now: number): void;
  /** An effect whose own reply is not compared was accepted. */
  accepted(operation: Operation, now: number): void;
  /** It was sent and the connection lost: it may have run or not. */
  unconfirmed(operation: Operation): void;
  /** It was not sent, for there was no room. */
  dropped(operation: Operation): void;
  /** The mirror is connected again, or not any more. */
  connected(up: boolean): void;
}

export interface MirrorLimits {
  /** Bytes of effects and expected replies that may wait. */
  readonly queueBytes: number;
  /** How long effects may wait for others to share a write, in ms. */
  readonly batchMs: number;
}

/** So many effects are sent at the end of the turn, without waiting for others. */
const BATCH_EFFECTS = 2048;
/** What may lie in the socket: more waits in `unsent`, where a time to live can still be corrected. */
const WINDOW_BYTES = 1 << 20;
/** A time to live that waited longer than this is sent as what is left of it. */
const TTL_LAG_MS = 4;
/** What waits longer than this is detached from the buffers that it came in. */
const DETACH_MS = 50;
const RETRY_MIN_MS = 20;
const RETRY_MAX_MS = 1000;

const PUSH = '>'.charCodeAt(0);
const MINUS = '-'.charCodeAt(0);
/** Of a connection whose database has to be selected before the next effect. */
const UNSELECTED = -1;
const [THREE, CR] = ['3'.charCodeAt(0), 13];

export class MirrorLane implements ConnectionOwner {
  /** Called with each operation as it gets its place in the order; null without a listener. */
  #listeners: readonly ((operation: Operation) => void)[] | null = null;
  /** By how many whole ms the mirror's clock is ahead of the authority's; 0 where they agree. */
  clockAheadMs = 0;
  readonly #unsent = new Ring<Operation>();
  readonly #sent = new Ring<Operation>();
  #connection: Connection | undefined;
  #lostClientId = 0;
  #lostRunId = '';
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #retry: NodeJS.Timeout | undefined;
  #retryMs = RETRY_MIN_MS;
  #opening = false;
  #closed = false;
  #waitingForDrain = false;
  // What the connection is set to.
  #db = 0;
  #protocol: 2 | 3 = 2;
  /** How often its database was to be selected again. */
  #selections = 0;
  #appended = 0;
  #confirmed = 0;
  /** So many of the oldest operations are detached. */
  #detached = 0;
  #detaching: NodeJS.Timeout | undefined;
  readonly #marks: { at: number; pushed: number; then: () => void }[] = [];
  /** Effects that came, and those of them that were sent or dropped. */
  #pushed = 0;
  #taken = 0;
  /** What came after `at` effects waits while they are closed. */
  readonly #gates: { readonly at: number; closed: boolean }[] = [];

  constructor(
    readonly server: Server,
    private readonly framing: Workload,
    private readonly limits: MirrorLimits,
    private readonly latency: LatencyRecorder,
    private readonly events: MirrorEvents,
    private readonly turn: Turn,
  ) {}

  get connected(): boolean {
    return this.#connection !== undefined;
  }
  get waits(): boolean {
    return this.#sent.length > 0;
  }
  get queuedBytes(): number {
    return this.#bytes;
  }
  get queued(): number {
    return this.#unsent.length + this.#sent.length;
  }
  /** Age of the oldest effect that is not confirmed, in ms. */
  lagMs(now: number): number {
    const oldest = this.#sent.at(0) ?? this.#unsent.at(0);
    return oldest === undefined ? 0 : Math.max(0, now - oldest.answeredAt);
  }

  /** Connects, and keeps trying. */
  start(): void {
    if (this.#closed || this.#connection || this.#opening) return;
    this.#detaching ??= setInterval(() => this.#detach(), DETACH_MS).unref();
    this.#opening = true;
    void this.#open();
  }

  /** Takes an effect, or, where there is no room, says that it was dropped. */
  append(operation: Operation): void {
    if (this.#bytes + operation.size > this.limits.queueBytes && this.queued > 0 && !isIndispensable(operation))
      this.events.dropped(operation);
    else this.#push(operation);
  }

  #push(operation: Operation): void {
    if (this.#listeners !== null) for (const listener of this.#listeners) listener(operation);
    this.#bytes += operation.size;
    this.#appended++;
    this.#pushed++;
    this.#unsent.push(operation);
    if (this.#connection === undefined || this.#waitingForDrain) return;
    if (this.#unsent.length === BATCH_EFFECTS) setImmediate(this.#flush);
    else if (this.#timer === undefined) this.#timer = setTimeout(this.#flush, this.limits.batchMs);
  }

  /** Takes effects that must run side by side, or, where there is no room, says of each that it was dropped. */
  appendAll(operations: readonly Operation[]): void {
    const size = operations.reduce((sum, operation) => sum + operation.size, 0);
    if (this.#bytes + size > this.limits.queueBytes && this.queued > 0)
      for (const operation of operations) this.events.dropped(operation);
    else for (const operation of operations) this.#push(operation);
  }

  /** Calls `listener` with each operation as it gets its place in the order, until what is returned is called. */
  listen(listener: (operation: Operation) => void): () => void {
    this.#listeners = [...(this.#listeners ?? []), listener];
    return () => {
      const left = this.#listeners?.filter((each) => each !== listener) ?? [];
      this.#listeners = left.length === 0 ? null : left;
    };
  }

  /** Calls `then` once all effects appended so far are confirmed or dropped, and no gate among them is closed. */
  afterAppended(then: () => void): void {
    if (this.isEmpty) then();
    else this.#marks.push({ at: this.#appended, pushed: this.#pushed, then });
  }

  /** Holds back what comes from now on until it is opened: what came before is still being found out. */
  gate(): () => void {
    const gate = { at: this.#pushed, closed: true };
    this.#gates.push(gate);
    return () => {
      gate.closed = false;
      while (this.#gates.length > 0 && !this.#gates[0].closed) this.#gates.shift();
      this.#passMarks();
      this.#flush();
    };
  }

  /** How much is still being found out. */
  get gates(): number {
    return this.#gates.length;
  }

  /** Whether it has confirmed everything, and nothing is still being found out. */
  get isEmpty(): boolean {
    return this.queued === 0 && this.#gates.length === 0;
  }

  /** Calls `visit` for what waits, oldest first, until it returns false. */
  eachQueued(visit: (operation: Operation) => boolean): void {
    for (const ring of [this.#sent, this.#unsent]) {
      for (let i = 0; i < ring.length; i++) if (!visit(ring.at(i)!)) return;
    }
  }

  /**
   * Has the next effect select its database, whichever the connection is in: SWAPDB leaves KeyDB with what it held
   * before.
   */
  selectAgain(): void {
    this.#selections++;
    this.#db = UNSELECTED;
  }

  /** Sends what waits now, without waiting for more. */
  flush(): void {
    this.#flush();
  }

  /** Leaves the server at once, for the one that the endpoint names now. */
  reconnect(): void {
    this.#connection?.destroy();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#retry);
    clearInterval(this.#detaching);
    this.#connection?.destroy();
  }

  /** Detaches what has waited for long. */
  #detach(): void {
    const sent = this.#sent.length;
    const since = performance.now() - DETACH_MS;
    for (; this.#detached < this.queued; this.#detached++) {
      const operation =
        this.#detached < sent ? this.#sent.at(this.#detached)! : this.#unsent.at(this.#detached - sent)!;
      if (operation.answeredAt > since) return;
      operation.detach();
    }
  }

  readonly #flush = (): void => {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const connection = this.#connection;
    if (connection === undefined || this.#unsent.length === 0) return;
    const outbox = connection.outbox;
    const now = this.turn.now();
    for (;;) {
      if (outbox.bytes > WINDOW_BYTES) {
        this.#waitForDrain(connection);
        return;
      }
      if (this.#gates.length > 0 && this.#gates[0].at <= this.#taken) return;
      const operation = this.#unsent.shift();
      if (operation === undefined) return;
      this.#taken++;
      if (operation.db !== this.#db || operation.protocol !== this.#protocol) this.#switch(operation, connection, now);
      if (now - operation.answeredAt > TTL_LAG_MS || this.clockAheadMs !== 0) this.#correctTtl(operation, now);
      this.#sent.push(operation);
      this.latency.sent(now);
      outbox.add(operation.frame, operation.start, operation.end);
    }
  };

  #waitForDrain(connection: Connection): void {
    if (this.#waitingForDrain) return;
    this.#waitingForDrain = true;
    const go = (): void => {
      this.#waitingForDrain = false;
      if (this.#connection === connection) this.#flush();
    };
    // The outbox is written at the end of the turn; only then can the socket be congested.
    setImmediate(() => (connection.congested ? connection.onceDrained(go) : go()));
  }

  /** Puts the connection into the operation's database and protocol. */
  #switch(operation: Operation, connection: Connection, now: number): void {
    if (operation.protocol !== this.#protocol) this.#frame(['HELLO', operation.protocol], operation, connection, now);
    if (operation.db !== this.#db) this.#frame(['SELECT', operation.db], operation, connection, now);
    this.#protocol = operation.protocol;
    this.#db = operation.db;
  }

  #frame(args: (string | number)[], operation: Operation, connection: Connection, now: number): void {
    const frame = encodeCommand(args);
    const framing = new Operation(
      frame,
      0,
      frame.length,
      null,
      undefined,
      this.framing,
      operation.db,
      operation.protocol,
      NOTHING,
    );
    framing.check = FRAMING;
    framing.answeredAt = now;
    this.#appended++;
    this.#bytes += framing.size;
    this.#sent.push(framing);
    this.latency.sent(now);
    connection.outbox.add(frame, 0, frame.length);
  }

  /** A time to live as what is left of it, a moment of expiry by the mirror's clock. */
  #correctTtl(operation: Operation, now: number): void {
    const late = now - operation.answeredAt > TTL_LAG_MS;
    const shortened = !late
      ? null
      : operation.bundle?.shorten
        ? operation.bundle.shorten(now - operation.answeredAt)
        : this.#shortened(operation, now);
    const frame = shortened ?? this.#shifted(operation);
    if (frame === null) return;
    this.#bytes += frame.length - (operation.end - operation.start);
    operation.become(frame);
    if (shortened !== null) operation.ttlFrom = now | 0;
  }

  #shortened(operation: Operation, now: number): Buffer | null {
    const { follow, spec, frame, start, answeredAt } = operation;
    if (follow !== WRITE || spec === undefined || spec.relativeTtl === null) return null;
    // SET key value has none.
    if (frame[start + 1] === THREE && frame[start + 2] === CR && spec.name === 'set') return null;
    return shortenTtl(operation.command.args, now - answeredAt);
  }

  #shifted(operation: Operation): Buffer | null {
    const { follow, spec, frame, start } = operation;
    if (this.clockAheadMs === 0 || follow !== WRITE || spec === undefined || spec.absoluteTtl === null) return null;
    // Likewise.
    if (frame[start + 1] === THREE && frame[start + 2] === CR && spec.name === 'set') return null;
    return shiftTtl(operation.command.args, this.clockAheadMs);
  }

  readable(reader: FrameReader): void {
    // Not the turn's own time, which is that of its beginning: the mirror may have run the commands since.
    const now = performance.now();
    const before = this.#confirmed;
    for (;;) {
      const run = this.#equalRun(reader);
      if (run > 0) {
        for (let i = 0; i < run; i++) {
          const operation = this.#take();
          this.events.matched(operation, now);
          if (operation.confirmed !== null)
            operation.confirmed(operation.reply.subarray(operation.replyStart, operation.replyEnd));
        }
        continue;
      }
      if (!reader.next(this.#sent.at(0)?.bundle?.replies)) break;
      if (reader.buffer[reader.start] === PUSH) continue;
      this.#answered(reader, now);
    }
    this.latency.answered(this.#confirmed - before, now);
    this.#passMarks();
  }

  /** How many of the oldest operations the unread bytes answer exactly as expected; consumes those bytes. */
  #equalRun(reader: FrameReader): number {
    const first = this.#sent.at(0);
    if (first === undefined || first.check !== COMPARE) return 0;
    const { buffer, at, limit } = reader;
    const { reply, replyStart } = first;
    let end = first.replyEnd;
    if (at + end - replyStart > limit) return 0;
    let run = 1;
    for (; ; run++) {
      const next = this.#sent.at(run);
      if (next === undefined || next.reply !== reply || next.replyStart !== end || next.check !== COMPARE) break;
      if (at + next.replyEnd - replyStart > limit) break;
      end = next.replyEnd;
    }
    if (run > 1) {
      if (buffer.compare(reply, replyStart, end, at, at + end - replyStart) === 0) {
        reader.skip(end - replyStart);
        return run;
      }
      end = first.replyEnd;
    }
    if (!equalBytes(buffer, at, reply, replyStart, end)) return 0;
    reader.skip(end - replyStart);
    return 1;
  }

  #answered(reader: FrameReader, now: number): void {
    const operation = this.#take();
    const { buffer, start, end } = reader;
    if (operation.confirmed !== null) {
      // A producer of the proxy's own judges by itself.
      operation.confirmed(buffer.subarray(start, end));
    } else if (operation.check === COMPARE || buffer[start] === MINUS) {
      // SELECT or HELLO refused: everything after it would run in the wrong place.
      if (operation.follow === NOTHING)
        throw new Error(`the mirror refused ${buffer.toString('latin1', start, end - 2)}`);
      this.events.differs(operation, buffer, start, end, now);
    } else if (operation.check === ACCEPT) {
      this.events.accepted(operation, now);
    }
  }

  #take(): Operation {
    const operation = this.#sent.shift();
    if (operation === undefined) throw new Error(`${this.server.endpoint.label} sent a reply without a request`);
    this.#bytes -= operation.size;
    this.#confirmed++;
    if (this.#detached > 0) this.#detached--;
    return operation;
  }

  #passMarks(): void {
    const upTo = this.#gates.length === 0 ? Infinity : this.#gates[0].at - 1;
    while (this.#marks.length > 0 && this.#marks[0].at <= this.#confirmed && this.#marks[0].pushed <= upTo)
      this.#marks.shift()!.then();
  }

  lost(): void {
    const connection = this.#connection;
    if (connection === undefined) return;
    this.#lostClientId = connection.clientId;
    this.#lostRunId = this.server.runId;
    this.#connection = undefined;
    this.#waitingForDrain = false;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.latency.reset();
    for (const operation of this.#drainSent()) {
      this.#bytes -= operation.size;
      this.#confirmed++;
      if (this.#detached > 0) this.#detached--;
      if (operation.check !== FRAMING || operation.follow !== NOTHING) this.events.unconfirmed(operation);
      operation.confirmed?.(null);
    }
    this.#passMarks();
    this.events.connected(false);
    if (!this.#closed) this.start();
  }

  /** All that was sent, with the rest of a transaction that was sent in part: it cannot continue. */
  #drainSent(): Operation[] {
    const sent = this.#sent.drain();
    for (let last = sent.at(-1); last?.check === FRAMING && last.follow !== NOTHING;) {
      last = this.#unsent.shift();
      if (last === undefined) break;
      this.#taken++;
      sent.push(last);
    }
    return sent;
  }

  async #open(): Promise<void> {
    let connection: Connection | undefined;
    const selections = this.#selections;
    try {
      connection = await this.server.open({ db: 0, protocol: 2, credentials: this.server.endpoint.credentials });
      // What the lost connection left in the server's receive buffer must not run after what comes now.
      if (this.#lostRunId === this.server.runId) await this.server.connections.kill(this.#lostClientId);
      if (this.#closed || connection.ended) throw new Error('the connection ended');
      this.#lostClientId = 0;
      this.#db = selections === this.#selections ? 0 : UNSELECTED;
      this.#protocol = 2;
      this.#retryMs = RETRY_MIN_MS;
      this.#connection = connection;
      this.#opening = false;
      connection.attach(this);
      this.events.connected(true);
      this.#flush();
    } catch {
      connection?.destroy();
      this.#opening = false;
      if (this.#closed) return;
      this.#retry = setTimeout(() => this.start(), this.#retryMs);
      this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MAX_MS);
    }
  }
}

/** FLUSHALL and its like are small and rare, and no list of suspects says what they did. */
const isIndispensable = ({ spec }: Operation): boolean => spec?.handling === 'exclusive';

/** A loop beats a call for replies as short as most are. */
function equalBytes(a: Buffer, at: number, b: Buffer, start: number, end: number): boolean {
  const length = end - start;
  if (length > 64) return a.compare(b, start, end, at, at + length) === 0;
  for (let i = 0; i < length; i++) if (a[at + i] !== b[start + i]) return false;
  return true;
}
