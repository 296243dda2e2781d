/**
 * A transaction on both servers: one contiguous batch on the authority's lane, and, once EXEC has answered, the
 * effects of the commands that succeeded as one contiguous batch on the mirror's.
 *
 *   client   MULTI  c1 c2 … EXEC
 *   lane     MULTI  c1 [probe] c2 … EXEC        a probe is the second read that an effect needs
 *   mirror   MULTI  e1 e2 … EXEC                only what happened
 */
import { effectOf, probeOf, type EffectCommand } from '../command/effects.js';
import type { CommandSpec } from '../command/table.js';
import type { CommandView } from '../compare/compare.js';
import { argumentsOf, decodeReply } from '../resp/decode.js';
import { array, encodeCommand } from '../resp/encode.js';
import { REPLY_LOST } from '../record/suspects.js';
import { FrameScanner } from '../resp/scan.js';
import type { Workload } from '../route/router.js';
import { removeExpired } from './expired.js';
import type { Lane } from './lane.js';
import { COMPARE, FRAMING, NOTHING, Operation, READ, WRITE, type Batch, type Follow, type Sink } from './operation.js';
import { isAboutData, mayHaveWritten } from './refusals.js';
import { mayDerive } from './frame-keys.js';
import type { Sequencer } from './sequencer.js';

export interface QueuedCommand {
  /** A copy of the command's bytes. */
  readonly frame: Buffer;
  readonly spec: CommandSpec;
  readonly workload: Workload;
  readonly follow: Follow;
  readonly mustCopy: boolean;
}

/** What the client is told in the end: the bytes of EXEC's reply, or null when the connection was lost. */
export type Done = (operation: Operation, reply: Buffer) => void;

interface Element {
  readonly command: QueuedCommand;
  readonly args: readonly Buffer[];
  readonly probed: boolean;
}

/**
 * Sends the batch; the returned operation is its EXEC, whose reply goes to `done`, in the lane's order.
 * @param lost is called when the connection was lost before EXEC was answered
 */
export function submitTransaction(
  sequencer: Sequencer,
  lane: Lane,
  commands: readonly QueuedCommand[],
  workload: Workload,
  keys: readonly string[],
  done: Done,
  lost: (operation: Operation, reason: Error) => void,
): Operation {
  const { db, protocol } = lane.identity;
  const writes = commands.some((command) => command.follow === WRITE || command.spec.write);
  const send = (frame: Buffer, sink: Sink, follow: Follow, spec?: CommandSpec): Operation => {
    const operation = new Operation(frame, 0, frame.length, sink, spec, workload, db, protocol, follow);
    sequencer.submit(operation, lane);
    return operation;
  };
  const hidden = commands.filter(({ spec, follow, frame }) => spec.handling === 'script' && follow === WRITE && sequencer.hidesChanges(frame, 0));
  const span = hidden.length > 0 ? sequencer.changes[lane.server.side].begin(db) : null;
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
      if (buffer[start] === MINUS) refusal = buffer.subarray(start, end);
    },
    lost: () => undefined,
  };
  for (const { spec, frame } of commands) removeExpired(sequencer, lane, spec, workload, frame, 0);
  send(MULTI, begun, NOTHING);
  for (const command of commands) {
    const args = argumentsOf(command.frame);
    if (command.follow === WRITE) sequencer.doubts.note(db, command.frame, 0);
    const probe = command.follow === WRITE && lane.mayProbe ? probeOf(command.spec.name, args) : null;
    elements.push({ command, args, probed: probe !== null });
    send(command.frame, noted, NOTHING, command.spec.handling === 'script' ? command.spec : undefined);
    if (probe !== null) send(probe, probing(lane), NOTHING);
  }
  const exec = send(
    EXEC,
    {
      answered: (operation, buffer, start, end) => {
        const replies = splitReplies(buffer, start, end);
        if (replies === null) {
          // Without MULTI (a user who may not) each command has run by itself.
          const alone = refusal === null ? [] : elements.flatMap(({ command }) => (command.follow === WRITE ? [command] : []));
          const told = operation.span === null || refusal === null ? [] : hidden;
          for (const command of alone) if (!told.includes(command)) sequencer.doubts.frame(db, command.frame, 0, 'copy');
          if (told.length === 0) sequencer.dropSpan(operation);
          else sequencer.followChanges(operation, 'script', () => told.forEach((command) => sequencer.doubts.script(db, command.frame, 0, 'script')));
          done(operation, refusal ?? abortOf(buffer.subarray(start, end), unqueued));
          return;
        }
        followTransaction(sequencer, operation, elements, replies, operation.span === null ? [] : hidden);
        done(operation, elements.some(({ probed }) => probed) ? array(elements.map((_, i) => replies[replyIndex(elements, i)])) : buffer.subarray(start, end));
      },
      lost: (operation, reason) => {
        for (const { command } of elements) if (command.follow === WRITE) sequencer.doubts.frame(db, command.frame, 0, REPLY_LOST);
        lost(operation, reason);
      },
    },
    NOTHING,
  );
  exec.span = span;
  sequencer.hold(exec, lane, keys, writes);
  return exec;
}

