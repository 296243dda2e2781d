/**
 * One command on its way: from a client (or a producer of the proxy's own) to the authority, and then, as it was
 * or as its effect, to the mirror. The bytes stay in the buffers that they came in.
 */
import { Command } from '../command/command.js';
import type { CommandSpec } from '../command/table.js';
import type { CommandView } from '../compare/compare.js';
import type { Workload } from '../route/router.js';
import type { Span } from '../script/changed-keys.js';
import type { Credentials } from '../upstream/dialer.js';
import type { Login } from '../upstream/login.js';
import type { Server } from '../upstream/server.js';

/** What follows on the mirror once the authority has answered. */
export const NOTHING = 0;
/** The command itself, for its reply to be compared. */
export const READ = 1;
/** The effect that the command had. */
export const WRITE = 2;
export type Follow = typeof NOTHING | typeof READ | typeof WRITE;

/** What the mirror's reply must be. */
export const COMPARE = 0;
/** Anything but an error: the effect's own reply is not known. */
export const ACCEPT = 1;
/** Anything but an error, and of no interest: framing of a transaction, a change of database. */
export const FRAMING = 2;
export type Check = typeof COMPARE | typeof ACCEPT | typeof FRAMING;

/** How far an effect reaches. */
export const OWN = 0;
/** Beyond its database: it is in one order with the effects in all of them. */
export const BEYOND = 1;
/** The command swaps databases, too. */
export const SWAPS = 2;
export type Reach = typeof OWN | typeof BEYOND | typeof SWAPS;

/** By how much a time to live may differ beyond the lag that was measured, in ms. */
export const TTL_TOLERANCE_MS = 50;

export interface LaneIdentity {
  readonly db: number;
  readonly protocol: 2 | 3;
  readonly credentials: Credentials | undefined;
  /** Whose it is; absent for the kit's own commands. */
  readonly login?: Login;
}

/** A lane, for those that follow an operation. */
export interface Carrier {
  readonly server: Server;
  readonly identity: LaneIdentity;
  /** The number of its connection at the server. */
  readonly clientId: number;
  readonly closed: boolean;
  /** Whether its user may ask how long a key lives, as far as is known. */
  mayAskLife: boolean;
  /** The lane for questions about its commands: a private lane may be blocked, or another client's by then. */
  readonly home: Carrier;
  submit(operation: Operation): void;
}

/** Clients that the operation may wake. */
export interface Wakes {
  /** The operation's effect has its place in the order; the authority's reply begins at `buffer[start]`. */
  answered(buffer: Buffer, start: number): void;
  /** Its connection is lost. */
  lost(): void;
}

/** Who waits for the authority's reply. */
export interface Sink {
  /** `buffer[start, end)` is the whole reply; it may be kept, but not changed. */
  answered(operation: Operation, buffer: Buffer, start: number, end: number): void;
  /** The connection was lost with the command unanswered: it may have run or not. */
  lost(operation: Operation, reason: Error): void;
}

/** For replies that nobody needs. */
export const IGNORED: Sink = { answered: () => undefined, lost: () => undefined };

/** The commands of a transaction as the mirror gets them. */
export interface Batch {
  readonly commands: readonly Command[];
  /** The client's commands that they come from. */
  readonly names: readonly string[];
  readonly writes: readonly boolean[];
  /** Which commands may write what they read from other keys. */
  readonly derives: readonly boolean[];
  readonly views: readonly CommandView[];
  /** The mirror does not speak the client's protocol: only errors are compared. */
  inOtherForm: boolean;
  /** The reply that is expected of the mirror, where some of its elements may be anything but an error. */
  expected(authority: Buffer, mirror: Buffer): Buffer;
}

/** Several commands of the proxy's own, which go as one operation. */
export interface Bundle {
  /** As many as commands. */
  readonly replies: number;
  /** What they write; null where they read. */
  readonly keys: readonly Buffer[] | null;
  /** Gives the frame again, with times to live that are shorter by so many ms; null where it gives none. */
  readonly shorten: ((ms: number) => Buffer) | null;
}

