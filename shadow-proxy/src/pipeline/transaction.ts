/**
 * A transaction on both servers: one contiguous batch on the authority's lane, and, once EXEC has answered, the
 * effects of the commands that succeeded as one contiguous batch on the mirror's.
 *
 *   client   MULTI  c1 c2 … EXEC
 *   lane     MULTI  c1 [probe] c2 … EXEC        a probe is the second read that an effect needs
 *   mirror   MULTI  e1 e2 … EXEC                only what happened
 *
 * A SELECT among the commands changes the database of the lane, which clients share. So the batch begins by selecting
 * the client's database, and ends by selecting the lane's own, both inside MULTI: all of it runs, or none.
 *
 *   lane     MULTI  SELECT client's  c1 SELECT n c2 …  SELECT lane's  EXEC
 *   mirror   MULTI  e1  EXEC  SELECT n  MULTI  e2  EXEC
 */
import { Command } from '../command/command.js';
import type { EffectCommand } from '../command/effect.js';
import type { CommandSpec } from '../command/table.js';
import type { CommandView } from '../compare/compare.js';
import { isRefusal } from '../compare/wording.js';
import { argumentsOf, decodeReply } from '../resp/decode.js';
import { array, encodeCommand } from '../resp/encode.js';
import { REPLY_LOST } from './suspicion.js';
import { otherDatabase } from '../script/frame-keys.js';
import { FrameScanner } from '../resp/frame-scanner.js';
import type { Workload } from '../route/router.js';
import { removeExpired } from './expired.js';
import { OutOfStep } from './failures.js';
import { isNoError, type Confirms, type Lane } from './lane.js';
import {
  BEYOND,
  COMPARE,
  FRAMING,
  NOTHING,
  Operation,
  READ,
  WRITE,
  type Batch,
  type Follow,
  type Sink,
  type Carrier,
} from './operation.js';
import { isAboutData, mayHaveWritten } from '../upstream/refusals.js';
import type { Sequencer } from './sequencer.js';

export interface QueuedCommand {
  /** A copy of the command's bytes. */
  readonly frame: Buffer;
  readonly spec: CommandSpec;
  readonly workload: Workload;
  readonly follow: Follow;
  readonly mustCopy: boolean;
  /** The keys that the command declares, for the order of several lanes. */
  readonly keys: readonly string[];
  /** The database in which the command runs; for a SELECT, the one that it selects. */
  readonly db: number;
}

export interface PlacedTransaction {
  readonly commands: readonly QueuedCommand[];
  readonly workload: Workload;
  /** The client's database when the transaction begins. */
  readonly db: number;
  /** The transaction's keys in the lane's database. */
  readonly keys: readonly string[];
  /**
   * Lanes to the transaction's databases, if there are several and it runs alone: questions about its keys are asked
   * there.
   */
  readonly lanes: ReadonlyMap<number, Lane>;
}

/**
 * Called with EXEC's reply.
 * @param reply the bytes of EXEC's reply
 * @param db the client's database from now on; null if EXEC has not run
 */
export type ExecCallback = (operation: Operation, reply: Buffer, db: number | null) => void;

interface Element {
  readonly command: QueuedCommand;
  readonly args: readonly Buffer[];
  readonly probed: boolean;
  /** The index of the command's reply among those of EXEC. */
  readonly at: number;
}

export const isSelect = ({ spec }: Pick<QueuedCommand, 'spec'>): boolean => spec.name === 'select';

/**
 * Sends the batch. The reply to its EXEC goes to `done`, in the lane's order.
 * @param lost is called if the connection was lost before EXEC was answered
 */
