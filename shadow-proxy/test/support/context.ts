/**
 * A client without sockets. What stands between a handler and the two servers is real (flow, lanes, sequencer); the
 * connections are not: what was sent is kept, and the test says what the servers answer.
 */
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ListedCommand } from '../../src/command/listed.js';
import { CommandTable, type CommandSpec } from '../../src/command/table.js';
import { Permissions } from '../../src/copy/foreign/permissions.js';
import { Turn } from '../../src/io/turn.js';
import type { Lane } from '../../src/pipeline/lane.js';
import type { Carrier, Operation, Sink } from '../../src/pipeline/operation.js';
import { Failures } from '../../src/pipeline/failures.js';
import { Sequencer } from '../../src/pipeline/sequencer.js';
import type { Suspicion } from '../../src/pipeline/suspicion.js';
import { argumentsOf } from '../../src/resp/decode.js';
import { encodeCommand, error, type Argument } from '../../src/resp/encode.js';
import { FrameReader } from '../../src/resp/frame-reader.js';
import { RequestParser } from '../../src/resp/request.js';
import type { Regional } from '../../src/regional/regional.js';
import type { Matcher } from '../../src/route/glob.js';
import { Router, type WorkloadDefinition } from '../../src/route/router.js';
import { SIDES, type Side, type Stage } from '../../src/route/stage.js';
import { Scripts } from '../../src/script/catalog.js';
import { ReadShares } from '../../src/session/read-shares.js';
import { Counters, type WorkloadCounters } from '../../src/telemetry/workload-counters.js';
import { ClientLanes } from '../../src/session/client-lanes.js';
import { ClientState } from '../../src/session/client-state.js';
import { Clients, type ConnectedClient } from '../../src/session/clients.js';
import type { CommandContext } from '../../src/session/context.js';
import { dispatch } from '../../src/session/dispatch.js';
import { FenceUsers } from '../../src/upstream/fence-users.js';
import { Flow } from '../../src/session/flow.js';
import { endClient, endCommand, refuseInTransaction } from '../../src/session/way-out.js';
import type { Connection, ConnectionOwner } from '../../src/upstream/connection.js';
import type { HandshakeRefused, OpenOptions, Server } from '../../src/upstream/server.js';

const TABLE = new CommandTable();
const FOLLOWS = ['nothing', 'read', 'write'] as const;
/** So often a connection is unblocked before the server says no more. */
const MOST_UNBLOCKED = 20;
const BOUNDS = { clientOutputBytes: 1 << 26, totalClientBytes: 1 << 30, transactionBytes: 1 << 20 };

/** A command on its way to an authority. */
export interface Sent {
  readonly side: Side;
  /** As words: `SET k v`. */
  readonly command: string;
  readonly follow: (typeof FOLLOWS)[number];
  readonly mustCopy: boolean;
  readonly db: number;
  /** On a lane that the client has to itself. */
  readonly isPrivate: boolean;
}

type Point = Stage | ({ readonly stage: Stage } & Partial<WorkloadDefinition>);

/** Stages by workload, whose keys and channels begin with its name and a colon; `default` takes the rest. */
export type Stages = Readonly<Record<string, Point>> & { readonly default: Stage };

export interface FakeOptions {
  readonly region?: string;
  readonly secondWriter?: 'refuse' | 'count';
  readonly sharedTarget?: boolean;
  readonly owned?: Matcher;
  readonly regional?: Regional;
  /** Whether the kit wrote all that the target holds; true unless it is said. */
  readonly ours?: boolean;
}

/** A server that answers what the test sets. */
export class FakeServer {
  readonly commands: Set<string>;
  readonly isKeydb: boolean;
  /** Bytes that each of its connections owes it. */
  unsentBytes = 0;
  readonly version = '7.0.15';
  readonly name = 'the-kit';
  readonly busyAfterMs = 5_000;
  readonly endpoint = { label: 'a server', credentials: undefined };
  readonly fence = new FenceUsers();
  needsPassword = false;
  privileges = {
    learn: (): Promise<unknown> | null => null,
    isUnrestricted: (): boolean => true,
    mayUseAllKeys: (): boolean => true,
  };
  /** What AUTH is answered with; null for OK. */
  refusal: string | null = null;
  /** How connections were unblocked, in turn. */
  readonly unblocked: string[] = [];
  /** What it waits for before it answers CLIENT UNBLOCK. */
  unblocking: Promise<unknown> = Promise.resolve();
  /** Whether it finds the connection blocked, in turn, then true; null where it does not allow to unblock. */
  readonly findsBlocked: (boolean | null)[] = [];
  /** Connections that were killed. */
  readonly killed: number[] = [];
  /** What it waits for before it answers CLIENT KILL. */
  killing: Promise<unknown> = Promise.resolve();
  /** Connections of subscribers. */
  readonly links: FakeLink[] = [];
  /** What `open` fails with. */
  unreachable: Error | null = null;
  /** What the next calls of `open` fail with, one each. */
  readonly refusals: Error[] = [];
  /** What `open` waits for. */
  opening: Promise<unknown> = Promise.resolve();
  #clientId = 0;

