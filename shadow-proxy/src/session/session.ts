/**
 * One client's connection: bytes in, commands dispatched one after the other, replies out in their order.
 *
 *   socket ─▶ parser ─▶ dispatch ─▶ handlers ─┬─ reply (behind those in flight) ─▶ outbox ─▶ socket
 *                                             └─ lanes ─▶ server ─▶ answered ────▶ outbox ─▶ socket
 *
 * The commands of a client are never reordered: while it has commands in flight on one lane, a command for another lane
 * waits. So replies need no sorting, and a client sees what one Redis would have shown it.
 *
 * Room: session: one client: its state, flow control, dispatch; handlers/ answer its commands.
 * Called by: sentinel, stages, health, shard.
 * Calls: io, resp, route, plan, command, telemetry, upstream, script, pipeline, regional.
 *
 * Handlers know CommandContext only.
 */
import type { Sequencer } from '../pipeline/sequencer.js';
import type { Connect } from '../io/client-socket.js';
import { Outbox } from '../io/outbox.js';
import { after, clearTimer, nextTurn } from '../io/timers.js';
import { titleOf } from '../command/forms.js';
import { closeFor } from '../pipeline/failures.js';
import type { Operation } from '../pipeline/operation.js';
import { argumentsOf } from '../resp/decode.js';
import { error } from '../resp/encode.js';
import { RequestParser } from '../resp/request.js';
import { ProtocolError } from '../resp/frame-scanner.js';
import type { Lane } from '../pipeline/lane.js';
import type { Side } from '../route/stage.js';
import type { HandshakeRefused } from '../upstream/server.js';
import { ClientLanes } from './client-lanes.js';
import { ClientState } from './client-state.js';
import { unknownIn } from './client-errors.js';
import type { Clients, ConnectedClient } from './clients.js';
import type { CommandContext } from './context.js';
import { dispatch } from './dispatch.js';
import { Flow, MAX_UNREAD, type Flowing } from './flow.js';
import { LARGE } from './large-replies.js';
import { endClient, endCommand, refuseInTransaction } from './way-out.js';

const MINUS = '-'.charCodeAt(0);
/** A reply larger than this is added only if the client has not left too much unread. */
const LARGE_REPLY = 4096;
/**
 * How long, in ms, a client may take to close its end when the proxy asks for it; and to read its last replies after it
 * has closed its sending side.
 */
const LINGER_MS = 1_000;
const LAST_READ_MS = 60_000;
/** Bytes of commands that are kept while a client blocks, before it is not read any further. */
const MAX_BACKLOG = 1 << 20;

/**
 * A client has connected. @param viaReplica whether it uses the address at which the proxy is a replica of its cluster
 */
export function accept(clients: Clients, connect: Connect, viaReplica: boolean): void {
  clients.entered(new Session(connect, clients, viaReplica));
}

export class Session implements CommandContext, ConnectedClient {
  readonly client: ClientState;
  readonly clients: Clients;
  readonly sequencer: Sequencer;
  readonly parser = new RequestParser();
  readonly flow: Flow;
  readonly lanes: ClientLanes;
  readonly #outbox: Outbox;
  /** Bytes that arrived while the client was held. */
  #backlog: Buffer[] = [];
  #backlogBytes = 0;
  /** Whether the client's replies are large: clients with large replies take turns. */
  #takesTurns = false;
  #closing = false;
  #destroyed = false;

