/**
 * What the pipeline reports about keys that may differ, and asks about them. `suspects/` judges, and implements these
 * interfaces.
 */
import type { Command } from '../command/command.js';
import type { CommandSpec } from '../command/table.js';
import type { KeyLife } from '../resp/key-life.js';
import type { Workload } from '../route/router.js';
import type { Side } from '../route/stage.js';
import type { Server } from '../upstream/server.js';
import type { Carrier, Operation } from './operation.js';

/** The authority's connection was lost before the command was answered: its result is unknown. */
export const REPLY_LOST = 'reply-lost';

/**
 * Reasons of a write that the authority has run, or may have run, and that is not sent to the mirror: its keys are
 * copied instead.
 */
export const NOT_SENT: ReadonlySet<string> = new Set([
  'copy',
  'derived',
  'script',
  'script-failed',
  'unknown-command',
  REPLY_LOST,
]);

/** The reason of a key that a write made from a suspect, on a mirror that was sent the write. */
export const SPREAD = 'spread';

/** A key with a chunked copy in progress: until the copy ends, the mirror has only part of the key. */
export interface ChunkedCopy {
  /** The key became a suspect again, for another reason than the mirror's reply about the unfinished copy. */
  suspected(reason: string): void;
}

/** Keys that may differ. A frame is a whole command that begins at `start`. */
export interface SuspectKeys {
  /** Whether anything is suspect. */
  readonly any: boolean;
  /** Chunked copies by `keyId`; all their keys are suspects. */
  readonly chunked: Map<string, ChunkedCopy>;
  /** Notes in the journal that the command is about to be sent, with the keys that it writes. */
  note(db: number, frame: Buffer, start: number): void;
  /** @param script the script that made the key a suspect, for people; null or absent if none did */
  key(db: number, key: Buffer, reason: string, script?: string | null): void;
  /** A key that a command names, and does not write: it may be a foreign key. */
  named(db: number, key: Buffer, reason: string): void;
  /** All keys that the operation wrote, or may have written, become suspects. */
  operation(operation: Operation, reason: string): void;
  command(db: number, command: Command, reason: string): void;
  frame(db: number, frame: Buffer, start: number, reason: string): void;
  /** The keys that the script or function wrote become suspects. */
  script(db: number, command: Command, reason: string): void;
  /** A write whose keys are unknown. */
  hidden(reason: string): void;
  /** A SWAPDB has run on one of the servers. */
  swapped(frame: Buffer, start: number): void;
  /** Whether the whole workload is suspect: then no list names its keys. */
  isWhole(workload: Workload): boolean;
  /** Whether the command reads, or may read, a suspect. */
  isReadBy(db: number, frame: Buffer, start: number): boolean;
  /** Whether one of the command's keys is, or may be, a suspect. */
  isIn(db: number, frame: Buffer, start: number): boolean;
  /** Keys that a confirmed write made from a suspect become suspects, too. */
  spread(operation: Operation): void;
}

/** A connection that was lost with commands unanswered. */
export interface LostConnection {
  readonly server: Server;
  readonly clientId: number;
  /** The run ID of the connection's server. */
  readonly runId: string;
}

/** What a difference means. */
export interface Verdicts {
  /** The mirror's reply to the operation, `buffer[start, end)`, is not the authority's. */
  differs(operation: Operation, buffer: Buffer, start: number, end: number, now: number): void;
  /** Only one server has the key, and no time to live explains that. */
  oneSided(db: number, key: Buffer, authority: Side, lives: Readonly<Record<'authority' | 'mirror', KeyLife>>): void;
  /** The mirror confirmed a write so late that a time to live in it may be wrong. */
  late(operation: Operation, now: number): void;
  /** The server may still run the commands of a lost connection. */
  awaitClosed(lost: LostConnection): void;
  /** Whether every lost connection (to `server`, if given) is closed there, so that it can change nothing more. */
  allClosed(server?: Server): boolean;
}

/** Keys that expire at different moments on the two servers. */
export interface ExpiryEdges {
  /**
   * The command at `start` of the frame is about to be sent on the lane, and the mirror will get it, too. If it depends
   * on the time to live of a key, and that is unknown, both servers are asked for it first, in the order.
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
  /** The mirror has answered a write. @param differs whether its reply was not the authority's */
  confirmed(operation: Operation, differs: boolean): void;
  /**
   * A script is being sent on the lane: right behind it, in the order, both servers are asked for the time to live of
   * its keys.
   * @param command the script in the operation, which may be a transaction's EXEC
   */
  ranOn(lane: Carrier, operation: Operation, command: Command): void;
  /**
   * A key was copied.
   * @param life the authority's answer, given between `from` and `now`, in ms of the monotonic clock
   */
  copied(db: number, key: Buffer, life: KeyLife, from: number, now: number): void;
  /** A key that the authority lacks is kept on the mirror, because it may be foreign. */
  kept(db: number, key: Buffer): void;
  /** Whether both servers are being asked for the key's time to live. */
  asksAbout(db: number, key: Buffer): boolean;
}

/** A key whose fields have times to live. */
export interface TimedKey {
  readonly db: number;
  readonly key: Buffer;
  readonly workload: Workload;
}

/** Fields of hashes that expire at one server and that the other cannot expire: copies have no times to live. */
export interface FieldTtls {
  /** How many times to live were left out of copies. */
  readonly stripped: number;
  /** How many keys have such fields, as far as is known. */
  readonly size: number;
  /** The earliest time that the server's clock may show, in Unix ms. */
  now(side: Side): number;
  /**
   * A key is copied without the times to live of its fields.
   * @param next when the next field expires, in Unix ms by that server's clock; Infinity if none does
   * @param expired fields that have expired there, and are not removed yet
   * @returns whether the copy holds for a while
   */
  copied(key: TimedKey, side: Side, fields: number, expired: number, next: number): boolean;
  /** The key has no such fields any more. */
  forget(key: Pick<TimedKey, 'db' | 'key'>): void;
  moved(fromDb: number, from: Buffer, toDb: number, to: Buffer): void;
  swapped(a: number, b: number): void;
}

export interface Suspicion {
  /** Null if such hashes are not copied at all. */
  readonly fieldTtls: FieldTtls | null;
  readonly suspects: SuspectKeys;
  readonly verdicts: Verdicts;
  readonly expiry: ExpiryEdges;
}