  readonly databaseLimit = null;
  /** What handlers ask about its software, it answers itself. */
  readonly traits = this;

  constructor(readonly side: Side) {
    this.isKeydb = side === 'target';
    const knows = ({ inSource, inTarget }: CommandSpec): boolean => (side === 'source' ? inSource : inTarget);
    this.commands = new Set(TABLE.all.filter(knows).map(({ name }) => name));
  }

  /** What `COMMAND` says of commands that the table does not know. */
  readonly listed = new Map<string, ListedCommand>();
  readonly supported = {
    knows: ({ name }: CommandSpec): boolean => this.commands.has(name),
    listed: (name: string): ListedCommand | undefined => this.listed.get(name),
  };
  readonly connections = {
    blocked: async (ids: readonly number[]): Promise<ReadonlySet<number>> => new Set(ids),
    unblock: async (_id: number, how: string): Promise<boolean | null> => {
      // A test that has failed lets nothing go: it must end all the same.
      if (this.unblocked.push(how) > MOST_UNBLOCKED) await new Promise(() => undefined);
      await this.unblocking;
      return this.findsBlocked.length === 0 ? true : this.findsBlocked.shift()!;
    },
    kill: async (id: number): Promise<void> => {
      this.killed.push(id);
      await this.killing;
    },
  };
  askNeedsPassword = async (): Promise<boolean> => this.needsPassword;
  verify = async (): Promise<void> => undefined;
  authenticate = async (_args: readonly string[]): Promise<string | null> => this.refusal;
  /** A connection that sends nothing, or that of a subscriber. */
  open = async ({ intake }: OpenOptions): Promise<Connection> => {
    await this.opening;
    const problem = this.unreachable ?? this.refusals.shift();
    if (problem) throw problem;
    if (intake !== undefined) {
      const link = new FakeLink();
      this.links.push(link);
      return link as unknown as Connection;
    }
    const unsent = (): number => this.unsentBytes;
    const outbox = {
      add: () => undefined,
      get bytes() {
        return unsent();
      },
    };
    let owner: ConnectionOwner | null = null;
    const idle = {
      attach: (by: ConnectionOwner) => void (owner = by),
      destroy: () => owner?.lost(new Error('closed')),
    };
    return { clientId: ++this.#clientId, admitted: true, outbox, ...idle } as unknown as Connection;
  };
}

/** The connection of a subscriber: the test says what comes over it. */
class FakeLink {
  /** Commands, as words. */
  readonly sent: string[] = [];
  ended = false;
  #owner: ConnectionOwner | null = null;
  readonly outbox = { addWhole: (frame: Buffer): void => void this.sent.push(words(frame, 0)) };
  attach = (owner: ConnectionOwner): void => void (this.#owner = owner);
  destroy = (): void => void (this.ended = true);

  /** Replies and messages, without the last line end. */
  say(...frames: string[]): void {
    for (const frame of frames) this.#owner!.readable(readerOf(frame));
  }

  lose(): void {
    this.ended = true;
    this.#owner!.lost(new Error('lost'));
  }
}

class FakeSocket extends EventEmitter {
  readonly remoteAddress = '10.0.0.1';
  readonly remotePort = 40_000;
  readonly localAddress = '10.0.0.2';
  readonly localPort = 6379;
  writableNeedDrain = false;
  readonly writableLength = 0;
  paused = false;
  timeoutMs = 0;
  pause = (): this => ((this.paused = true), this);
  resume = (): this => ((this.paused = false), this);
  setTimeout = (ms: number): this => ((this.timeoutMs = ms), this);
}

export class FakeClient implements CommandContext, ConnectedClient {
  readonly socket = new FakeSocket();
  readonly parser = new RequestParser();
  readonly client: ClientState;
  readonly lanes: ClientLanes;
  readonly flow: Flow;
  /** What the client was answered. */
  readonly replies: string[] = [];
  /** What its commands waited for, in turn. */
  readonly waits: string[] = [];
  mustLogIn = false;
  unread = 0;
  ended = false;
  destroyed = false;
  readonly #backlog: Buffer[] = [];
  readonly sequencer: Sequencer;

