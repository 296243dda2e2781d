/**
 * One client: what it said of itself (database, user, protocol, name), and its commands on their way.
 *
 *   socket ─▶ parser ─▶ dispatch ─┬─ local ────────────────▶ reply (behind those in flight)
 *                                 ├─ keyed ─▶ route ─▶ lane ─▶ answered ─▶ outbox ─▶ socket
 *                                 ├─ queued (MULTI) ─▶ EXEC ─▶ one batch on a lane
 *                                 └─ refused ─────────────▶ an error that says what to do
 *
 * The commands of a client are never reordered: while it has commands in flight on one lane, one for another lane
 * waits. So replies need no sorting, and what a client sees is what one Redis would have shown it.
 */
import type { Socket } from 'node:net';
import { titleOf } from '../command/forms.js';
import { refusal } from '../command/policy.js';
import type { CommandSpec } from '../command/table.js';
import type { Credentials } from '../upstream/dialer.js';
import { removeExpired } from '../pipeline/expired.js';
import type { Lane } from '../pipeline/lane.js';
import { Login } from '../upstream/login.js';
import { readInto } from '../io/intake.js';
import type { KeyOrder, Ticket } from '../pipeline/key-locks.js';
import { NOTHING, Operation, READ, WRITE, type Follow, type Sink } from '../pipeline/operation.js';
import { Outbox } from '../io/outbox.js';
import { HandshakeRefused } from '../upstream/server.js';
import { argumentsOf, isError, text } from '../resp/decode.js';
import { error } from '../resp/encode.js';
import { RequestParser } from '../resp/request.js';
import { ProtocolError } from '../resp/scan.js';
import { countUnsupported, type Workload } from '../route/router.js';
import { otherSide, type Side, type StageRule } from '../route/stage.js';
import { barrier } from './handlers/exclusive.js';
import { asksToBlock, block, type Blocked } from './handlers/blocking.js';
import { both } from './handlers/broadcast.js';
import type { Clients } from './clients.js';
import { LARGE } from './large-replies.js';
import { answerLocally } from './handlers/answered-here.js';
import { answerOwned } from './handlers/owned.js';
import { publish, subscription, type Subscriptions } from './handlers/pubsub.js';
import { takeRegional } from './handlers/regional.js';
import { crossesDatabases, routeKeys, type Route } from './routing.js';
import { scanOf, shapeOf } from './handlers/scan.js';
import { noting, takeScript } from './handlers/script.js';
import { crossing, splits, submitSplit } from './handlers/split.js';
import { takeStray } from './handlers/second-writer.js';
import { sendInside, sendProbed, type Transaction } from './handlers/transaction.js';
import type { Watch } from './handlers/watch.js';

const MINUS = '-'.charCodeAt(0);
/** Commands of one client in flight at a time: others wait behind them on the lane. Reading from it stops meanwhile. */
const MAX_IN_FLIGHT = 256;
/** Bytes of replies that one client may have coming on the lane, by what its replies take. */
const MAX_COMING = 1 << 20;
/**
 * What a reply to a client is taken to need before the first has come: so many commands that a short pipeline waits for
 * nothing.
 */
const FIRST_REPLY = 32 << 10;
/** Likewise of a write, whose reply is a status or a number most of the time. */
const FIRST_WRITE_REPLY = 1 << 10;
/** The power of two of how many replies a large one is remembered for. */
const REPLY_MEMORY = 4;
/** What a command costs beside its bytes, in bytes of the budget of a turn. */
const COMMAND_COST = 256;
/** From this size on a reply is added only if the client has not left too much unread. */
const LARGE_REPLY = 4096;
/** A script that has been in flight for longer than this, in ms, may be one that a client is about to end. */
const LONG_SCRIPT_MS = 500;
/** A client whose host is gone is noticed after about so long, as by Redis. */
const KEEP_ALIVE_MS = 300_000;
/**
 * How long a client that was told so may take to close its end; and one that has closed its end, to read its last
 * replies.
 */
const LINGER_MS = 1_000;
const LAST_READ_MS = 60_000;
/** Bytes that a lane may owe its server before its clients are read no further. */
const MAX_UNSENT = 1 << 20;
/** Bytes of commands that a client may send while it blocks, before it is read no further. */
const MAX_BACKLOG = 1 << 20;
/** Bytes of replies that a client may owe reading, or that wait behind one reply, before it is read no further. */
const MAX_UNREAD = 1 << 20;
/**
 * A client that takes nothing for so long, in ms, may be one that sends all of a pipeline before it reads: it is read
 * on.
 */
const STUCK_MS = 100;