/**
 * What the client is told of an EXEC that did not run. Each command was answered QUEUED before the server saw it: why
 * the server refused one, because of its memory say, is told as of a state that has changed in between.
 */
function abortOf(reply: Buffer, reason: Buffer | null): Buffer {
  return reason !== null && reply.toString('latin1', 0, ABORTED.length) === ABORTED ? Buffer.concat([BECAUSE, reason]) : reply;
}

/** A user who may write the key and not read it: from now on, what only a second read would tell is copied. */
const probing = (lane: Lane): Sink => ({
  answered: (_operation, buffer, start) => {
    if (buffer[start] === MINUS) lane.mayProbe = false;
  },
  lost: () => undefined,
});

/** The elements of EXEC's reply as frames; null when it did not run (an error or nil). */
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

/** Where the reply of the `i`th command stands among replies that include those of probes. */
function replyIndex(elements: readonly Element[], i: number): number {
  let index = i;
  for (let j = 0; j < i; j++) if (elements[j].probed) index++;
  return index;
}

/**
 * Repeats what succeeded on the mirror.
 * @param hidden commands whose keys the authority tells
 */
function followTransaction(sequencer: Sequencer, exec: Operation, elements: readonly Element[], replies: readonly Buffer[], hidden: readonly QueuedCommand[]): void {
  const left: QueuedCommand[] = [];
  const effects: (EffectCommand & { command: QueuedCommand; raw: Buffer })[] = [];
  // At once, so that a later command of the transaction which reads the key is not trusted either.
  const doubt = (command: QueuedCommand): void => {
    const { frame, spec } = command;
    if (hidden.includes(command)) left.push(command);
    else if (spec.handling === 'script') sequencer.doubts.script(exec.db, frame, 0, 'script');
    else sequencer.doubts.frame(exec.db, frame, 0, 'copy');
  };
  for (const [i, { command, args, probed }] of elements.entries()) {
    const at = replyIndex(elements, i);
    const raw = replies[at];
    if (command.spec.handling === 'script' && raw[0] !== MINUS) sequencer.scripts.accepted(args);
    if (command.follow === NOTHING) continue;
    if (raw[0] === MINUS) {
      if (command.follow === READ && isAboutData(raw, 0)) effects.push({ frame: command.frame, reply: 'same', command, raw });
      if (command.follow === WRITE) command.workload.counters.refused++;
      if (command.follow === WRITE && command.spec.handling === 'script' && mayHaveWritten(raw, 0, raw.length)) doubt(command);
      continue;
    }
    if (command.follow === READ) {
      effects.push({ frame: command.frame, reply: 'same', command, raw });
      continue;
    }
    if (command.mustCopy || (mayDerive(command.spec) && sequencer.doubts.isReadBy(exec.db, command.frame, 0)) || (command.spec.handling === 'script' && !sequencer.repeatsScript(exec, args))) {
      doubt(command);
      continue;
    }
    const rewrite = effectOf(command.spec.name);
    if (rewrite?.form !== undefined) sequencer.noteReply(rewrite.form(decodeReply(raw).reply), command.workload);
    const effect = rewrite === undefined ? 'verbatim' : rewrite.effect(args, decodeReply(raw).reply, exec.protocol, probed ? decodeReply(replies[at + 1]).reply : undefined);
    if (effect === 'copy') doubt(command);
    else if (effect === 'verbatim') effects.push({ frame: command.frame, reply: 'same', command, raw });
    else if (effect !== null) for (const one of effect) effects.push({ ...one, command, raw });
  }
  if (effects.length > 0) appendTransaction(sequencer, exec, effects);
  if (left.length === 0) sequencer.dropSpan(exec);
  else sequencer.followChanges(exec, 'script', () => left.forEach(({ frame }) => sequencer.doubts.script(exec.db, frame, 0, 'script')));
}

