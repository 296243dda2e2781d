/**
 * What a shard's mirror is sent: effects in the order of the authority's replies, across all databases, users and
 * protocols, by the kit's own user; and the mirror's replies held against the authority's.
 *
 *   append(operation) ──▶ unsent ──(batch)──▶ channel of its database ──▶ reply ──▶ equal bytes? ── yes ─▶ confirmed
 *                                                                                       └─ no ─▶ differs(operation, reply)
 *
 * A pipelined SELECT that is refused would leave what follows it in another database. So each database has a connection
 * of its own, a channel, which the server has confirmed before an effect is sent. Effects in different databases are in
 * no order with each other; one that reaches beyond its database waits until all channels are empty, and what follows
 * it on another channel waits until it is confirmed.
 */
import { shiftTtl, shortenTtl } from '../command/ttl.js';
import { monotonicMs } from '../io/clock.js';
import type { Workload } from '../route/router.js';
import type { Connection } from '../upstream/connection.js';
import type { Latencies } from '../io/latency.js';
import { OutOfStep } from './failures.js';
import { allScripts, scriptsIn, type Scripts } from './lane.js';
import { isEffect, MirrorChannel, type ChannelOwner } from './mirror-channel.js';
import type { MirrorEvents, RefusedFrame } from './mirror-events.js';
import { ACCEPT, COMPARE, FRAMING, NOTHING, OWN, READ, SWAPS, WRITE, type Operation } from './operation.js';
import { Ring } from '../io/ring.js';
import { after, clearTimer, every, nextTurn, type Timer } from '../io/timers.js';
import { DatabaseRefused } from '../upstream/handshake.js';
import type { Server } from '../upstream/server.js';
import type { Turn } from '../io/turn.js';

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
/** A database that was refused is asked for again when an effect comes for it after so long. */
const REFUSED_MS = 1000;
/** A channel that carried nothing for so long is closed; that of database 0 stays. */
const IDLE_MS = 60_000;

const MINUS = '-'.charCodeAt(0);
const [THREE, CR] = ['3'.charCodeAt(0), 13];

export class MirrorLane implements ChannelOwner {
  /** Called with each operation as it gets its place in the order; null without a listener. */
  #listeners: readonly ((operation: Operation) => void)[] | null = null;
  /** By how many whole ms the mirror's clock is ahead of the authority's; 0 where they agree. */
  clockAheadMs = 0;
  /** Since when that is known, in ms of the monotonic clock; Infinity while looks at the clocks contradict it. */
  clockKnownFrom = 0;
  readonly #unsent = new Ring<Operation>();
  readonly #main: MirrorChannel;
  /** By database. */
  readonly #channels = new Map<number, MirrorChannel>();
  /** The channel that takes what is in its database and reaches no further; null where that has to be looked at. */
  #current: MirrorChannel | null = null;
  /** The channel that was sent what reaches beyond its database; another one waits until that is confirmed. */
  #alone: MirrorChannel | null = null;
  /** The channel that was sent a SWAPDB: all wait until that is confirmed. */
  #swapping: MirrorChannel | null = null;
  /** A SWAPDB was lost with its connection: it may run until that is seen to be closed. */
  #mayHaveSwapped = false;
  /** An effect waits for the replies to others. */
  #waitingForReplies = false;
  /** How often the mirror was connected. */
  #times = 0;
  #up = false;
  /** Lost connections, by their numbers at the server, until they are seen to be closed there. */
  #lostClientIds: number[] = [];
  #lostRunId = '';
  #bytes = 0;
  #timer: Timer | undefined;
  #retry: Timer | undefined;
  #retryMs = RETRY_MIN_MS;
  #opening = false;
  #closed = false;
  #waitingForDrain = false;
  /** How often databases were to be selected again. */
  #selections = 0;
  /** So many of the oldest operations in `unsent` are detached. */
  #detached = 0;
  #detaching: Timer | undefined;
  readonly #marks: Mark[] = [];
  /** Effects that came, and those of them that were sent or dropped. */
  #pushed = 0;
  #taken = 0;
  /** What came after `at` effects waits while they are closed. */
  readonly #gates: { readonly at: number; closed: boolean }[] = [];

