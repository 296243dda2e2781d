/**
 * One command on its way: from a client (or from the proxy itself) to the authority, and then, unchanged or as its
 * effect, to the mirror. Its bytes stay in the buffers in which they arrived.
 */
import { Command } from '../command/command.js';
import type { CommandSpec } from '../command/table.js';
import type { CommandView } from '../compare/compare.js';
import { NO_WORKLOAD } from '../io/latency.js';
import type { Workload } from '../route/router.js';
import type { Span } from '../script/changed-keys.js';
import type { Credentials } from '../upstream/dialer.js';
import type { Login } from '../upstream/login.js';
import type { Server } from '../upstream/server.js';

/** What the mirror gets once the authority has answered: nothing. */
export const NOTHING = 0;
/** The command itself, so that its reply can be compared. */
export const READ = 1;
/** The effect of the command. */
export const WRITE = 2;
export type Follow = typeof NOTHING | typeof READ | typeof WRITE;

/** The mirror's reply must be equal. */
export const COMPARE = 0;
/** Any reply but an error: the reply to the effect is not known in advance. */
export const ACCEPT = 1;
/** Any reply but an error, and no further use of it: the frame of a transaction, a change of database. */
export const FRAMING = 2;
export type Check = typeof COMPARE | typeof ACCEPT | typeof FRAMING;

/** The effect stays in its database. */
export const OWN = 0;
/** The effect reaches beyond its database: it has an order with the effects in all databases. */
export const BEYOND = 1;
/** The command also swaps databases. */
export const SWAPS = 2;
export type Reach = typeof OWN | typeof BEYOND | typeof SWAPS;

/** How much a time to live may differ beyond the measured lag, in ms. */
export const TTL_TOLERANCE_MS = 50;

export interface LaneIdentity {
  readonly db: number;
  readonly protocol: 2 | 3;
  readonly credentials: Credentials | undefined;
  /** The login of the lane's clients; absent for the kit's own commands. */
  readonly login?: Login;
}

/** A lane, as seen from an operation. */
export interface Carrier {
  readonly server: Server;
  readonly identity: LaneIdentity;
  /** The client ID of the lane's connection at the server. */
  readonly clientId: number;
  readonly closed: boolean;
  /** Whether the lane's user may ask for a key's time to live, as far as is known. */
  mayAskLife: boolean;
  /**
   * The lane for questions about this lane's commands. A private lane may be blocked, or belong to another client by
   * then.
   */
  readonly home: Carrier;
  submit(operation: Operation): void;
}

/** Clients that the operation may wake. */
export interface Wakes {
  /** The operation's effect has its place in the order; the authority's reply begins at `buffer[start]`. */
  answered(buffer: Buffer, start: number): void;
  /** The connection of the operation is lost. */
  lost(): void;
}

/** Gets the authority's reply. */
export interface Sink {
  /** `buffer[start, end)` is the whole reply. It may be kept, but not changed. */
  answered(operation: Operation, buffer: Buffer, start: number, end: number): void;
  /** The connection was lost before the command was answered: the server may or may not have run it. */
  lost(operation: Operation, reason: Error): void;
}

/** Ignores replies. */
export const IGNORED: Sink = { answered: () => undefined, lost: () => undefined };

/** The commands of a transaction as the mirror gets them. */
export interface Batch {
  readonly commands: readonly Command[];
  /** The client's commands from which they were made. */
  readonly names: readonly string[];
  readonly writes: readonly boolean[];
  /** Which commands may write data that they read from other keys. */
  readonly derives: readonly boolean[];
  readonly views: readonly CommandView[];
  /** The mirror does not speak the client's protocol: only errors are compared. */
  inOtherForm: boolean;
  /** The reply that is expected of the mirror. Some of its elements may be anything but an error. */
  expected(authority: Buffer, mirror: Buffer): Buffer;
}

/** Several commands of the proxy's own, sent as one operation. */
export interface Bundle {
  /** The number of replies, which is the number of commands. */
  readonly replies: number;
  /** The keys that the commands write; null if they only read. */
  readonly keys: readonly Buffer[] | null;
  /** Builds the frame with times to live that are shorter by `ms`; null if it has none. */
  readonly shorten: ((ms: number) => Buffer) | null;
}

/** A bundle of `replies` commands that only read. */
export const questions = (replies: number): Bundle => ({ replies, keys: null, shorten: null });