export function submitTransaction(
  sequencer: Sequencer,
  lane: Lane,
  transaction: PlacedTransaction,
  done: ExecCallback,
  lost: (operation: Operation, reason: Error) => void,
): Operation {
  const { commands, workload, keys } = transaction;
  const { db, protocol } = lane.identity;
  const moves = transaction.db !== db || commands.some(isSelect);
  const writes = commands.some((command) => command.follow === WRITE || command.spec.write);
  // Without MULTI each command would run by itself, and after a refused SELECT the rest would run in another database.
  const asksFirst = moves || lane.mayMulti !== true;
  const dependents: Operation[] = [];
  const send = (frame: Buffer, sink: Sink, follow: Follow, spec?: CommandSpec, confirms?: Confirms): Operation => {
    const operation = new Operation(frame, 0, frame.length, sink, spec, workload, db, protocol, follow);
    if (confirms !== undefined) lane.first(operation, confirms);
    if (asksFirst) dependents.push(operation);
    sequencer.submit(operation, lane);
    return operation;
  };
  // The server does not name the database in which a key changed.
  const isHidden = ({ spec, follow, frame, db: runsIn }: QueuedCommand): boolean =>
    runsIn === db && spec.handling === 'script' && follow === WRITE && sequencer.scriptEffects.hidesChanges(frame, 0);
  const hidden = commands.filter(isHidden);
  const span = hidden.length > 0 ? sequencer.changes[lane.server.side].begin(db, lane) : null;
  const elements: Element[] = [];
  let refusal: Buffer | null = null;
  let unqueued: Buffer | null = null;
  const noted: Sink = {
    answered: (_operation, buffer, start, end) => {
      if (buffer[start] === MINUS) unqueued ??= Buffer.from(buffer.subarray(start + 1, end));
    },
    lost: () => undefined,
  };
  const begun: Sink = {
    answered: (_operation, buffer, start, end) => {
      lane.mayMulti = buffer[start] !== MINUS;
      if (!lane.mayMulti) refusal = buffer.subarray(start, end);
    },
    lost: () => undefined,
  };
  const suspect = (command: QueuedCommand, reason: string): void =>
    sequencer.suspects.frame(command.db, command.frame, 0, reason);
  // The lane's own database is selected again: either nothing has run, or the last SELECT has.
  const returned: Confirms = (reply) => {
    const replies = splitReplies(reply, 0, reply.length);
    return replies === null || replies.at(-1)![0] !== MINUS;
  };
  for (const { spec, follow, frame, db: runsIn } of commands) {
    if (runsIn !== db) continue;
    if (follow === WRITE) sequencer.expiry.sending(lane, { workload, db, protocol }, spec, frame, 0);
    removeExpired(sequencer, lane, spec, workload, frame, 0);
  }
  const multi = new Operation(MULTI, 0, MULTI.length, begun, undefined, workload, db, protocol, NOTHING);
  if (asksFirst) lane.first(multi, isNoError, dependents);
  sequencer.submit(multi, lane);
  let sent = 0;
  if (moves) {
    send(selecting(transaction.db), noted, NOTHING);
    sent++;
  }
  for (const command of commands) {
    const args = argumentsOf(command.frame);
    if (command.follow === WRITE) sequencer.suspects.note(command.db, command.frame, 0);
    const probe = command.follow === WRITE && lane.mayProbe ? (command.spec.effect?.probe?.(args) ?? null) : null;
    elements.push({ command, args, probed: probe !== null, at: sent });
    send(command.frame, noted, NOTHING, command.spec.handling === 'script' ? command.spec : undefined);
    if (probe !== null) send(probe, probing(lane), NOTHING);
    sent += probe === null ? 1 : 2;
  }
  if (moves) send(selecting(db), noted, NOTHING);
  const exec = send(
    EXEC,
    {
      answered: (operation, buffer, start, end) => {
        const replies = splitReplies(buffer, start, end);
        if (replies === null) {
          // Without MULTI (the user may not run it any more) each command has run by itself.
          const ranAlone = refusal !== null && !asksFirst;
          const alone = ranAlone ? elements.flatMap(({ command }) => (command.follow === WRITE ? [command] : [])) : [];
          const followed = ranAlone && operation.span !== null ? hidden : [];
          for (const command of alone) if (!followed.includes(command)) suspect(command, 'copy');
          if (followed.length === 0) sequencer.scriptEffects.dropSpan(operation);
          else
            sequencer.scriptEffects.followChanges(operation, 'script', new Command(followed[0].frame), () =>
              followed.forEach((command) => sequencer.suspects.script(db, new Command(command.frame), 'script')),
            );
          done(operation, refusal ?? abortOf(buffer.subarray(start, end), unqueued), null);
          // Later commands on the connection are queued, and not run.
          if (refusal === null && isStillOpen(buffer, start)) throw new OutOfStep('the server refused EXEC');
          return;
        }
        const begins = moves && replies[0][0] !== MINUS ? transaction.db : db;
        const databases = databasesOf(elements, replies, begins);
        const named = operation.span === null ? [] : hidden;
        followTransaction(sequencer, operation, transaction.lanes, elements, databases, replies, named);
        const asked =
          moves || sent > elements.length ? array(elements.map(({ at }) => replies[at])) : buffer.subarray(start, end);
        done(operation, asked, databases.at(-1) ?? begins);
      },
      lost: (operation, reason) => {
        for (const { command } of elements) if (command.follow === WRITE) suspect(command, REPLY_LOST);
        lost(operation, reason);
      },
    },
    NOTHING,
    undefined,
    moves ? returned : undefined,
  );
  exec.span = span;
  sequencer.hold(exec, lane, keys, writes);
  for (const { spec, follow, frame, db: runsIn, mustCopy } of commands)
    if (spec.handling === 'script' && follow === WRITE && runsIn === db && !mustCopy)
      sequencer.expiry.ranOn(lane, exec, new Command(frame));
  return exec;
}