  constructor(
    readonly clients: Clients,
    readonly fake: FakeProxy,
  ) {
    this.sequencer = clients.sequencer;
    this.client = new ClientState(clients.nextId(), this.socket as unknown as Socket, () => this.lanes.reidentified());
    this.lanes = new ClientLanes(this);
    // eslint-disable-next-line @typescript-eslint/no-this-alias
    const own = this;
    this.flow = new Flow({
      client: this.client,
      turnBudget: clients.turnBudget,
      get inFlight() {
        return own.lanes.inFlight;
      },
      get unread() {
        return own.unread;
      },
      hasRoom: true,
      maxUnreadBytes: BOUNDS.clientOutputBytes,
      onceOpen: (retry, place) => clients.waitingRoom.onceOpen(retry, place),
      run: () => this.#run(),
      closeForOutput: () => this.destroy(),
      failed: (problem) => this.failed(problem),
    });
    const retryWhen = this.flow.retryWhen.bind(this.flow);
    this.flow.retryWhen = (event) => {
      this.waits.push(typeof event === 'string' ? event : 'promise');
      retryWhen(event);
    };
    clients.entered(this);
  }

  get isWorking(): boolean {
    return this.flow.isWorking;
  }

  /** The client sends a command. */
  send(...args: Argument[]): this {
    this.#backlog.push(encodeCommand(args));
    if (!this.flow.held) this.#run();
    return this;
  }

  #run(): void {
    const { flow, parser } = this;
    flow.begin(this.clients.sequencer.turn.now(), 0);
    while (!flow.held && !this.ended && !this.destroyed) {
      if (flow.waitsForTurn()) break;
      const again = flow.next();
      if (!again) {
        endCommand(this);
        if (!parser.next()) {
          const next = this.#backlog.shift();
          if (next === undefined) break;
          parser.feed(next);
          continue;
        }
      }
      dispatch(this, again);
    }
    flow.end();
    if (!flow.held) flow.readOn();
  }

  get inFlight(): number {
    return this.lanes.inFlight;
  }
  get usedLanes(): readonly (Lane | null)[] {
    return this.lanes.used;
  }
  get bytes(): number {
    return 0;
  }
  get isIdle(): boolean {
    return this.inFlight === 0;
  }
  get command(): Buffer {
    return this.parser.frame.subarray(this.parser.start, this.parser.end);
  }
  argument(index: number): Buffer {
    return this.parser.frame.subarray(this.parser.argStart[index], this.parser.argEnd[index]);
  }
  reply(bytes: Buffer): void {
    if (this.client.replies === 'on') {
      if (!this.lanes.behindLast(bytes)) this.#addReply(bytes);
    } else if (this.client.replies === 'skip') this.client.wants('on');
  }
  refuse(message: string): void {
    this.client.transaction?.spoil();
    this.reply(error(message));
  }
  replyRefused({ reply }: HandshakeRefused): void {
    refuseInTransaction(this);
    this.reply(Buffer.from(`-${reply}\r\n`));
  }
  deliver(operation: Operation, reply: Buffer): void {
    this.answered(operation, reply, 0, reply.length);
  }
  answered(operation: Operation, buffer: Buffer, start: number, end: number): void {
    this.lanes.answered(operation, end - start);
    if (!operation.silent) this.#addReply(buffer.subarray(start, end));
    for (const reply of operation.followingReplies ?? []) this.#addReply(reply);
    this.settled();
  }
  lost: Sink['lost'] = () => {
    this.destroy();
    this.settled();
  };
  settled(): void {
    this.flow.settled(this.lanes.settled());
  }
  pass(buffer: Buffer, start: number, end: number): void {
    this.#addReply(buffer.subarray(start, end));
  }
  resume(): void {
    this.flow.resume();
  }
  admit(): void {}
  checkLimits(): void {}
  end(): void {
    this.ended = true;
  }
  /** The client has disconnected. */
  leave(): void {
    const { client, clients, lanes } = this;
    client.left();
    client.subscriptions?.close();
    clients.left(this);
    lanes.tried();
    endClient(this);
  }
  failed(problem: unknown): void {
    throw problem;
  }

