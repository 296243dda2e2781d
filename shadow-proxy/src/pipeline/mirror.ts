/**
 * What a shard's mirror is sent: effects in the order of the authority's replies, across all databases, users and
 * protocols, by the kit's own user; and the mirror's replies, compared with the authority's.
 *
 *   append(operation) ──▶ unsent ──(batch)──▶ channel of its database ──▶ reply ──▶ equal bytes? ── yes ─▶ confirmed
 *                                                                                       └─ no ─▶ differs(operation, reply)
 *
 * After a pipelined SELECT that is refused, the next commands would run in another database. So each database has its
 * own connection, a channel, and the server has confirmed the database before an effect is sent. Effects in different
 * databases have no order. An effect beyond its database waits until all channels are empty, and later effects on other
 * channels wait until it is confirmed.
 */
import { shiftTtl, shortenTtl } from '../command/ttl.js';
import { monotonicMs } from '../io/clock.js';
import type { Workload } from '../route/router.js';
import type { Connection } from '../upstream/connection.js';
import type { Latencies } from '../io/latency.js';
import { OutOfStep } from './failures.js';
import { allLongCommands, longCommandsIn, type LongCommands } from './lane.js';
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
  /** How long effects may wait so that several share a write, in ms. */
  readonly batchMs: number;
}

/** At this number of effects they are sent at the end of the turn, without waiting for more. */
const BATCH_EFFECTS = 2048;
/** Bytes that may be in the socket. More waits in `unsent`, where a time to live can still be corrected. */
const WINDOW_BYTES = 1 << 20;
/** A time to live that has waited longer than this, in ms, is sent as the time that is left. */
const TTL_LAG_MS = 4;
/** An operation that waits longer than this, in ms, is detached from its input buffers. */
const DETACH_MS = 50;
const RETRY_MIN_MS = 20;
const RETRY_MAX_MS = 1000;
/** How long after a refusal, in ms, an effect makes the proxy ask for its database again. */
const REFUSED_MS = 1000;
/** How long, in ms, a channel may be idle before it is closed. The channel of database 0 stays. */
const IDLE_MS = 60_000;

const MINUS = '-'.charCodeAt(0);
const [THREE, CR] = ['3'.charCodeAt(0), 13];

export class MirrorLane implements ChannelOwner {
  /** Called with each operation as it gets its place in the order; null without a listener. */
  #listeners: readonly ((operation: Operation) => void)[] | null = null;
  /** By how many whole ms the mirror's clock is ahead of the authority's; 0 if they agree. */
  clockAheadMs = 0;
  /** Since when `clockAheadMs` is known, in ms of the monotonic clock; Infinity while measurements contradict it. */
  clockKnownFrom = 0;
  readonly #unsent = new Ring<Operation>();
  readonly #main: MirrorChannel;
  /** The channels by database. */
  readonly #channels = new Map<number, MirrorChannel>();
  /**
   * The channel for effects in the present database that do not reach beyond it; null if the channel has to be chosen
   * again.
   */
  #current: MirrorChannel | null = null;
  /** The channel with an unconfirmed effect beyond its database; the other channels wait for it. */
  #alone: MirrorChannel | null = null;
  /** The channel with an unconfirmed SWAPDB; all channels wait for it. */
  #swapping: MirrorChannel | null = null;
  /** A SWAPDB was lost with its connection. It may still run until that connection is seen to be closed. */
  #mayHaveSwapped = false;
  /** An effect waits for the replies to others. */
  #waitingForReplies = false;
  /** How often the mirror was connected. */
  #times = 0;
  #up = false;
  /** The client IDs of lost connections at the server, until they are seen to be closed there. */
  #lostClientIds: number[] = [];
  #lostRunId = '';
  #bytes = 0;
  #timer: Timer | undefined;
  #retry: Timer | undefined;
  #retryMs = RETRY_MIN_MS;
  #opening = false;
  #closed = false;
  #waitingForDrain = false;
  /** How often the channels had to select their databases again. */
  #selections = 0;
  /** How many of the oldest operations in `unsent` are detached. */
  #detached = 0;
  #detaching: Timer | undefined;
  readonly #marks: Mark[] = [];
  /** How many effects were appended, and how many of them were sent or dropped. */
  #pushed = 0;
  #taken = 0;
  /** Gates; while one is closed, effects after the first `at` wait. */
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