/**
 * The client's reply to an EXEC that did not run. The proxy answered QUEUED before the server saw the commands. So a
 * server's refusal, such as for its memory, is reported like a state that has changed in between.
 */
function abortOf(reply: Buffer, reason: Buffer | null): Buffer {
  return reason !== null && reply.toString('latin1', 0, ABORTED.length) === ABORTED
    ? Buffer.concat([BECAUSE, reason])
    : reply;
}

/** The user may write the key but not read it: from now on, effects that need a second read are copied instead. */
const probing = (lane: Lane): Sink => ({
  answered: (_operation, buffer, start) => {
    if (buffer[start] === MINUS) lane.mayProbe = false;
  },
  lost: () => undefined,
});

/** Whether the connection is still inside MULTI after this reply to EXEC or DISCARD. Its MULTI was accepted. */
export const isStillOpen = (reply: Buffer, start: number): boolean =>
  reply[start] === MINUS && reply.toString('latin1', start, start + ABORTED.length) !== ABORTED;

/** The elements of EXEC's reply as frames; null if it did not run (an error or nil). */
function splitReplies(buffer: Buffer, start: number, end: number): Buffer[] | null {
  if (buffer[start] !== STAR) return null;
  let at = buffer.indexOf(13, start) + 2;
  const count = Number(buffer.toString('latin1', start + 1, at - 2));
  if (count < 0) return null;
  const scanner = new FrameScanner();
  const replies: Buffer[] = [];
  for (let i = 0; i < count; i++) {
    const next = scanner.scan(buffer, at, end);
    replies.push(buffer.subarray(at, next));
    at = next;
  }
  return replies;
}

/** The database in which each command has run: the replies show which SELECTs took effect. */
function databasesOf(elements: readonly Element[], replies: readonly Buffer[], begins: number): number[] {
  let db = begins;
  return elements.map(({ command, args, at }) => {
    if (isSelect(command) && replies[at][0] !== MINUS) db = Number(args[1].toString('latin1'));
    return db;
  });
}

/**
 * Sends the mirror the effects of the commands that succeeded.
 * @param databases the database in which each command has run
 * @param hidden commands whose keys the authority names
 */
