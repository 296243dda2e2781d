/** What the order reports of keys that may differ, and asks about them. Who judges that, `suspects/`, stands above. */
import type { Command } from '../command/command.js';
import type { CommandSpec } from '../command/table.js';
import type { KeyLife } from '../resp/key-life.js';
import type { Workload } from '../route/router.js';
import type { Side } from '../route/stage.js';
import type { Server } from '../upstream/server.js';
import type { Carrier, Operation } from './operation.js';

/** The authority's connection was lost with the command unanswered: its result is unknown. */
export const REPLY_LOST = 'reply-lost';

/** A key with a chunked copy in progress: until that is over, the mirror does not hold all of it. */
export interface ChunkedCopy {
  /** The key is suspect again. The reason is not a reply of the mirror about a copy that it does not hold yet. */
  suspected(reason: string): void;
}

/** Keys that may differ; a frame is a whole command, from `start` on. */
export interface SuspectKeys {
  /** Whether anything is suspect. */
  readonly any: boolean;
  /** By `keyId`; all of them are suspects. */
  readonly chunked: Map<string, ChunkedCopy>;
  /** Notes in the journal that the command is about to be sent, and what it writes. */
  note(db: number, frame: Buffer, start: number): void;
  /** @param script what made it one, for people; null, or absent, where no script did */
  key(db: number, key: Buffer, reason: string, script?: string | null): void;
  /** A key that a command names, and does not write: it may be a foreign key. */
  named(db: number, key: Buffer, reason: string): void;
  /** The operation's keys: all it wrote, or may have written. */
  operation(operation: Operation, reason: string): void;
  command(db: number, command: Command, reason: string): void;
  frame(db: number, frame: Buffer, start: number, reason: string): void;
  /** What the script or function wrote. */
  script(db: number, command: Command, reason: string): void;
  /** A write whose keys are unknown. */
  hidden(reason: string): void;
  /** A SWAPDB has run on one of the servers. */
  swapped(frame: Buffer, start: number): void;
  /** Whether the command reads, or may read, a suspect key. */
  isReadBy(db: number, frame: Buffer, start: number): boolean;
  /** Whether the command has, or may have, a suspect key. */
  isIn(db: number, frame: Buffer, start: number): boolean;
  /** What a confirmed write took from a suspect is one, too. */
  spread(operation: Operation): void;
}

/** A connection that was lost with commands unanswered. */
export interface LostConnection {
  readonly server: Server;
  readonly clientId: number;
  /** The run ID of the server that it led to. */
  readonly runId: string;
}

/** What a difference means. */
export interface Verdicts {
  /** The mirror's reply to the operation, `buffer[start, end)`, is not the authority's. */
  differs(operation: Operation, buffer: Buffer, start: number, end: number, now: number): void;
  /** The mirror confirmed a write so late that a time to live in it may be off. */
  late(operation: Operation, now: number): void;
  /** The server may still run the commands of a lost connection. */
  awaitClosed(lost: LostConnection): void;
  /** Whether no lost connection, of the server if one is given, can still change anything. */
  allClosed(server?: Server): boolean;
}

/** Keys that expire between the two servers. */
export interface ExpiryEdges {
  /**
   * A write that is sent to both servers, the command frame at `start`, is about to be sent on the lane. Both are asked
   * first, in the order, how long those of its keys live of which that is not known, where the write depends on it.
   */
  sending(
    lane: Carrier,
    about: Pick<Operation, 'workload' | 'db' | 'protocol'>,
    spec: CommandSpec,
    frame: Buffer,
    start: number,
  ): void;
  /** The same for an operation whose only key is `frame[keyStart, keyEnd)`. */
  sendingOne(lane: Carrier, operation: Operation, keyStart: number, keyEnd: number): void;
  /** The mirror has answered a write; `differs`: not as the authority did. */
  confirmed(operation: Operation, differs: boolean): void;
  /**
   * A script is being sent on the lane: both servers are asked right behind it, in the order, how long its keys live.
   * @param command the script in the operation, which may be a transaction's EXEC
   */
  ranOn(lane: Carrier, operation: Operation, command: Command): void;
  /** A key was copied: `life` is what the authority said, between `from` and now, in ms of the monotonic clock. */
  copied(db: number, key: Buffer, life: KeyLife, from: number, now: number): void;
  /** Whether both servers are being asked what time the key has left. */
  asksAbout(db: number, key: Buffer): boolean;
}

/** A key that has times to live of fields. */
export interface TimedKey {
  readonly db: number;
  readonly key: Buffer;
  readonly workload: Workload;
}

/** Fields of hashes that expire at one server, and whose times to live the other cannot hold: copies have none. */
export interface FieldTtls {
  /** How many times to live copies have left out. */
  readonly stripped: number;
  /** Keys that have any, as far as is known. */
  readonly size: number;
  /** What the server's clock shows at the least, in Unix ms. */
  now(side: Side): number;
  /**
   * A key is copied without them.
   * @param next when the next field expires, in Unix ms by that server's clock; Infinity for none
   * @param expired fields that have expired there, and are not removed yet
   * @returns whether the copy holds for a while
   */
  copied(key: TimedKey, side: Side, fields: number, expired: number, next: number): boolean;
  /** The key has none. */
  forget(key: Pick<TimedKey, 'db' | 'key'>): void;
  moved(fromDb: number, from: Buffer, toDb: number, to: Buffer): void;
  swapped(a: number, b: number): void;
}

export interface Suspicion {
  /** Null where such a hash is not copied at all. */
  readonly fieldTtls: FieldTtls | null;
  readonly suspects: SuspectKeys;
  readonly verdicts: Verdicts;
  readonly expiry: ExpiryEdges;
}