function appendTransaction(sequencer: Sequencer, exec: Operation, effects: readonly (EffectCommand & { command: QueuedCommand; raw: Buffer })[]): void {
  const mirror = sequencer.mirrorOf(exec);
  const writes = effects.some(({ command }) => command.follow === WRITE);
  const operation = (frame: Buffer, command: QueuedCommand): Operation => {
    const follower = new Operation(frame, 0, frame.length, null, command.spec, command.workload, exec.db, exec.protocol, writes ? WRITE : READ);
    follower.lane = exec.lane;
    follower.answeredAt = exec.answeredAt;
    follower.submittedAt = exec.submittedAt;
    follower.stalledMs = exec.stalledMs;
    follower.asked = command.frame;
    follower.check = FRAMING;
    return follower;
  };
  const first = effects[0].command;
  const batch: Operation[] = [operation(MULTI, first), ...effects.map(({ frame, command }) => operation(frame, command))];
  const last = operation(EXEC, effects.find(({ command }) => command.follow === WRITE)?.command ?? first);
  const expected = array(effects.map(({ reply, raw }) => (reply === 'same' ? raw : (reply ?? ANYTHING))));
  last.check = COMPARE;
  last.reply = expected;
  last.replyEnd = expected.length;
  last.calm = exec.calm;
  // Without `raw`: the buffers that replies came in hold far more.
  last.batch = batchOf(effects.map(({ frame, reply, command }) => ({ frame, reply, command })));
  mirror.appendAll([...batch, last]);
}

function batchOf(effects: readonly (EffectCommand & { command: QueuedCommand })[]): Batch {
  const open = effects.flatMap(({ reply }, i) => (reply === null ? [i] : []));
  return {
    frames: effects.map(({ frame }) => frame),
    names: effects.map(({ command }) => command.spec.name),
    writes: effects.map(({ command }) => command.follow === WRITE),
    derives: effects.map(({ command }) => command.follow === WRITE && mayDerive(command.spec)),
    get views(): CommandView[] {
      return effects.map(({ frame, command }) => {
        const args = argumentsOf(frame);
        return { name: frame === command.frame ? command.spec.name : args[0].toString('latin1').toLowerCase(), args };
      });
    },
    expected(authority, mirror) {
      const wanted = splitReplies(authority, 0, authority.length);
      const got = splitReplies(mirror, 0, mirror.length);
      if (open.length === 0 || wanted === null || got === null || got.length !== wanted.length) return authority;
      for (const i of open) if (got[i][0] !== MINUS) wanted[i] = got[i];
      return array(wanted);
    },
  };
}

const MULTI = encodeCommand(['MULTI']);
const EXEC = encodeCommand(['EXEC']);
const ABORTED = '-EXECABORT';
const BECAUSE = Buffer.from('-EXECABORT Transaction discarded because of: ');
/** Stands in the expected reply where anything but an error will do; never equal to a real reply of these commands. */
const ANYTHING = Buffer.from('+?\r\n');
const STAR = '*'.charCodeAt(0);
const MINUS = '-'.charCodeAt(0);