function followTransaction(
  sequencer: Sequencer,
  exec: Operation,
  lanes: PlacedTransaction['lanes'],
  elements: readonly Element[],
  databases: readonly number[],
  replies: readonly Buffer[],
  hidden: readonly QueuedCommand[],
): void {
  const left: QueuedCommand[] = [];
  const effects: ReplicatedCommand[] = [];
  // At once: a later command of the transaction that reads the key must not be trusted either.
  const suspect = (command: QueuedCommand, db: number): void => {
    const { frame, spec } = command;
    if (hidden.includes(command)) left.push(command);
    else if (spec.handling === 'script') sequencer.suspects.script(db, new Command(frame), 'script');
    else sequencer.suspects.frame(db, frame, 0, 'copy');
  };
  for (const [i, { command, args, probed, at }] of elements.entries()) {
    const db = databases[i];
    const raw = replies[at];
    const hasText = command.spec.handling === 'script' || command.spec.name === 'script|load';
    if (hasText && raw[0] !== MINUS) sequencer.scripts.accepted(args);
    if (command.follow === NOTHING) continue;
    if (raw[0] === MINUS) {
      // An error about the command's form, not its data: the mirror may refuse to queue the command, and then refuses
      // the whole transaction.
      const isOfForm = isRefusal(raw.toString('latin1', 1));
      if (command.follow === READ && isAboutData(raw, 0) && !isOfForm)
        effects.push({ frame: command.frame, reply: 'same', command, db, raw });
      if (command.follow === WRITE) sequencer.counters.of(command.workload).refused++;
      if (command.follow === WRITE && command.spec.handling === 'script' && mayHaveWritten(raw, 0, raw.length))
        suspect(command, db);
      continue;
    }
    if (command.follow === READ) {
      effects.push({ frame: command.frame, reply: 'same', command, db, raw });
      continue;
    }
    if (
      command.mustCopy ||
      (command.spec.derives && sequencer.suspects.isReadBy(db, command.frame, 0)) ||
      (command.spec.handling === 'script' && !sequencer.scriptEffects.repeats(exec, args))
    ) {
      suspect(command, db);
      continue;
    }
    const rewrite = command.spec.effect;
    if (rewrite !== null && rewrite.form !== null)
      sequencer.effects.noteReply(rewrite.form(decodeReply(raw).reply), command.workload);
    const effect =
      rewrite === null
        ? 'verbatim'
        : rewrite.of(
            args,
            decodeReply(raw).reply,
            exec.protocol,
            probed ? decodeReply(replies[at + 1]).reply : undefined,
            sequencer.effects.traits[exec.lane!.server.side],
          );
    if (effect === 'copy') suspect(command, db);
    else if (effect === 'verbatim') effects.push({ frame: command.frame, reply: 'same', command, db, raw });
    else if (effect !== null && 'read' in effect) {
      const { name, read: frame, reply } = effect;
      const asked: QueuedCommand = { ...command, spec: sequencer.table.byName(name)!, frame, follow: READ };
      effects.push({ frame, reply, command: asked, db, raw });
    } else if (effect !== null) for (const one of effect) effects.push({ ...one, command, db, raw });
  }
  // Before the effects: when they are judged, the keys that the server names now must be suspects already.
  if (left.length === 0) sequencer.scriptEffects.dropSpan(exec);
  else
    sequencer.scriptEffects.followChanges(exec, 'script', new Command(left[0].frame), () =>
      left.forEach(({ frame }) => sequencer.suspects.script(exec.db, new Command(frame), 'script')),
    );
  for (let from = 0, to = 1; from < effects.length; to++) {
    if (to < effects.length && effects[to].db === effects[from].db) continue;
    appendTransaction(sequencer, exec, lanes.get(effects[from].db) ?? exec.lane!, effects.slice(from, to));
    from = to;
  }
}

interface ReplicatedCommand extends EffectCommand {
  readonly command: QueuedCommand;
  readonly db: number;
  readonly raw: Buffer;
}