export class Session implements Sink {
  readonly id: number;
  db = 0;
  protocol: 2 | 3 = 2;
  name = '';
  login = new Login(undefined);
  transaction: Transaction | null = null;
  watch: Watch | null = null;
  blocked: Blocked | null = null;
  subscriptions: Subscriptions | null = null;
  replies: 'on' | 'off' | 'skip' = 'on';
  readonly parser = new RequestParser();
  readonly clients: Clients;
  readonly outbox: Outbox;
  readonly socket: Socket;
  /** When it connected, and when it last sent something or was served, in ms of the monotonic clock. */
  readonly connectedAt = performance.now();
  activeAt = this.connectedAt;
  #inFlight = 0;
  /** Of its commands in flight, those that are writes. */
  #writesInFlight = 0;
  /** Bytes of a reply to a read, and to a write, of this client: those of its largest of late. */
  #replyBytes = FIRST_REPLY;
  #writeReplyBytes = FIRST_WRITE_REPLY;
  /** No reply has come yet that tells what its replies take; and how many reads it has in flight meanwhile. */
  #untried = true;
  #untriedReads = 0;
  /** Its replies are large, so that it takes turns with others of whom that is true. */
  #takesTurns = false;
  #last: Operation | null = null;
  /** Bytes of replies that it may owe reading before it is read no further. */
  #mayLeave = MAX_UNREAD;
  /** Bytes of replies of the proxy's own that wait for `#last` to be answered. */
  #tailBytes = 0;
  /** The turn that it has begun to spend, and how much of that is left. */
  #turnAt = 0;
  #turnLeft = 0;
  /** The lane of its commands in flight, or of the last one. */
  #lane: Lane | null = null;
  /** The lanes for what it says of itself now. */
  #lanes: Record<Side, Lane | null> = { source: null, target: null };
  #held = false;
  #running = false;
  /** While too much is in flight: how much may be left when reading goes on; otherwise -1. */
  #resumeAt = -1;
  /** The held command is to be looked at again, as it was. */
  #again = false;
  /** The place of the command at hand in the order of keys, if it has had to wait. */
  #turn: Ticket | null = null;
  #onIdle: (() => void) | null = null;
  #backlog: Buffer[] = [];
  #backlogBytes = 0;
  /** The client sends nothing more, and may still read. */
  halfClosed = false;
  #closing = false;
  #destroyed = false;
  closed = false;
  constructor(connected: Socket, clients: Clients) {
    const socket = readInto(clients.intake, connected, (chunk, start, end) => this.#data(chunk, start, end));
    this.socket = socket;
    this.clients = clients;
    this.id = clients.nextId();
    this.outbox = new Outbox(clients.sequencer.turn, socket);
    this.identity = { db: 0, protocol: 2, credentials: undefined, login: this.login };
    this.admit();
    this.parser.maxArguments = clients.maxArguments;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    socket.on('error', () => undefined);
    // Not before: a TLS handshake that is given up ends with its connection.
    socket.allowHalfOpen = true;
    socket.on('end', () => this.#endOfInput());
    socket.on('close', () => {
      this.closed = true;
      this.subscriptions?.close();
      clients.left(this);
      if (this.#untried) this.#tried();
      this.blocked?.abandon();
      this.watch?.end();
      this.#leaveQueue();
    });
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** Bytes of memory that it takes: what it does not read, what it has sent and is not run yet. */
  get bytes(): number {
    return this.outbox.bytes + this.#tailBytes + this.#backlogBytes + this.parser.held + (this.transaction?.bytes ?? 0);
  }

  /** Whether it waits for nothing: no command, no message. */
  get isIdle(): boolean {
    return (
      this.#inFlight === 0 &&
      !this.#held &&
      this.blocked === null &&
      (this.subscriptions === null || this.subscriptions.total === 0)
    );
  }

  get credentials(): Credentials | undefined {
    return this.login.credentials;
  }

  /** Whether its next command is refused, as far as is known, unless it logs in. */
  get mustLogIn(): boolean {
    const { clients, login } = this;
    return login.credentials === undefined && clients.needsPassword && login.standing[clients.side] !== 'admitted';
  }

  /** The client has just connected, or is as if it had: the server is asked whether it lets it in. */
  admit(): void {
    const { clients } = this;
    this.parser.unauthenticated = this.mustLogIn;
    // Where the server cannot be asked, the first command asks again.
    clients.sequencer.lanes[clients.side].admit(this.login).then(
      () => this.checkLimits(),
      () => undefined,
    );
  }

  /** Clients that have to log in may send less: Redis's limits. */
  checkLimits(): void {
    this.parser.unauthenticated = this.mustLogIn;
  }

  /** The lanes that it is on. */
  get lanes(): readonly (Lane | null)[] {
    return [this.#lanes.source, this.#lanes.target];
  }

  // ── in ──────────────────────────────────────────────────────────────────────────────────────────────────────

  #data(chunk: Buffer, start: number, end: number): void {
    if (this.#closing) return;
    this.clients.limits.grew(end - start);
    if (this.#held) {
      this.#backlog.push(Buffer.from(chunk.subarray(start, end)));
      this.#backlogBytes += end - start;
      if (this.#backlogBytes > MAX_BACKLOG) this.socket.pause();
    } else {
      this.parser.feed(chunk, start, end);
      this.#run(end - start);
    }
  }

  /** @param bytes that were read for it */
  #run(bytes = 0): void {
    const { parser, clients } = this;
    const now = clients.sequencer.turn.now();
    if (this.#turnAt !== now) {
      this.#turnAt = now;
      this.#turnLeft = clients.turnBudget.share(now);
    }
    this.#turnLeft -= bytes;
    this.activeAt = now;
    this.#running = true;
    try {
      while (!this.#held && !this.#closing) {
        if (this.#turnLeft <= 0 || this.#tailBytes > MAX_UNREAD) {
          if (this.#turnLeft <= 0) {
            clients.turnBudget.usedUp();
            this.#awaitTurn();
          } else this.#whenIdle(() => this.resume(), this.#again);
          break;
        }
        if (this.#takesTurns && !clients.largeReplies.admits(this)) {
          this.#hold(this.#again);
          if (this.#inFlight > 0) this.#resumeAt = 0;
          break;
        }
        this.#turnLeft -= COMMAND_COST;
        const again = this.#again;
        if (again) this.#again = false;
        else if (!parser.next()) {
          const chunk = this.#backlog.shift();
          if (chunk === undefined) break;
          this.#backlogBytes -= chunk.length;
          parser.feed(chunk);
          continue;
        } else if (this.#turn !== null) this.#leaveQueue();
        this.#dispatch(again);
      }
    } catch (problem) {
      if (!(problem instanceof ProtocolError)) throw problem;
      this.reply(problem.toReply());
      this.end();
      return;
    } finally {
      this.#running = false;
      if (this.#takesTurns && this.#inFlight === 0) clients.largeReplies.idle(this);
    }
    if (this.#held) return;
    if (this.halfClosed) return this.end();
    parser.release();
    if (this.outbox.bytes > this.#mayLeave) this.#awaitTurn();
  }

  /**
   * The client has closed its side: as with Redis it gets the replies to all that it has sent, but nothing that it
   * would have to wait for.
   */
  #endOfInput(): void {
    this.halfClosed = true;
    if (this.blocked?.isWaiting || (this.subscriptions !== null && this.subscriptions.total > 0)) this.destroy();
    else if (!this.#held) this.end();
  }

  /** @param again whether the command at hand was looked at before, and had to wait */
  #dispatch(again: boolean): void {
    const { parser, clients } = this;
    const { frame, argStart, argEnd, argc } = parser;
    const spec = clients.sequencer.table.find(frame, argStart, argEnd, argc);
    if (spec !== undefined && spec.forms !== null && !again) clients.support.offer(this, spec, spec.forms);
    if (clients.sequencer.barred) {
      this.awaitOpen();
      return;
    }
    if (this.subscriptions?.takes(spec)) return;
    if (spec === undefined) {
      this.#unknown(again);
      return;
    }
    if (spec.handling === 'local') {
      answerLocally(this, spec.name);
      return;
    }
    const refused = spec.refusable ? refusal(spec, frame, argStart, argEnd, argc) : null;
    if (refused !== null) {
      this.refuse(refused);
      return;
    }
    if (clients.sequencer.router.pinsElsewhere && takeStray(this, spec, again)) return;
    if (clients.sequencer.router.rewrites && takeRegional(this, spec)) return;
    if (spec.watched >= 0 && !again) clients.counterWatch.offer(this, spec);
    if (this.transaction !== null) {
      this.transaction.queue(spec);
      return;
    }
    if (spec.blocking !== null && asksToBlock(this, spec.blocking)) {
      block(this, spec);
      return;
    }
    switch (spec.handling) {
      case 'keyed':
      case 'script':
        this.#keyed(spec);
        return;
      case 'barrier':
        barrier(this, spec);
        return;
      case 'both':
        both(this, spec);
        return;
      case 'publish':
        publish(this, spec);
        return;
      case 'subscribe':
        subscription(this, spec);
        return;
      default:
        this.plain(spec);
    }
  }

  // ── on the way ──────────────────────────────────────────────────────────────────────────────────────────────

  #keyed(spec: CommandSpec): void {
    const { parser } = this;
    const router = this.clients.sequencer.router;
    const at = spec.singleKey;
    if (at === 0 || at >= parser.argc) {
      this.#severalKeys(spec);
      return;
    }
    const start = parser.argStart[at];
    const end = parser.argEnd[at];
    const workload = router.match(parser.frame, start, end);
    if (workload.held) {
      this.awaitOpen();
      return;
    }
    this.#send(spec, workload, workload.rule(parser.frame, start, end), false, at);
  }

  #severalKeys(spec: CommandSpec): void {
    const { parser } = this;
    const { sequencer } = this.clients;
    const route = routeKeys(sequencer.router, spec, parser);
    if (route === null) {
      this.awaitOpen();
      return;
    }
    const { workload, rule, other, mixed } = route;
    const hidden = this.hidesKeys(spec, route);
    if (hidden !== null) {
      this.refuse(hidden);
      return;
    }
    if (spec.handling === 'script' && other === null && takeScript(this, spec, route)) return;
    if (spec.name === 'copy' && crossesDatabases(parser)) {
      barrier(this, spec, rule.authority);
      return;
    }
    if (other !== null) {
      if (splits(spec.name)) {
        this.clients.split++;
        this.#whenIdle(() => submitSplit(this, spec));
      } else {
        this.clients.crossRefused++;
        this.refuse(crossing(spec.name, workload, other));
      }
      return;
    }
    this.#send(spec, workload, rule, mixed, 0);
  }

  /** Why the command at hand cannot be run, for it does not tell all its keys; null where it can. */
  hidesKeys(spec: CommandSpec, route: Route): string | null {
    if (!route.hidden || this.clients.sequencer.router.oneAuthority) return null;
    this.clients.crossRefused++;
    return `ERR shadow-proxy: ${spec.name.toUpperCase()} with a pattern hides its keys, and is refused while workloads have different authorities`;
  }

  /** Sends the command at hand, as it lies in the buffer, to its authority. */
  #send(spec: CommandSpec, workload: Workload, rule: StageRule, mixed: boolean, key: number): void {
    const { parser, clients } = this;
    const { sequencer } = clients;
    const lane = this.laneTo(rule.authority);
    if (lane === null) return;
    const follow = this.followOf(spec, rule, mixed);
    const operation = new Operation(
      parser.frame,
      parser.start,
      parser.end,
      this,
      spec,
      workload,
      this.db,
      this.protocol,
      follow,
    );
    operation.mustCopy = mixed;
    const probe = follow === WRITE ? sequencer.probeFor(operation) : null;
    const order = sequencer.lanes[rule.authority].order(this.db);
    if (order.active) {
      // Most keys have nobody who waits for them.
      const concerned =
        key === 0 ||
        order.tracking ||
        order.concerns(parser.frame.toString('latin1', parser.argStart[key], parser.argEnd[key]));
      if (concerned && !this.#ordered(operation, lane, probe !== null)) return;
    }
    if (follow === WRITE) {
      if (key > 0) sequencer.journal.noteKey(this.db, parser.frame, parser.argStart[key], parser.argEnd[key]);
      else sequencer.doubts.note(this.db, parser.frame, parser.start);
    }
    if (spec.handling === 'script') {
      operation.sink = noting(this);
      if (follow === WRITE && sequencer.hidesChanges(parser.frame, parser.start))
        sequencer.beginSpan(operation, rule.authority);
    }
    if (lane.server.isKeydb) removeExpired(sequencer, lane, spec, workload, parser.frame, parser.start);
    clients.count(spec, workload);
    if (probe !== null) sendProbed(this, operation, lane, probe);
    else this.submit(operation, lane);
  }

  /** What is to follow on the mirror. */
  followOf(spec: CommandSpec, rule: StageRule, mixed: boolean): Follow {
    const { sequencer } = this.clients;
    if (spec.write || spec.handling === 'script') {
      if (!rule.mirrorsWrites && !mixed) return NOTHING;
      if (!spec.write && spec.readOnlyScript) return NOTHING;
      return WRITE;
    }
    if (!rule.mirrorsReads || mixed) return NOTHING;
    return sequencer.mirrorKnows(rule.authority, spec) && sequencer.servers[rule.authority].knows(spec)
      ? READ
      : NOTHING;
  }

  /**
   * Asks the authority something in this client's name; the client is held meanwhile. Once all that it sent before is
   * answered, `then` gets the refusal, or null: the answer itself is for nobody.
   */
  inquire(frame: Buffer, then: (refusal: Buffer | null) => void): void {
    const { router } = this.clients.sequencer;
    const lane = this.laneTo(router.default.keylessRule.authority);
    if (lane === null) return;
    // A server that is busy answers HELLO and its like to a new client: the lane may wait for the script that this one
    // is to end.
    if (this.#inFlight === 0 && this.clients.sequencer.turn.now() - lane.scripts.since > LONG_SCRIPT_MS)
      return this.#inquireBeside(frame, lane, then);
    const sink: Sink = {
      answered: (_operation, buffer, start, end) => {
        this.#settle();
        then(buffer[start] === MINUS ? buffer.subarray(start, end) : null);
        this.resume();
      },
      lost: (operation, reason) => this.lost(operation, reason),
    };
    this.#lane = lane;
    this.#inFlight++;
    this.#hold(false);
    this.clients.sequencer.submit(
      new Operation(frame, 0, frame.length, sink, undefined, router.default, this.db, this.protocol, NOTHING),
      lane,
    );
  }

  /** Likewise, on a connection of its own. */
  #inquireBeside(frame: Buffer, lane: Lane, then: (refusal: Buffer | null) => void): void {
    this.#hold(false);
    lane.server.askAs(this.credentials, ...argumentsOf(frame)).then(
      (reply) => {
        then(isError(reply) ? error(text(reply)) : null);
        this.resume();
      },
      (problem: Error) => this.noLane(problem),
    );
  }

  /** Waits, where several lanes lead to the database, for what they have in flight on the command's keys. */
  #ordered(operation: Operation, lane: Lane, probed: boolean): boolean {
    const { sequencer } = this.clients;
    const keys = sequencer.keys.ids(operation.frame, operation.start);
    const writes = operation.spec === undefined || operation.spec.write || operation.spec.handling === 'script';
    if (!this.admitted(lane, keys, writes)) return false;
    // Behind a probed command, its second read holds the keys.
    if (!probed) sequencer.hold(operation, lane, keys, writes);
    return true;
  }

  /** Whether the keys are free of what other lanes have in flight; if not, the command at hand waits. */
  admitted(lane: Lane, keys: readonly string[], writes: boolean): boolean {
    const order = this.clients.sequencer.lanes[lane.server.side].order(lane.identity.db);
    if (!order.active) return true;
    // What it wakes, it has the keys of, too.
    return this.#inTurn(order, lane, writes ? order.withWoken(keys) : keys, writes);
  }

  /** Whether nobody has one of the keys; if somebody has, the command at hand waits. */
  admittedAlone(order: KeyOrder, keys: readonly string[]): boolean {
    return this.#inTurn(order, null, keys, true);
  }

  #inTurn(order: KeyOrder, lane: Lane | null, keys: readonly string[], writes: boolean): boolean {
    if (this.#turn !== null && this.#turn.order !== order) this.#leaveQueue();
    const turn = this.#turn;
    if (order.admits(lane, keys, writes, turn)) {
      if (turn !== null) this.#leaveQueue();
      return true;
    }
    this.#hold(true);
    this.#turn = order.wait({ lane, keys, writes, go: () => this.resume() }, turn);
    return false;
  }

  #leaveQueue(): void {
    const turn = this.#turn;
    this.#turn = null;
    turn?.order.leave(turn);
  }

  /** Puts an operation of this client, or one that will be answered in its name, on a lane. */
  submit(operation: Operation, lane: Lane): void {
    this.adopt(operation, lane);
    this.clients.sequencer.submit(operation, lane);
  }

  /** Counts an operation as in flight whose reply will come through `answered` or `deliver`. */
  adopt(operation: Operation, lane: Lane): void {
    if (this.replies !== 'on') {
      operation.silent = true;
      if (this.replies === 'skip') this.replies = 'on';
    }
    this.#lane = lane;
    this.#last = operation;
    this.#inFlight++;
    if (operation.spec?.write === true) this.#writesInFlight++;
    else if (this.#untried && !this.#mayTryMore() && !this.#held) {
      this.#resumeAt = this.#inFlight - 1;
      this.#hold(false);
      return;
    }
    if (this.#inFlight >= MAX_IN_FLIGHT || this.#comingBytes >= MAX_COMING || lane.unsentBytes > MAX_UNSENT) {
      this.#resumeAt = this.#inFlight >> 1;
      this.#hold(false);
    }
  }

  /**
   * The lane for this client's commands to one of the servers; null when the command waits: for a lane that is being
   * opened, or for its own commands in flight on another one.
   */
  laneTo(side: Side): Lane | null {
    const known = this.#lanes[side];
    const wasLost = known !== null && known.closed;
    if (known !== null && !wasLost) {
      if (known === this.#lane || this.#inFlight === 0) return known;
      this.#whenIdle(() => this.resume(), true);
      return null;
    }
    const lanes = this.clients.sequencer.lanes[side];
    const { identity } = this;
    const open = lanes.get(identity);
    if (open !== undefined && !open.closed) {
      this.#lanes[side] = open;
      return this.laneTo(side);
    }
    this.#hold(true);
    lanes.open(identity).then(
      () => this.resume(),
      // What it had is lost, and the server lets it in no more: the server would have ended its connection.
      (problem: Error) => (wasLost && isAboutLogin(problem) ? this.destroy() : this.noLane(problem)),
    );
    return null;
  }

  identity: Lane['identity'];

  /** The command at hand is looked at again when a lane is open; without it, the command has failed. */
  awaitLane(opening: Promise<unknown>): void {
    this.#hold(true);
    opening.then(
      () => this.resume(),
      (problem: Error) => this.noLane(problem),
    );
  }

  /** After a change of database, user or protocol. */
  reidentify(): void {
    this.identity = { db: this.db, protocol: this.protocol, credentials: this.credentials, login: this.login };
    this.#lanes = { source: null, target: null };
    this.subscriptions?.reidentified();
  }

  /** The command at hand has no lane to go on. */
  noLane(problem: Error): void {
    if (problem instanceof HandshakeRefused) {
      // Of a transaction, it is EXEC that needs a lane: it has failed.
      if (this.transaction !== null) this.watch?.end();
      this.transaction = null;
      this.#again = false;
      this.#held = false;
      this.replyRefused(problem);
      this.socket.resume();
      this.#run();
    } else {
      // As the loss of the server would show itself.
      this.destroy();
    }
  }

  // ── out ─────────────────────────────────────────────────────────────────────────────────────────────────────

  answered(operation: Operation, buffer: Buffer, start: number, end: number): void {
    const bytes = end - start;
    if (this.#untried) this.#tried();
    if (operation.spec?.write === true) {
      this.#writesInFlight--;
      this.#writeReplyBytes = largestOfLate(this.#writeReplyBytes, bytes);
    } else this.#replyBytes = largestOfLate(this.#replyBytes, bytes);
    if (bytes >= LARGE || this.#takesTurns) this.#largeReply(bytes);
    if (!this.closed) {
      if (buffer[start] === MINUS && !operation.silent)
        this.#countError(operation.lane?.server.side, buffer, start, end);
      // As many small ones as can be in flight are no danger.
      if (bytes > LARGE_REPLY && !this.mayOwe(bytes)) this.clients.limits.close(this, 'output');
      else if (!operation.silent) this.outbox.add(buffer, start, end);
      if (operation.tail !== null) for (const reply of operation.tail) this.outbox.addWhole(reply);
    }
    this.#settle();
  }

  /** It has one read more in flight of which nothing tells how large the reply is. */
  #mayTryMore(): boolean {
    this.#untriedReads++;
    return this.clients.largeReplies.mayTry(this.clients.sequencer.turn.now());
  }

  #tried(): void {
    this.#untried = false;
    this.clients.largeReplies.tried(this.#untriedReads);
  }

  /** A reply was large, or one of late was. */
  #largeReply(bytes: number): void {
    const { largeReplies, sequencer } = this.clients;
    if (bytes >= LARGE) largeReplies.seen(sequencer.turn.now());
    this.#takesTurns = this.#replyBytes >= LARGE || this.#writeReplyBytes >= LARGE;
    if (!this.#takesTurns) largeReplies.idle(this);
  }

  /** Bytes that the replies to its commands in flight are taken to need. */
  get #comingBytes(): number {
    return (this.#inFlight - this.#writesInFlight) * this.#replyBytes + this.#writesInFlight * this.#writeReplyBytes;
  }

  /** Whether so many bytes more may wait for the client to read them. */
  mayOwe(bytes: number): boolean {
    const { limits } = this.clients;
    limits.grew(bytes);
    return this.outbox.bytes <= limits.bounds.clientOutputBytes;
  }

  /** The reply of an operation that somebody else carried in this client's name. */
  deliver(operation: Operation, reply: Buffer): void {
    this.answered(operation, reply, 0, reply.length);
  }

  lost(operation: Operation, reason: Error): void {
    void operation;
    void reason;
    this.destroy();
    this.#settle();
  }

  #settle(): void {
    const left = --this.#inFlight;
    if (left === 0) {
      this.#last = null;
      this.#tailBytes = 0;
      this.#writesInFlight = 0;
      if (this.#takesTurns) this.clients.largeReplies.idle(this);
    }
    if (this.#onIdle !== null && left === 0) {
      const onIdle = this.#onIdle;
      this.#onIdle = null;
      onIdle();
    } else if (left <= this.#resumeAt) {
      this.#resumeAt = -1;
      this.resume();
    }
  }

  /** A server does not let the client in: its own error. */
  replyRefused({ reply, side }: HandshakeRefused): void {
    this.reply(Buffer.from(`-${reply}\r\n`, 'latin1'), side);
  }

  /** A reply of the proxy's own, or of the server `from`: behind the replies that are in flight. */
  reply(bytes: Buffer, from?: Side): void {
    if (this.replies !== 'on') {
      if (this.replies === 'skip') this.replies = 'on';
      return;
    }
    if (bytes[0] === MINUS) this.#countError(from, bytes, 0, bytes.length);
    const last = this.#last;
    if (last === null) return this.outbox.addWhole(bytes);
    (last.tail ??= []).push(bytes);
    this.#tailBytes += bytes.length;
  }

  #countError(authority: Side | undefined, buffer: Buffer, start: number, end: number): void {
    const { clients } = this;
    clients.errors.count(authority ?? clients.sequencer.router.default.keylessRule.authority, buffer, start, end);
  }

  refuse(message: string): void {
    this.transaction?.spoil();
    this.reply(error(message));
  }

  // ── waiting ─────────────────────────────────────────────────────────────────────────────────────────────────

  /** Reads no further; `again` has the command at hand dispatched anew on `resume`. */
  #hold(again: boolean): void {
    this.#held = true;
    this.#again = again;
    this.socket.pause();
  }

  /** Holds the client until `resume` is called; the command at hand is done with. */
  hold(): void {
    this.#hold(false);
  }

  /** Holds the client until all that it has in flight is answered. */
  holdUntilIdle(): void {
    this.#resumeAt = 0;
    this.#hold(false);
  }

  /** Likewise for as long as may be: that the client closes its end is still seen. */
  holdOpen(again: boolean): void {
    this.#held = true;
    this.#again = again;
    this.socket.resume();
  }

  resume(): void {
    if (!this.#held || this.closed) return;
    this.#held = false;
    this.socket.resume();
    // Where the command at hand was done with at once, the loop that dispatched it goes on.
    if (!this.#running) this.#run();
  }

  /** Runs `then` once nothing of this client is in flight; the client is held from now on. */
  #whenIdle(then: () => void, again = false): void {
    this.#hold(again);
    if (this.#inFlight === 0) then();
    else this.#onIdle = then;
  }

  whenIdle(then: () => void): void {
    this.#whenIdle(then);
  }

  /** The command at hand is looked at again when nothing of this client is in flight. */
  awaitIdle(): void {
    this.#whenIdle(() => this.resume(), true);
  }

  /** The command at hand is looked at again when a flip has ended, or a barrier is passed. */
  awaitOpen(): void {
    this.#hold(true);
    this.clients.onceOpen(() => this.resume(), this.blocked?.place);
  }

  /** The command at hand is looked at again when the promise is settled. */
  awaitSettled(promise: Promise<unknown>): void {
    this.#hold(true);
    promise.then(
      () => this.resume(),
      () => this.resume(),
    );
  }

  /** Goes on in the next turn; where the client leaves too much unread, when it has read. */
  #awaitTurn(): void {
    this.#hold(this.#again);
    setImmediate(() => {
      if (this.outbox.bytes > this.#mayLeave && this.socket.writableNeedDrain) this.#awaitReader();
      else this.resume();
    });
  }

  /**
   * Goes on when the client has read all. One that reads nothing meanwhile is given twice as much each time, up to the
   * limit.
   */
  #awaitReader(): void {
    const { socket, clients } = this;
    const { clientOutputBytes } = clients.limits.bounds;
    const goOn = (mayLeave: number): void => {
      socket.setTimeout(0).off('drain', drained).off('timeout', stuck);
      this.#mayLeave = mayLeave;
      this.resume();
    };
    const drained = (): void => goOn(MAX_UNREAD);
    const stuck = (): void => {
      if (this.outbox.bytes > clientOutputBytes) clients.limits.close(this, 'output');
      else goOn(Math.min(2 * this.#mayLeave, clientOutputBytes));
    };
    // A socket that passes on part of what it has to write has not timed out.
    socket.setTimeout(STUCK_MS).on('drain', drained).on('timeout', stuck);
  }

  // ── the rest ────────────────────────────────────────────────────────────────────────────────────────────────

  /** A command that neither the table nor, perhaps, the server knows: the authority answers, nothing follows. */
  #unknown(again: boolean): void {
    const { servers, router, table } = this.clients.sequencer;
    const { authority } = router.default.keylessRule;
    const word = (index: number): string => this.argument(index).toString('latin1').toLowerCase().slice(0, 64);
    const name = table.byName(word(0)) === undefined ? word(0) : `${word(0)}|${word(1)}`;
    // What no server knows, such as a client's question for something newer, is refused by both alike: no client will
    // miss it.
    const isThere = servers[authority].commands.has(name);
    const other = otherSide(authority);
    if (!again && isThere !== servers[other].commands.has(name) && servers[other].commands.size > 0) {
      countUnsupported(router.default.counters, titleOf(name), isThere ? other : authority, !isThere);
    }
    if (this.transaction !== null) {
      // The server's own refusal is sent for, unless it might not refuse: then the command would run by itself.
      if (isThere)
        return this.refuse(`ERR shadow-proxy: ${name.replace('|', ' ').toUpperCase()} inside MULTI is not supported`);
      this.transaction.spoil();
    }
    this.plain();
  }

  /** The command at hand goes to the authority of the default workload, and nothing follows. */
  plain(spec?: CommandSpec): void {
    const { router } = this.clients.sequencer;
    if (router.default.held) {
      this.awaitOpen();
      return;
    }
    const { subscribers } = this.clients;
    if (subscribers.changing && spec?.name.startsWith('pubsub|') === true && subscribers.holds(this, null)) return;
    const { parser } = this;
    const { authority } = router.default.keylessRule;
    const { owned } = this.clients;
    if (spec !== undefined && owned !== null && authority === 'target' && answerOwned(this, spec, owned)) return;
    const scan = spec?.name === 'scan' ? scanOf(this, authority) : null;
    const lane = this.laneTo(scan?.side ?? authority);
    if (lane === null) return;
    if (spec !== undefined) this.clients.count(spec, router.default);
    const [frame, start, end] = scan?.frame
      ? [scan.frame, 0, scan.frame.length]
      : [parser.frame, parser.start, parser.end];
    const sink = spec?.handling === 'script' ? noting(this) : this;
    const operation = new Operation(frame, start, end, sink, spec, router.default, this.db, this.protocol, NOTHING);
    const shape = spec !== undefined && lane.server.side === 'target' ? shapeOf(spec.name, owned) : null;
    if ((scan !== null || spec?.name === 'keys') && lane.server.isKeydb)
      return sendInside(this, operation, lane, shape);
    if (shape !== null) {
      const lost: Sink['lost'] = (each, reason) => this.lost(each, reason);
      operation.sink = {
        lost,
        answered: (each, buffer, from, to) => this.deliver(each, shape(buffer.subarray(from, to))),
      };
    }
    this.submit(operation, lane);
  }

  /** The command at hand, as a slice. */
  get command(): Buffer {
    return this.parser.frame.subarray(this.parser.start, this.parser.end);
  }

  /** An argument of the command at hand; it is a slice, valid as long as its buffer. */
  argument(index: number): Buffer {
    return this.parser.frame.subarray(this.parser.argStart[index], this.parser.argEnd[index]);
  }

  /** Answers what is in flight, then closes. */
  end(): void {
    this.#closing = true;
    this.subscriptions?.close();
    const close = (): void => {
      setImmediate(() => this.socket.end());
      const timer = setTimeout(() => this.socket.destroy(), this.halfClosed ? LAST_READ_MS : LINGER_MS).unref();
      // A timer that is left would keep all that the client had sent and not got.
      this.socket.once('close', () => clearTimeout(timer));
    };
    if (this.#inFlight === 0) close();
    else this.#onIdle = close;
  }

  /** Closes at once. What is already answered is still sent. */
  destroy(): void {
    if (this.#destroyed) return;
    this.#destroyed = true;
    this.#closing = true;
    this.subscriptions?.close();
    this.outbox.flush();
    this.socket.destroySoon();
  }
}

/** Whether a server does not let the user in, or not any more. */
const isAboutLogin = (problem: Error): boolean =>
  problem instanceof HandshakeRefused && /^(NOAUTH|WRONGPASS) /.test(problem.reply);

/** What the next reply is taken to need: a large one is remembered for about `2 ** REPLY_MEMORY` replies. */
const largestOfLate = (known: number, bytes: number): number =>
  bytes > known ? bytes : known - ((known - bytes) >> REPLY_MEMORY);