/** A bundle of so many commands that only read. */
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
  /** The lane that carried it to the authority. */
  lane: Carrier | null = null;
  /** The keys it holds in the order of several lanes; null while there is one lane. */
  held: readonly string[] | null = null;
  holdsToWrite = false;
  /** What is to be known of `frame` where it is several commands. */
  bundle: Bundle | null = null;
  /** What changed at the authority since it was sent, where nothing else shows what it writes. */
  span: Span | null = null;
  /** The wakeup of clients that the operation may wake. */
  wakeup: Wakes | null = null;
  /** Local replies of the client's later commands, to follow this one's reply. */
  followingReplies: Buffer[] | null = null;
  /** The reply that the mirror must give: `reply[replyStart, replyEnd)`. */
  reply: Buffer = NONE;
  replyStart = 0;
  replyEnd = 0;
  check: Check = COMPARE;
  /** The reach of its effect. */
  reach: Reach = OWN;
  /** When it was given to the lane, in whole ms of the monotonic clock: it ran on the authority after that. */
  submittedAt = 0;
  /** When the authority's reply came, in ms of the monotonic clock. */
  answeredAt = 0;
  /** So long the authority's reply may have been on its way, in whole ms. */
  stalledMs = 0;
  /**
   * From which moment on a time to live in `frame` counts, in whole ms, where it was shortened; else 0: from
   * `answeredAt`.
   */
  ttlFrom = 0;
  /** The command as the client gave it, where `frame` has become its effect. */
  asked: Command | null = null;
  /** What is in `frame`, once it has been asked for. */
  private parsed: Command | null = null;
  /** For the EXEC of a transaction on the mirror: what it carries. */
  batch: Batch | null = null;
  /** Only the state of its keys shows what it did: they are copied. */
  mustCopy = false;
  /** The client wants no reply (CLIENT REPLY). */
  silent = false;
  /** Called when the mirror has answered, for producers that wait for it. */
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

  /** What is in `frame`. */
  get command(): Command {
    return (this.parsed ??= new Command(this.frame, this.start, this.end));
  }

  /** The command as the client gave it: whose keys it is about. */
  get original(): Command {
    return this.asked ?? this.command;
  }

  /** Goes on as its effect, or with another time to live. */
  become(frame: Buffer): void {
    if (this.bundle === null) this.asked ??= this.command;
    this.frame = frame;
    this.start = 0;
    this.end = frame.length;
    this.parsed = null;
  }

  /** Bytes that it keeps alive while it waits for the mirror, once it is `detach`ed from what it came with. */
  get size(): number {
    return OVERHEAD + this.end - this.start + this.replyEnd - this.replyStart;
  }

  /** Lets go of the buffers that it came in, which may hold far more than itself: for one that has to wait. */
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
      // A new one in any case: parsed arguments take more than their bytes.
      this.asked = isRoomy(frame, end - start)
        ? new Command(Buffer.from(frame.subarray(start, end)))
        : new Command(frame, start, end);
    }
  }
}

/** What an operation takes besides its bytes, about. */
const OVERHEAD = 512;

/** Whether the memory behind a buffer is more than a pool's worth larger than the bytes that are wanted of it. */
const isRoomy = (buffer: Buffer, size: number): boolean => buffer.buffer.byteLength > size + Buffer.poolSize;

/**
 * By how much a time to live that the operation gives may be longer on the mirror, which has confirmed it by `now`:
 * each server counts from when it ran the command, the authority perhaps long before its reply came.
 */
export const ttlErrorMs = ({ answeredAt, ttlFrom, stalledMs }: Operation, now: number): number =>
  now - (ttlFrom || answeredAt) + stalledMs;

const NONE = Buffer.alloc(0);