  destroy(): void {
    this.destroyed = true;
  }

  #addReply(bytes: Buffer): void {
    this.replies.push(bytes.toString('latin1').replace(/\r\n$/, '').replaceAll('\r\n', ' '));
  }
}

/** The proxy of one shard, between clients and servers that are not there. */
export class FakeProxy {
  readonly servers = { source: new FakeServer('source'), target: new FakeServer('target') };
  readonly router: Router;
  readonly sequencer: Sequencer;
  readonly clients: Clients;
  readonly sent: Sent[] = [];
  readonly #holds = new Map<string, () => void>();
  /** Effects as the mirrors get them. */
  readonly mirrored: string[] = [];
  /** Commands and keys that were noted in the journal. */
  readonly noted: string[] = [];
  /** What became suspect, and why. */
  readonly suspects: string[] = [];
  readonly #unanswered: { readonly lane: Lane; readonly operation: Operation }[] = [];

  constructor({ default: rest, ...points }: Stages, options: FakeOptions) {
    const definitions = Object.entries(points as Record<string, Point>).map(([name, point]) => ({
      ...{ name, keys: [`${name}:*`], channels: [`${name}:*`], percent: 100 },
      ...(typeof point === 'string' ? { stage: point } : point),
    }));
    const { region = null, secondWriter, sharedTarget = false, owned = null, ours = true } = options;
    this.router = new Router(definitions, { stage: rest, percent: 100 }, null, region, secondWriter);
    const permissions = new Permissions(this.router);
    if (ours)
      for (const workload of this.router.workloads)
        permissions.set(workload, { deletable: Infinity, mayOverwrite: false });
    this.sequencer = new Sequencer({
      servers: this.servers as unknown as Record<Side, Server>,
      router: this.router,
      counters: new Counters(this.router),
      table: TABLE,
      scripts: new Scripts(),
      suspicion: () => this.#suspicion(),
      journal: { noteKey: (_db, frame, start, end) => void this.noted.push(frame.toString('latin1', start, end)) },
      limits: { queueBytes: 1 << 20, batchMs: 0 },
      turn: new Turn(),
      failures: new Failures((problem) => {
        throw problem;
      }),
      authorities: { distrusts: () => false },
      mirrorChanged: () => undefined,
      mirrorDatabase: () => undefined,
      observer: null,
    });
    const submit = this.sequencer.submit.bind(this.sequencer);
    this.sequencer.submit = (operation, lane) => {
      submit(operation, lane);
      this.#sending(operation, lane);
    };
    for (const side of SIDES)
      this.sequencer.mirrors[side].listen(({ frame, start }) => this.mirrored.push(words(frame, start)));
    const bounds = { ...BOUNDS, loginMs: 60_000, idleMs: 0 };
    this.clients = new Clients({
      ...{ sequencer: this.sequencer, sharedTarget, sharedSource: false, owned, bounds },
      ...{ regional: options.regional ?? null, face: null, replicas: null, readShares: new ReadShares() },
      foreignKeys: permissions,
      onFailure: () => undefined,
    });
  }