  constructor(
    readonly server: Server,
    readonly framing: Workload,
    private readonly limits: MirrorLimits,
    private readonly latencies: Latencies,
    readonly events: MirrorEvents,
    private readonly turn: Turn,
  ) {
    this.#main = this.#channelOf(0);
  }

  get label(): string {
    return this.server.endpoint.label;
  }
  get connected(): boolean {
    return this.#up;
  }
  get queuedBytes(): number {
    return this.#bytes;
  }
  get queued(): number {
    let queued = this.#unsent.length;
    for (const channel of this.#channels.values()) queued += channel.sent.length;
    return queued;
  }
  /** Age of the oldest effect that is not confirmed, in ms. */
  lagMs(now: number): number {
    let since = this.#unsent.at(0)?.answeredAt ?? Infinity;
    for (const { sent } of this.#channels.values()) since = Math.min(since, sent.at(0)?.answeredAt ?? Infinity);
    return Math.max(0, now - Math.min(since, now));
  }

  /** Scripts that the server may be running as the mirror: none of them before its last answer. */
  get scripts(): Scripts {
    const channels = [...this.#channels.values()];
    return allScripts(
      channels.map(({ sent, usedAt }) => scriptsIn(sent, ({ answeredAt }) => Math.max(answeredAt, usedAt))),
    );
  }

  /** Why effects in the database are not sent; null where they are, as far as is known. */
  refusalOf(db: number): string | null {
    const channel = this.#channels.get(db);
    if (channel === undefined || channel.refusal === null) return null;
    this.#tryAgain(channel);
    return channel.refusal;
  }

  /** Databases whose effects are not sent, and why. */
  get refused(): readonly { readonly db: number; readonly why: string }[] {
    return [...this.#channels.values()].flatMap(({ db, refusal }) => (refusal === null ? [] : [{ db, why: refusal }]));
  }

  /** Connects, and keeps trying. */
  start(): void {
    if (this.#closed || this.#up || this.#opening) return;
    this.#detaching ??= every(DETACH_MS, () => this.#detach()).unref();
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
    (operation.db === 0 ? this.#main : this.#channelOf(operation.db)).appended++;
    this.#pushed++;
    this.#unsent.push(operation);
    if (!this.#up || this.#waitingForDrain) return;
    if (this.#unsent.length === BATCH_EFFECTS) nextTurn(this.#flush);
    else if (this.#timer === undefined) this.#timer = after(this.limits.batchMs, this.#flush);
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
    if (this.isEmpty) return then();
    const unconfirmed = [...this.#channels.values()].filter(({ appended, done }) => done < appended);
    const waits = unconfirmed.map((channel) => ({ channel, at: channel.appended }));
    this.#marks.push({ waits, pushed: this.#pushed, then });
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

  /** Calls `visit` for what waits, of each database oldest first, until it returns false. */
  eachQueued(visit: (operation: Operation) => boolean): void {
    for (const ring of [...[...this.#channels.values()].map(({ sent }) => sent), this.#unsent]) {
      for (let i = 0; i < ring.length; i++) if (!visit(ring.at(i)!)) return;
    }
  }

  /**
   * Has every channel select its database again, and wait for the answer, before it is sent anything: SWAPDB leaves
   * KeyDB's connections with what their databases held before.
   */
  selectAgain(): void {
    this.#selections++;
    this.#current = null;
    for (const channel of this.#channels.values()) channel.stale = true;
  }

  /** Sends what waits now, without waiting for more. */
  flush(): void {
    this.#flush();
  }

  /** Leaves the server at once, for the one that the endpoint names now. */
  reconnect(): void {
    this.#main.connection?.destroy();
  }

  close(): void {
    this.#closed = true;
    clearTimer(this.#timer);
    clearTimer(this.#retry);
    clearTimer(this.#detaching);
    for (const { connection } of this.#channels.values()) connection?.destroy();
  }

  /** Detaches what has waited for long, and closes channels that have carried nothing for long. */
  #detach(): void {
    const now = monotonicMs();
    const since = now - DETACH_MS;
    for (const channel of this.#channels.values()) {
      channel.detached = detachIn(channel.sent, channel.detached, since);
      if (channel === this.#main || channel.sent.length > 0 || now - channel.usedAt < IDLE_MS) continue;
      const { connection } = channel;
      if (connection === undefined) continue;
      if (this.#current === channel) this.#current = null;
      channel.end();
      connection.destroy();
    }
    this.#detached = detachIn(this.#unsent, this.#detached, since);
  }

  #channelOf(db: number): MirrorChannel {
    let channel = this.#channels.get(db);
    if (channel === undefined) this.#channels.set(db, (channel = new MirrorChannel(db, this.latencies, this)));
    return channel;
  }

  readonly #flush = (): void => {
    clearTimer(this.#timer);
    this.#timer = undefined;
    if (!this.#up) return;
    const now = this.turn.now();
    for (;;) {
      const operation = this.#unsent.at(0);
      if (operation === undefined) return;
      if (this.#gates.length > 0 && this.#gates[0].at <= this.#taken) return;
      let channel = this.#current;
      if (channel === null || operation.db !== channel.db || operation.reach !== OWN) {
        channel = this.#channelFor(operation, now);
        if (channel === null) return;
        if (channel.refusal !== null) {
          this.#refuse(operation, channel, 'database-refused');
          continue;
        }
      }
      const connection = channel.connection!;
      if (connection.outbox.bytes > WINDOW_BYTES) {
        this.#waitForDrain(connection);
        return;
      }
      if (operation.protocol !== channel.protocol) {
        const spoken = this.#speak(operation, channel, now);
        if (spoken === 'later') return;
        if (spoken === 'refused') continue;
      }
      this.#unsent.shift();
      this.#taken++;
      if (this.#detached > 0) {
        this.#detached--;
        if (channel.detached === channel.sent.length) channel.detached++;
      }
      if (now - operation.answeredAt > TTL_LAG_MS || this.clockAheadMs !== 0) this.#correctTtl(operation, now);
      channel.send(operation, now);
      if (operation.reach === SWAPS) {
        this.#swapping = channel;
        this.#current = null;
      }
    }
  };

  /**
   * The channel for the effect that is next, which may refuse it; null where the effect waits: for the server to
   * confirm the database, or for what must be confirmed before.
   */
  #channelFor(operation: Operation, now: number): MirrorChannel | null {
    if (this.#swapping !== null) {
      if (this.#swapping.waits) return this.#later();
      this.#swapping = null;
      this.selectAgain();
    }
    const channel = this.#channelOf(operation.db);
    if (channel.refusal !== null) {
      this.#tryAgain(channel);
      return channel;
    }
    if (channel.connection === undefined) {
      if (!channel.opening) void this.#openChannel(channel);
      return null;
    }
    if (channel.asking) return null;
    if (channel.stale) {
      channel.stale = false;
      this.#ask(channel, ['SELECT', channel.db], now, (refusal) => {
        // A new connection is in its database, or is refused it by name.
        if (refusal !== null) throw new OutOfStep(`${this.label} refused to select database ${channel.db}: ${refusal}`);
      });
      return null;
    }
    if (this.#alone !== null && this.#alone !== channel) {
      if (this.#alone.waits) return this.#later();
      this.#alone = null;
    }
    if (operation.reach !== OWN) {
      for (const other of this.#channels.values()) if (other !== channel && other.waits) return this.#later();
      this.#alone = channel;
    }
    this.#current = channel;
    return channel;
  }

  #later(): null {
    this.#waitingForReplies = true;
    return null;
  }

  /** Asks what everything after it depends on; nothing is sent on the channel until it is answered. */
  #ask(
    channel: MirrorChannel,
    args: readonly (string | number)[],
    now: number,
    answered: (refusal: string | null) => void,
  ): void {
    channel.asking = true;
    this.#current = null;
    const question = channel.frame(args, now, (reply) => {
      channel.asking = false;
      if (reply === null) return;
      answered(reply[0] === MINUS ? reply.toString('latin1', 1, reply.length - 2) : null);
      this.#waitingForReplies = true;
    });
    this.#bytes += question.size;
  }

  /**
   * Puts the channel into the protocol of the effect that is next. A refusal changes the form of replies only, so HELLO
   * is confirmed once for each connection, and sent along after that. Where the server refuses it, the command is sent
   * all the same, and reads, which are only compared, are not.
   */
  #speak(operation: Operation, channel: MirrorChannel, now: number): 'spoken' | 'later' | 'refused' {
    const { protocol } = operation;
    if (channel.speaks3 === null) {
      this.#ask(channel, ['HELLO', 3], now, (refusal) => {
        channel.speaks3 = refusal === null;
        if (refusal === null) channel.protocol = 3;
      });
      return 'later';
    }
    if (!channel.speaks3) {
      if (operation.follow === READ) {
        this.#refuse(operation, channel, 'protocol-refused');
        return 'refused';
      }
      if (operation.batch !== null) operation.batch.inOtherForm = true;
      else if (operation.check === COMPARE) operation.check = ACCEPT;
      return 'spoken';
    }
    channel.protocol = protocol;
    const hello = channel.frame(['HELLO', protocol], now, (reply) => {
      if (reply !== null && reply[0] === MINUS) throw new OutOfStep(`${this.label} refused HELLO ${protocol}`);
    });
    // The lag is that of the effect behind it.
    hello.answeredAt = operation.answeredAt;
    this.#bytes += hello.size;
    return 'spoken';
  }

  /** The effect that is next is not sent. */
  #refuse(operation: Operation, channel: MirrorChannel, reason: RefusedFrame): void {
    this.#unsent.shift();
    this.#taken++;
    if (this.#detached > 0) this.#detached--;
    channel.done++;
    this.#bytes -= operation.size;
    this.events.refused(operation, reason);
    operation.confirmed?.(null);
    this.#passMarks();
  }

  #waitForDrain(connection: Connection): void {
    if (this.#waitingForDrain) return;
    this.#waitingForDrain = true;
    const times = this.#times;
    const go = (): void => {
      if (this.#times !== times) return;
      this.#waitingForDrain = false;
      this.#flush();
    };
    // The outbox is written at the end of the turn; only then can the socket be congested.
    nextTurn(() => (connection.congested ? connection.onceDrained(go) : go()));
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

  // ── what the channels report ────────────────────────────────────────────────────────────────────────────────

  release(operation: Operation): void {
    this.#bytes -= operation.size;
  }

  progressed(): void {
    this.#passMarks();
    if (!this.#waitingForReplies) return;
    this.#waitingForReplies = false;
    this.#flush();
  }

  #passMarks(): void {
    const upTo = this.#gates.length === 0 ? Infinity : this.#gates[0].at - 1;
    while (this.#marks.length > 0 && this.#marks[0].pushed <= upTo && isConfirmed(this.#marks[0]))
      this.#marks.shift()!.then();
  }

  /** One connection is lost: the others are closed with it, and all of them must be seen to end. */
  lost(): void {
    if (!this.#up) return;
    this.#up = false;
    this.#times++;
    this.#current = null;
    this.#alone = null;
    this.#mayHaveSwapped = this.#swapping !== null;
    this.#swapping = null;
    this.#waitingForDrain = false;
    this.#waitingForReplies = false;
    clearTimer(this.#timer);
    this.#timer = undefined;
    const lost: { channel: MirrorChannel; operation: Operation }[] = [];
    for (const channel of this.#channels.values()) {
      const { connection } = channel;
      for (const operation of this.#drain(channel)) lost.push({ channel, operation });
      if (connection === undefined) continue;
      this.#mustEnd(connection);
      connection.destroy();
    }
    for (const { channel, operation } of lost) {
      this.#bytes -= operation.size;
      if (isEffect(operation)) channel.done++;
      try {
        if (isEffect(operation)) this.events.unconfirmed(operation);
        operation.confirmed?.(null);
      } catch (thrown) {
        this.events.failed(operation, thrown);
      }
    }
    this.#passMarks();
    this.events.connected(false);
    if (!this.#closed) this.start();
  }

  /** Remembers connections of the last server only: what went to another server changes nothing there. */
  #mustEnd({ runId, clientId }: Connection): void {
    if (runId !== this.#lostRunId) this.#lostClientIds = [];
    this.#lostRunId = runId;
    this.#lostClientIds.push(clientId);
  }

  /** All that the channel has sent, with the rest of a transaction that was sent in part: it cannot continue. */
  #drain(channel: MirrorChannel): Operation[] {
    const sent = channel.end();
    for (let last = sent.at(-1); last?.check === FRAMING && last.follow !== NOTHING;) {
      last = this.#unsent.shift();
      if (last === undefined) break;
      this.#taken++;
      if (this.#detached > 0) this.#detached--;
      sent.push(last);
    }
    return sent;
  }

  // ── connections ─────────────────────────────────────────────────────────────────────────────────────────────

  async #open(): Promise<void> {
    let connection: Connection | undefined;
    const selections = this.#selections;
    try {
      connection = await this.#connect(0);
      // What the lost connections left in the server's receive buffers must not run after what comes now.
      if (this.#lostRunId === this.server.runId) await this.#endLost();
      if (this.#closed || connection.ended) throw new Error('the connection ended');
      this.#lostClientIds = [];
      this.#retryMs = RETRY_MIN_MS;
      this.#opening = false;
      this.#up = true;
      this.#main.begin(connection, selections !== this.#selections || this.#mayHaveSwapped);
      this.events.connected(true);
      this.#flush();
    } catch {
      connection?.destroy();
      this.#opening = false;
      if (this.#closed) return;
      this.#retry = after(this.#retryMs, () => this.start());
      this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MAX_MS);
    }
  }

  async #endLost(): Promise<void> {
    for (const clientId of this.#lostClientIds) await this.server.connections.kill(clientId);
  }

  #connect(db: number): Promise<Connection> {
    return this.server.open({ db, protocol: 2, credentials: this.server.endpoint.credentials });
  }

  /** Asks again, on a connection of its own, for a database that was refused some time ago. */
  #tryAgain(channel: MirrorChannel): void {
    if (this.#up && !channel.opening && monotonicMs() >= channel.retryAt) void this.#openChannel(channel);
  }

  /** Opens a connection in the channel's database; the effects wait for it, unless it was refused before. */
  async #openChannel(channel: MirrorChannel): Promise<void> {
    const times = this.#times;
    const selections = this.#selections;
    const refusedBefore = channel.refusal !== null;
    channel.opening = true;
    const opened = await this.#connect(channel.db).catch((problem: Error) => problem);
    if (times !== this.#times || this.#closed || channel.connection !== undefined) {
      if (!(opened instanceof Error)) opened.destroy();
      return;
    }
    channel.opening = false;
    const why = opened instanceof Error ? reasonOf(opened) : opened.ended ? 'the connection ended' : null;
    if (why === null) channel.begin(opened as Connection, selections !== this.#selections);
    else {
      channel.refusal = why;
      channel.retryAt = monotonicMs() + REFUSED_MS;
    }
    channel.usedAt = monotonicMs();
    if (refusedBefore !== (why !== null)) this.events.database(channel.db, why);
    this.#flush();
  }
}

const reasonOf = (problem: Error): string => (problem instanceof DatabaseRefused ? problem.reply : problem.message);

/** Waits for so many effects of each channel, and for `pushed` effects behind which gates are. */
interface Mark {
  readonly waits: readonly { readonly channel: MirrorChannel; readonly at: number }[];
  readonly pushed: number;
  readonly then: () => void;
}

const isConfirmed = ({ waits }: Mark): boolean => waits.every(({ channel, at }) => channel.done >= at);

/** Detaches those of the oldest operations that have waited since then. @returns how many are detached */
function detachIn(ring: Ring<Operation>, detached: number, since: number): number {
  for (; detached < ring.length; detached++) {
    const operation = ring.at(detached)!;
    if (operation.answeredAt > since) break;
    operation.detach();
  }
  return detached;
}

/** FLUSHALL and its like are small and rare, and no list of suspects says what they did. */
const isIndispensable = ({ spec }: Operation): boolean => spec?.handling === 'exclusive';