  /** Effects that the mirror's server may be working on for long. */
  get longCommands(): LongCommands {
    const each = [...this.#channels.values()].map(({ sent }) => longCommandsIn(sent, ({ answeredAt }) => answeredAt));
    return allLongCommands(each);
  }

  /** When the mirror's server last replied, in ms of the monotonic clock; -Infinity without a connection. */
  get repliedAt(): number {
    return Math.max(...[...this.#channels.values()].map(({ usedAt }) => usedAt));
  }

  /** Why effects in the database are not sent; null if they are, as far as is known. */
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

  /** Appends an effect. If there is no room, it is reported as dropped. */
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

  /** Appends effects that must run as neighbours. If there is no room, each is reported as dropped. */
  appendAll(operations: readonly Operation[]): void {
    const size = operations.reduce((sum, operation) => sum + operation.size, 0);
    if (this.#bytes + size > this.limits.queueBytes && this.queued > 0)
      for (const operation of operations) this.events.dropped(operation);
    else for (const operation of operations) this.#push(operation);
  }

  /** Calls `listener` with each operation when it gets its place in the order. @returns a function that ends this */
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

  /**
   * Closes a gate: effects that are appended from now on wait until the returned function opens it. Earlier changes are
   * still being determined.
   */
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

  /** How many gates are closed. */
  get gates(): number {
    return this.#gates.length;
  }

  /** Whether every effect is confirmed, and no gate is closed. */
  get isEmpty(): boolean {
    return this.queued === 0 && this.#gates.length === 0;
  }

  /** Calls `visit` for each waiting operation, per database from the oldest on, until it returns false. */
  eachQueued(visit: (operation: Operation) => boolean): void {
    for (const ring of [...[...this.#channels.values()].map(({ sent }) => sent), this.#unsent]) {
      for (let i = 0; i < ring.length; i++) if (!visit(ring.at(i)!)) return;
    }
  }

  /**
   * Lets every channel select its database again, and wait for the answer, before it sends anything else. After SWAPDB,
   * KeyDB's connections still use the former data of their databases.
   */
  selectAgain(): void {
    this.#selections++;
    this.#current = null;
    for (const channel of this.#channels.values()) channel.stale = true;
  }

  /** Sends the waiting effects now. */
  flush(): void {
    this.#flush();
  }

  /** Leaves the server at once, for the one to which the endpoint leads now. */
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

  /** Detaches operations that have waited for long, and closes idle channels. */
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
   * The channel for the next effect; it may refuse the effect. Null if the effect has to wait: for the server to
   * confirm the database, or for an earlier effect to be confirmed.
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
        // A new connection has its database, or was refused it by an error.
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

  /** Sends a question on which all later commands depend; nothing more is sent on the channel until it is answered. */
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
   * Switches the channel to the protocol of the next effect. A refused HELLO changes only the form of replies, so it is
   * confirmed once for each connection, and later sent along with the effects. If the server refuses it, commands are
   * sent all the same, except reads, which are only compared.
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
    // Its lag is that of the effect behind it.
    hello.answeredAt = operation.answeredAt;
    this.#bytes += hello.size;
    return 'spoken';
  }

  /** Drops the next effect, which the mirror refuses. */
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

  /**
   * Corrects the times in an effect: a time to live to what is left of it, an absolute expiry to the mirror's clock.
   */
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
    // SET key value has none.
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

  /** One connection is lost: the others are closed with it. All of them must be seen to be closed at the server. */
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

  /** Remembers a lost connection, if it led to the last server: on another server it can change nothing here. */
  #mustEnd({ runId, clientId }: Connection): void {
    if (runId !== this.#lostRunId) this.#lostClientIds = [];
    this.#lostRunId = runId;
    this.#lostClientIds.push(clientId);
  }

  /**
   * All operations that the channel has sent. If a transaction was sent in part, its rest is included: it cannot
   * continue.
   */
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
      // Commands of the lost connections in the server's receive buffers must not run after new ones.
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

  /** Asks for a database that was refused some time ago, on a connection of its own. */
  #tryAgain(channel: MirrorChannel): void {
    if (this.#up && !channel.opening && monotonicMs() >= channel.retryAt) void this.#openChannel(channel);
  }

  /** Opens a connection in the channel's database. Its effects wait for it, unless the database was refused before. */
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

/** Waits for so many effects of each channel, and for all gates among the first `pushed` effects. */
interface Mark {
  readonly waits: readonly { readonly channel: MirrorChannel; readonly at: number }[];
  readonly pushed: number;
  readonly then: () => void;
}

const isConfirmed = ({ waits }: Mark): boolean => waits.every(({ channel, at }) => channel.done >= at);

/** Detaches the oldest operations, as far as they have waited since `since`. @returns how many are detached */
function detachIn(ring: Ring<Operation>, detached: number, since: number): number {
  for (; detached < ring.length; detached++) {
    const operation = ring.at(detached)!;
    if (operation.answeredAt > since) break;
    operation.detach();
  }
  return detached;
}

/** FLUSHALL and the like are small and rare, and no list of suspects could name what they changed. */
const isIndispensable = ({ spec }: Operation): boolean => spec?.handling === 'exclusive';