  #sending(operation: Operation, carrier: Carrier): void {
    const lane = carrier as Lane;
    const { frame, start, follow, mustCopy, db } = operation;
    const { side } = lane.server;
    const isPrivate = lane.home !== lane;
    this.sent.push({ side, command: words(frame, start), follow: FOLLOWS[follow], mustCopy, db, isPrivate });
    this.#unanswered.push({ lane, operation });
  }

  #suspicion(): Suspicion {
    const suspect = (reason: string, frame: Buffer, start = 0): void =>
      void this.suspects.push(`${reason}: ${words(frame, start)}`);
    return {
      suspects: {
        any: false,
        chunked: new Map(),
        note: (_db, frame, start) => void this.noted.push(words(frame, start)),
        key: (_db, key, reason) => void this.suspects.push(`${reason}: ${key.toString()}`),
        named: (_db, key, reason) => void this.suspects.push(`${reason}: ${key.toString()}`),
        operation: ({ frame, start }, reason) => suspect(reason, frame, start),
        frame: (_db, frame, start, reason) => suspect(reason, frame, start),
        command: (_db, { frame, start }, reason) => suspect(reason, frame, start),
        script: (_db, { frame, start }, reason) => suspect(reason, frame, start),
        hidden: (reason) => void this.suspects.push(`${reason}: every key`),
        swapped: (frame, start) => suspect('swapped', frame, start),
        isWhole: () => false,
        isReadBy: () => false,
        isIn: () => false,
        spread: () => undefined,
      },
      verdicts: {
        differs: () => undefined,
        oneSided: () => undefined,
        late: () => undefined,
        awaitClosed: () => undefined,
        allClosed: () => true,
      },
      fieldTtls: null,
      expiry: {
        sending: () => undefined,
        sendingOne: () => undefined,
        confirmed: () => undefined,
        ranOn: () => undefined,
        copied: () => undefined,
        kept: () => undefined,
        asksAbout: () => false,
      },
    };
  }

  /** A client whose lanes to both servers are open. */
  async connect(): Promise<FakeClient> {
    const client = new FakeClient(this.clients, this);
    for (const side of SIDES) await this.sequencer.lanes[side].open(client.client.identity);
    return client;
  }

  /** What was sent, as `side COMMAND`, since it was last asked. */
  took(): string[] {
    return this.sent.splice(0).map(({ side, command }) => `${side} ${command}`);
  }

  /** The servers answer the oldest commands, one reply each, without the last line end. */
  answer(...replies: string[]): void {
    for (const reply of replies) {
      const { lane } = this.#unanswered.shift()!;
      lane.readable(readerOf(reply));
    }
  }

  /** The server answers the oldest such command; it must be the oldest on its lane. */
  answerTo(command: string, reply: string): void {
    const at = this.#unanswered.findIndex(({ operation: { frame, start } }) => words(frame, start) === command);
    const [{ lane }] = this.#unanswered.splice(at, 1);
    lane.readable(readerOf(reply));
  }

  /** The servers answer all that is left, and what is sent for that. A lane that was lost is answered nothing. */
  async answerAll(replyTo: (command: string) => string): Promise<void> {
    for (await settled(); this.#unanswered.length > 0; await settled()) {
      const { lane, operation } = this.#unanswered.shift()!;
      // What depended on a command that was refused is not sent.
      if (!lane.closed && lane.inFlight > 0) lane.readable(readerOf(replyTo(words(operation.frame, operation.start))));
    }
  }

  /** The connections to a server are lost. */
  lose(side: Side): void {
    const { lanes } = this.sequencer;
    for (const lane of [...lanes[side].all(), ...lanes[side].private()]) lane.lost(new Error('lost'));
  }

  workload(name: string): Router['default'] {
    return this.router.named(name)!;
  }

  hold(workload: string): void {
    this.#holds.set(workload, this.router.hold(this.workload(workload)));
  }

  release(workload: string): void {
    this.#holds.get(workload)!();
  }

  move(workload: string, stage: Stage): void {
    this.router.move(this.workload(workload), { stage, percent: 100 });
  }

  secondWriterWrites(workload: string): number {
    return this.clients.counts.secondWriterWrites(this.workload(workload));
  }

  counters(workload: string): WorkloadCounters {
    return this.sequencer.counters.of(this.workload(workload));
  }
}

/** A frame as a server sends it: spaces are line ends, but in an error. */
function readerOf(frame: string): FrameReader {
  const reader = new FrameReader();
  const lines = frame.startsWith('-') ? frame : frame.replaceAll(' ', '\r\n');
  reader.feed(Buffer.from(`${lines}\r\n`, 'latin1'));
  return reader;
}

const words = (frame: Buffer, start: number): string =>
  argumentsOf(frame, start)
    .map((word) => word.toString('latin1'))
    .join(' ');

/** What is under way, and waits for no server, is over. */
export async function settled(): Promise<void> {
  for (let i = 0; i < 5; i++) await nextTurn();
}

/** One client of a proxy whose workloads are in these stages. */
export async function connect(
  stages: Stages = { default: 'shadow' },
  options: FakeOptions = {},
): Promise<{ readonly client: FakeClient; readonly proxy: FakeProxy }> {
  const proxy = new FakeProxy(stages, options);
  return { client: await proxy.connect(), proxy };
}