/**
 * Appends effects in one database as one transaction.
 * @param lane to the authority, in that database
 */
function appendTransaction(
  sequencer: Sequencer,
  exec: Operation,
  lane: Carrier,
  effects: readonly ReplicatedCommand[],
): void {
  const mirror = sequencer.mirrorOf(exec);
  const [{ db, command: first }] = effects;
  const writes = effects.some(({ command }) => command.follow === WRITE);
  const operation = (frame: Buffer, command: QueuedCommand): Operation => {
    const follower = new Operation(
      frame,
      0,
      frame.length,
      null,
      command.spec,
      command.workload,
      db,
      exec.protocol,
      writes ? WRITE : READ,
    );
    follower.lane = lane;
    follower.answeredAt = exec.answeredAt;
    follower.submittedAt = exec.submittedAt;
    follower.stalledMs = exec.stalledMs;
    follower.asked = new Command(command.frame);
    follower.check = FRAMING;
    return follower;
  };
  const batch: Operation[] = [
    operation(MULTI, first),
    ...effects.map(({ frame, command }) => operation(frame, command)),
  ];
  if (effects.some(({ command: { spec, frame } }) => reachesBeyond(spec, frame))) batch[0].reach = BEYOND;
  const last = operation(EXEC, effects.find(({ command }) => command.follow === WRITE)?.command ?? first);
  const expected = array(effects.map(({ reply, raw }) => (reply === 'same' ? raw : (reply ?? ANYTHING))));
  last.check = COMPARE;
  last.reply = expected;
  last.replyEnd = expected.length;
  // Without `raw`: the buffers of the replies are far larger.
  last.batch = batchOf(effects.map(({ frame, reply, command }) => ({ frame, reply, command })));
  mirror.appendAll([...batch, last]);
}

/** Whether the command reaches beyond its database, or gives the mirror the text of a script. */
const reachesBeyond = (spec: CommandSpec, frame: Buffer): boolean =>
  spec.handling !== 'keyed' || (spec.name === 'copy' && otherDatabase(new Command(frame)) !== null);

function batchOf(effects: readonly (EffectCommand & { command: QueuedCommand })[]): Batch {
  const commands = effects.map(({ frame }) => new Command(frame));
  const open = new Set(effects.flatMap(({ reply }, i) => (reply === null ? [i] : [])));
  return {
    commands,
    names: effects.map(({ command }) => command.spec.name),
    writes: effects.map(({ command }) => command.follow === WRITE),
    derives: effects.map(({ command }) => command.follow === WRITE && command.spec.derives),
    get views(): CommandView[] {
      return effects.map(({ frame, command }, i) => {
        const { args } = commands[i];
        return { name: frame === command.frame ? command.spec.name : args[0].toString('latin1').toLowerCase(), args };
      });
    },
    inOtherForm: false,
    expected(authority, mirror) {
      if (open.size === 0 && !this.inOtherForm) return authority;
      const wanted = splitReplies(authority, 0, authority.length);
      const got = splitReplies(mirror, 0, mirror.length);
      if (wanted === null || got === null || got.length !== wanted.length) return authority;
      const isOpen = (i: number): boolean => open.has(i) || (this.inOtherForm && wanted[i][0] !== MINUS);
      return array(wanted.map((each, i) => (isOpen(i) && got[i][0] !== MINUS ? got[i] : each)));
    },
  };
}

const selecting = (db: number): Buffer => encodeCommand(['SELECT', db]);

const MULTI = encodeCommand(['MULTI']);
const EXEC = encodeCommand(['EXEC']);
const ABORTED = '-EXECABORT';
const BECAUSE = Buffer.from('-EXECABORT Transaction discarded because of: ');
/** A placeholder in the expected reply for anything but an error; never equal to a real reply of these commands. */
const ANYTHING = Buffer.from('+?\r\n');
const STAR = '*'.charCodeAt(0);
const MINUS = '-'.charCodeAt(0);