  constructor(connect: Connect, clients: Clients, viaReplica = false) {
    const socket = connect((chunk, start, end) => this.#data(chunk, start, end));
    this.clients = clients;
    this.sequencer = clients.sequencer;
    this.client = new ClientState(clients.nextId(), socket, () => this.lanes.reidentified(), viaReplica);
    this.#outbox = new Outbox(clients.sequencer.turn, socket);
    this.lanes = new ClientLanes(this);
    this.flow = new Flow(this.#flowing());
    this.admit();
    socket.on('end', () => this.#endOfInput());
    socket.on('close', () => this.#left());
  }

  #flowing(): Flowing {
    const { client, clients, lanes } = this;
    const outbox = this.#outbox;
    const hasRoom = (): boolean => this.#backlogBytes <= MAX_BACKLOG;
    return {
      client,
      turnBudget: clients.turnBudget,
      get inFlight() {
        return lanes.inFlight;
      },
      get unread() {
        return outbox.bytes;
      },
      get hasRoom() {
        return hasRoom();
      },
      get maxUnreadBytes() {
        return clients.limits.bounds.clientOutputBytes;
      },
      onceOpen: (retry, place) => clients.waitingRoom.onceOpen(retry, place),
      run: () => this.#run(0),
      closeForOutput: () => clients.limits.close(this, 'output'),
      failed: (problem) => this.failed(problem),
    };
  }

  get inFlight(): number {
    return this.lanes.inFlight;
  }

  get isWorking(): boolean {
    return this.flow.isWorking;
  }

  get usedLanes(): readonly (Lane | null)[] {
    return this.lanes.used;
  }

  /** Bytes of memory that the client uses: unread replies, commands that are not run yet, names. */
  get bytes(): number {
    const { client, lanes, parser } = this;
    return this.#outbox.weigh() + lanes.followingBytes + this.#backlogBytes + parser.held + client.bytes;
  }

  /** Whether the client waits neither for a reply nor for a message. */
  get isIdle(): boolean {
    const { client, flow } = this;
    return this.inFlight === 0 && !flow.held && client.blocked === null && !client.isSubscriber;
  }

  get mustLogIn(): boolean {
    const { clients, client } = this;
    if (client.credentials !== undefined || !clients.needsPassword) return false;
    return client.login.states[clients.side] !== 'admitted';
  }

  admit(): void {
    const { clients, client } = this;
    this.checkLimits();
    // If the server cannot be reached, the client's first command asks again.
    clients.sequencer.lanes[clients.side].admit(client.login).then(
      () => this.checkLimits(),
      () => undefined,
    );
  }

  /** Clients that must log in may send less; these are Redis's limits. */
  checkLimits(): void {
    this.parser.unauthenticated = this.mustLogIn;
  }

  // ── in ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  get command(): Buffer {
    return this.parser.frame.subarray(this.parser.start, this.parser.end);
  }

  argument(index: number): Buffer {
    return this.parser.frame.subarray(this.parser.argStart[index], this.parser.argEnd[index]);
  }

  #data(chunk: Buffer, start: number, end: number): void {
    if (this.#closing) return;
    this.clients.limits.grew(end - start);
    if (this.flow.held) {
      this.#backlog.push(Buffer.from(chunk.subarray(start, end)));
      this.#backlogBytes += end - start;
      if (this.#backlogBytes > MAX_BACKLOG) this.flow.readNoFurther();
    } else {
      try {
        this.parser.feed(chunk, start, end);
      } catch (problem) {
        // There is no memory for the length that the client has announced.
        return this.failed(problem);
      }
      this.#run(end - start);
    }
  }

  /**
   * @param bytes how many were read for it
   */
  #run(bytes: number): void {
    const { parser, clients, flow, client, lanes } = this;
    const now = clients.sequencer.turn.now();
    flow.begin(now, bytes);
    client.wasActive(now);
    try {
      while (!flow.held && !this.#closing) {
        if (flow.waitsForTurn()) break;
        if (lanes.followingBytes > MAX_UNREAD) {
          flow.resumeWhenIdle();
          break;
        }
        if (this.#takesTurns && !clients.largeReplies.admits(this)) {
          if (lanes.inFlight > 0) flow.pauseUntil(0);
          else flow.pause();
          break;
        }
        const isRetry = flow.next();
        if (!isRetry) {
          endCommand(this);
          if (!parser.next()) {
            if (!this.#feedBacklog()) break;
            continue;
          }
        }
        dispatch(this, isRetry);
      }
    } catch (problem) {
      if (!(problem instanceof ProtocolError)) return this.failed(problem);
      this.reply(problem.toReply());
      this.end();
      return;
    } finally {
      flow.end();
      if (this.#takesTurns && lanes.inFlight === 0) clients.largeReplies.idle(this);
    }
    if (flow.held) return;
    flow.readOn();
    if (client.halfClosed) return this.end();
    parser.release();
    if (flow.leavesTooMuch) flow.awaitTurn();
  }

  #feedBacklog(): boolean {
    const chunk = this.#backlog.shift();
    if (chunk === undefined) return false;
    this.#backlogBytes -= chunk.length;
    this.parser.feed(chunk);
    return true;
  }

  /**
   * The client has closed its sending side. As with Redis it gets the replies to all that it has sent, but a command
   * that would have to block is not run.
   */
  #endOfInput(): void {
    const { client } = this;
    client.closedItsSide();
    if (client.blocked?.isWaiting || client.isSubscriber) this.destroy();
    else if (!this.flow.held) this.end();
  }

  #left(): void {
    const { client, clients, lanes } = this;
    client.left();
    client.subscriptions?.close();
    clients.left(this);
    lanes.tried();
    endClient(this);
  }

  // ── out ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  answered(operation: Operation, buffer: Buffer, start: number, end: number): void {
    const bytes = end - start;
    this.lanes.answered(operation, bytes);
    if (operation.lane?.server.side === 'target') {
      const counters = this.clients.sequencer.counters.of(operation.workload);
      counters.answeredByTarget++;
      if (buffer[start] === MINUS) counters.errorsOfTarget++;
    }
    if (bytes >= LARGE || this.#takesTurns) this.#largeReply(bytes);
    if (!this.client.closed) {
      if (buffer[start] === MINUS && !operation.silent) {
        const { lane, spec } = operation;
        const command =
          spec?.name ?? unknownIn(this.clients.sequencer.table, argumentsOf(operation.frame, operation.start));
        this.#countError(lane?.server.side, buffer, start, end, command);
        const own = this.clients.face?.insteadOf(buffer, start, end) ?? null;
        if (own !== null) [buffer, start, end] = [own, 0, own.length];
      }
      // Small replies need no check: too few can be in flight to do harm.
      if (bytes > LARGE_REPLY && !this.#mayBuffer(bytes)) this.clients.limits.close(this, 'output');
      else if (!operation.silent) this.#outbox.add(buffer, start, end);
      if (operation.followingReplies !== null)
        for (const reply of operation.followingReplies) this.#outbox.addWhole(reply);
    }
    this.settled();
  }

  lost(_operation: Operation, reason: Error): void {
    closeFor(reason, this);
    this.settled();
  }

  deliver(operation: Operation, reply: Buffer): void {
    this.answered(operation, reply, 0, reply.length);
  }

  /** A command was answered or lost. */
  settled(): void {
    const left = this.lanes.settled();
    if (left === 0 && this.#takesTurns) this.clients.largeReplies.idle(this);
    this.flow.settled(left);
  }

  /** The client's turn among those with large replies begins. */
  resume(): void {
    this.flow.resume();
  }

  /** The latest reply was large, or another recent one was. */
  #largeReply(bytes: number): void {
    const { largeReplies, sequencer } = this.clients;
    if (bytes >= LARGE) largeReplies.seen(sequencer.turn.now());
    this.#takesTurns = this.lanes.largestReply >= LARGE;
    if (!this.#takesTurns) largeReplies.idle(this);
  }

  /** Whether `bytes` bytes more may wait for the client to read them. */
  #mayBuffer(bytes: number): boolean {
    const { limits } = this.clients;
    limits.grew(bytes);
    return this.#outbox.bytes <= limits.bounds.clientOutputBytes;
  }

  pass(buffer: Buffer, start: number, end: number): void {
    if (this.#mayBuffer(end - start)) this.#outbox.add(buffer, start, end);
    else this.clients.limits.close(this, 'output');
  }

  reply(bytes: Buffer, from?: Side): void {
    const own = bytes[0] === MINUS ? (this.clients.face?.insteadOf(bytes, 0, bytes.length) ?? null) : null;
    this.#reply(own ?? bytes, from);
  }

  refuse(message: string): void {
    this.client.transaction?.spoil();
    this.#reply(error(message));
  }

  #reply(bytes: Buffer, from?: Side): void {
    const { client } = this;
    if (client.replies !== 'on') {
      if (client.replies === 'skip') client.wants('on');
      return;
    }
    if (bytes[0] === MINUS) this.#countError(from, bytes, 0, bytes.length, this.#commandAtHand());
    if (!this.lanes.behindLast(bytes)) this.#outbox.addWhole(bytes);
  }

  replyRefused({ reply, side }: HandshakeRefused): void {
    // The client waits for the reply to CLIENT REPLY ON. Under OFF it would not get a refusal.
    if (this.client.replies === 'off' && this.#commandAtHand() === 'client|reply') return this.destroy();
    refuseInTransaction(this);
    this.reply(Buffer.from(`-${reply}\r\n`, 'latin1'), side);
  }

  /** The command's name in the command table, or as much of its name as is known. */
  #commandAtHand(): string {
    const { frame, argStart, argEnd, argc } = this.parser;
    const { table } = this.clients.sequencer;
    const spec = argc === 0 ? undefined : table.find(frame, argStart, argEnd, argc);
    return (
      spec?.name ??
      unknownIn(
        table,
        Array.from({ length: Math.min(argc, 2) }, (_, i) => this.argument(i)),
      )
    );
  }

  #countError(from: Side | undefined, buffer: Buffer, start: number, end: number, command: string): void {
    const { clients, client } = this;
    const name = client.name === '' ? client.host : client.name;
    clients.errors.count(from ?? clients.side, buffer, start, end, titleOf(command), name);
  }

  // ── the end ─────────────────────────────────────────────────────────────────────────────────────────────────────

  end(): void {
    const { client } = this;
    this.#closing = true;
    // Whatever else the client sends is dropped.
    this.flow.readOn();
    client.subscriptions?.close();
    this.flow.atEnd(() => {
      nextTurn(() => client.socket.end());
      const timer = after(client.halfClosed ? LAST_READ_MS : LINGER_MS, () => client.socket.destroy()).unref();
      // A timer that is left would keep the client's buffers in memory.
      client.socket.once('close', () => clearTimer(timer));
    });
  }

  failed(problem: unknown): void {
    this.#closing = true;
    this.clients.failed(this, problem);
  }

  destroy(): void {
    if (this.#destroyed) return;
    this.#destroyed = true;
    this.#closing = true;
    this.client.subscriptions?.close();
    this.#outbox.flush();
    this.client.socket.destroySoon();
  }
}
