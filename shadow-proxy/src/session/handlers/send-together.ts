/** One command of a client that is sent as several, one right behind the other on their lane. */
import { OutOfStep } from '../../pipeline/failures.js';
import type { Lane } from '../../pipeline/lane.js';
import { NOTHING, Operation, type Sink } from '../../pipeline/operation.js';
import { REPLY_LOST } from '../../pipeline/suspicion.js';
import { isStillOpen } from '../../pipeline/transaction.js';
import { decodeReply } from '../../resp/decode.js';
import { encodeCommand } from '../../resp/encode.js';
import type { CommandContext } from '../context.js';

/**
 * Sends a command and, right behind it, the read that its effect needs. Nothing comes between the two on their lane,
 * and other lanes wait for the key until both are answered. If the client's user may not read, the key is copied
 * instead.
 */
export function sendProbed(context: CommandContext, operation: Operation, lane: Lane, probe: Buffer): void {
  const { sequencer } = context;
  const { frame, start, end, spec, workload, db, protocol } = operation;
  operation.lane = lane;
  const asked: Sink = {
    answered: (each, buffer, from, to) => {
      operation.answeredAt = each.answeredAt;
      operation.submittedAt = each.submittedAt;
      operation.stalledMs = each.stalledMs;
      operation.reply = buffer;
      operation.replyStart = from;
      operation.replyEnd = to;
      context.answered(each, buffer, from, to);
    },
    lost: (each, reason) => context.lost(each, reason),
  };
  const read: Sink = {
    answered: (_each, buffer, from) =>
      sequencer.effects.probed(operation, buffer[from] === MINUS ? null : decodeReply(buffer, from).reply),
    lost: () => sequencer.suspects.operation(operation, REPLY_LOST),
  };
  context.lanes.submit(new Operation(frame, start, end, asked, spec, workload, db, protocol, NOTHING), lane);
  const second = new Operation(probe, 0, probe.length, read, undefined, workload, db, protocol, NOTHING);
  sequencer.submit(second, lane);
  sequencer.hold(second, lane, sequencer.keys.ids(frame, start), true);
}

/**
 * Sends one command inside MULTI, and answers with its own reply. KeyDB runs KEYS, and SCAN with a COUNT of 100 or
 * more, on another thread and on a snapshot. Then later commands on the connection overtake it, or wait for the next
 * bytes, and snapshots harm the server (upstream/scan-page.ts). In a transaction KeyDB does neither.
 * @param shape changes the reply for the client
 */
export function sendInside(
  context: CommandContext,
  operation: Operation,
  lane: Lane,
  shape: ((reply: Buffer) => Buffer) | null,
): void {
  const { frame, start, end, workload, db, protocol } = operation;
  const { sequencer } = context;
  const own = (bytes: Buffer, sink: Sink): Operation =>
    new Operation(bytes, 0, bytes.length, sink, undefined, workload, db, protocol, NOTHING);
  let refusal: Buffer | null = null;
  const queued: Sink = {
    answered: (_each, buffer, from, to) => {
      if (buffer[from] === MINUS) refusal ??= buffer.subarray(from, to);
    },
    lost: () => undefined,
  };
  sequencer.submit(own(MULTI, queued), lane);
  sequencer.submit(own(frame.subarray(start, end), queued), lane);
  const done: Sink = {
    answered: (each, buffer, from, to) => {
      const inner =
        buffer[from] === STAR ? buffer.subarray(buffer.indexOf(10, from) + 1, to) : buffer.subarray(from, to);
      context.deliver(each, refusal ?? shape?.(inner) ?? inner);
      if (refusal === null && isStillOpen(buffer, from)) throw new OutOfStep('the server refused EXEC');
    },
    lost: (each, reason) => context.lost(each, reason),
  };
  context.lanes.submit(own(EXEC, done), lane);
}

const [STAR, MINUS] = [42, 45];
const MULTI = encodeCommand(['MULTI']);
const EXEC = encodeCommand(['EXEC']);