export class Operation {
  /** The bytes on the way: `frame[start, end)`. */
  frame: Buffer;
  start: number;
  end: number;
  sink: Sink | null;
  readonly spec: CommandSpec | undefined;
  readonly workload: Workload;
  readonly db: number;
  readonly protocol: 2 | 3;
  readonly follow: Follow;
  /** The lane that carried the operation to the authority. */
  lane: Carrier | null = null;
  /** The keys that the operation holds while there are several lanes; null with one lane. */
  held: readonly string[] | null = null;
  holdsToWrite = false;
  /** Set if `frame` is several commands. */
  bundle: Bundle | null = null;
  /** Which keys changed at the authority since the operation was sent; set if nothing else shows what it writes. */
  span: Span | null = null;
  /** The wakeup of clients that the operation may wake. */
  wakeup: Wakes | null = null;
  /** The proxy's own replies to later commands of the client, which follow this operation's reply. */
  followingReplies: Buffer[] | null = null;
  /** The reply that the mirror must give: `reply[replyStart, replyEnd)`. */
  reply: Buffer = NONE;
  replyStart = 0;
  replyEnd = 0;
  check: Check = COMPARE;
  /** How far the operation's effect reaches. */
  reach: Reach = OWN;
  /**
   * When the operation was given to its lane, in whole ms of the monotonic clock. The authority ran it later than that.
   */
  submittedAt = 0;
  /** When the authority's reply came, in ms of the monotonic clock. */
  answeredAt = 0;
  /** How long the authority's reply may have been on its way, in whole ms. */
  stalledMs = 0;
  /**
   * The moment from which a time to live in `frame` counts, in whole ms, if it was shortened; otherwise 0, and it
   * counts from `answeredAt`.
   */
  ttlFrom = 0;
  /** The client's command, if `frame` has become its effect. */
  asked: Command | null = null;
  /** The parsed `frame`, once it was asked for. */
  private parsed: Command | null = null;
  /** The commands of a transaction; set on the EXEC that the mirror gets. */
  batch: Batch | null = null;
  /** Only the state of the keys shows what the operation did: they are copied. */
  mustCopy = false;
  /** The client wants no reply (CLIENT REPLY). */
  silent = false;
  /** Called when the mirror has answered, for producers that wait for that. */
  confirmed: ((reply: Buffer | null) => void) | null = null;

  constructor(
    frame: Buffer,
    start: number,
    end: number,
    sink: Sink | null,
    spec: CommandSpec | undefined,
    workload: Workload,
    db: number,
    protocol: 2 | 3,
    follow: Follow,
  ) {
    this.frame = frame;
    this.start = start;
    this.end = end;
    this.sink = sink;
    this.spec = spec;
    this.workload = workload;
    this.db = db;
    this.protocol = protocol;
    this.follow = follow;
  }

  /** The parsed `frame`. */
  get command(): Command {
    return (this.parsed ??= new Command(this.frame, this.start, this.end));
  }

  /** The client's command, which names the keys. */
  get original(): Command {
    return this.asked ?? this.command;
  }

  /** Replaces the frame by its effect, or by one with another time to live. */
  become(frame: Buffer): void {
    if (this.bundle === null) this.asked ??= this.command;
    this.frame = frame;
    this.start = 0;
    this.end = frame.length;
    this.parsed = null;
  }

  /** Bytes that the operation keeps in memory while it waits for the mirror, once it is detached. */
  get size(): number {
    return OVERHEAD + this.end - this.start + this.replyEnd - this.replyStart;
  }

  /** Copies the operation out of its input buffers, which may be far larger: for an operation that has to wait. */
  detach(): void {
    this.parsed = null;
    if (isRoomy(this.frame, this.end - this.start)) {
      this.frame = Buffer.from(this.frame.subarray(this.start, this.end));
      this.end -= this.start;
      this.start = 0;
    }
    if (isRoomy(this.reply, this.replyEnd - this.replyStart)) {
      this.reply = Buffer.from(this.reply.subarray(this.replyStart, this.replyEnd));
      this.replyEnd -= this.replyStart;
      this.replyStart = 0;
    }
    if (this.asked !== null) {
      const { frame, start, end } = this.asked;
      // A new command in any case: parsed arguments take more memory than their bytes.
      this.asked = isRoomy(frame, end - start)
        ? new Command(Buffer.from(frame.subarray(start, end)))
        : new Command(frame, start, end);
    }
  }
}

/** The index of the workload whose latency the operation shows; what the kit itself sends shows none. */
export const measuredAs = ({ check, bundle, workload }: Operation): number =>
  check === FRAMING || bundle !== null ? NO_WORKLOAD : workload.index;

/** Bytes that an operation takes in addition to its own, about. */
const OVERHEAD = 512;

/** Whether the memory behind a buffer is larger than `size` by more than a pool. */
const isRoomy = (buffer: Buffer, size: number): boolean => buffer.buffer.byteLength > size + Buffer.poolSize;

/**
 * By how much a time to live that the operation sets may be longer on the mirror, which has confirmed it by `now`. Each
 * server counts from when it ran the command, and the authority may have run it long before its reply came.
 */
export const ttlErrorMs = ({ answeredAt, ttlFrom, stalledMs }: Operation, now: number): number =>
  now - (ttlFrom || answeredAt) + stalledMs;

const NONE = Buffer.alloc(0);
