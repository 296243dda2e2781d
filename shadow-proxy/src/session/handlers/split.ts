/**
 * A command whose keys have different authorities. It is split if its meaning allows that, else refused. Both are
 * counted, so that the plan can be corrected before a cutover.
 */
import type { CommandSpec } from '../../command/table.js';
import type { Lane } from '../../pipeline/lane.js';
import { Operation, WRITE, type Sink } from '../../pipeline/operation.js';
import type { KeyLocks, LockRequest } from '../../pipeline/key-locks.js';
import { decodeReply, isError, text } from '../../resp/decode.js';
import { array, encodeCommand, integer } from '../../resp/encode.js';
import type { Workload } from '../../route/router.js';
import type { Side, StageRule } from '../../route/stage.js';
import type { CommandContext } from '../context.js';
import { followOf } from '../routing.js';

export function crossing(what: string, one: Workload, other: Workload): string {
  return (
    `ERR shadow-proxy: ${what.toUpperCase()} spans workload "${one.name}" (stage ${one.position.stage}${percentOf(one)}) and workload "${other.name}" ` +
    `(stage ${other.position.stage}${percentOf(other)}), which have different authorities: move them together, or use keys of one of them`
  );
}

const percentOf = (workload: Workload): string => (workload.position.whole ? '' : ` at ${workload.position.percent} %`);

export interface Part {
  readonly authority: Side;
  readonly workload: Workload;
  readonly rule: StageRule;
  readonly mixed: boolean;
  /** The positions of the keys in the client's command, from 0. */
  readonly places: number[];
  readonly keys: Buffer[];
}

/** Splits the command at hand; the client is idle and held. */
export function submitSplit(context: CommandContext, spec: CommandSpec): void {
  const { sequencer } = context;
  const { identity } = context.client;
  const failed = (problem: Error): void => context.lanes.failed(problem);
  const lockRequests = new Map<KeyLocks, LockRequest>();
  const leave = (): void => {
    for (const lockRequest of lockRequests.values()) lockRequest.locks.leave(lockRequest);
  };
  const send = async (parts: readonly Part[], lanes: Record<Side, Lane>): Promise<void> => {
    context.clients.counts.answeredSplit();
    const replies = await Promise.all(parts.map((part) => sendPart(context, spec, part, lanes[part.authority])));
    context.reply(join(spec, parts, replies));
    context.flow.resume();
  };
  /** Sends the parts, once the keys of each are free. */
  const begin = (lanes: Record<Side, Lane>): void => {
    if (context.client.closed) return leave();
    const parts = partsOf(context);
    // While the command waited, the stages may have changed, an exclusive command may have begun, or a lane may be
    // lost.
    if (parts === null || parts === 'rewritten' || sequencer.blocked) {
      leave();
      return parts === 'rewritten' ? context.flow.retryWhen('idle') : context.flow.retryWhen('open');
    }
    if (parts.some(({ authority }) => lanes[authority].closed)) {
      leave();
      return context.flow.retryWhen('idle');
    }
    for (const part of parts) {
      const lane = lanes[part.authority];
      const locks = sequencer.lanes[part.authority].locks(context.client.db);
      if (!locks.active) continue;
      const keys = spec.write ? locks.withWoken(idsOf(part)) : idsOf(part);
      const lockRequest = lockRequests.get(locks) ?? null;
      if (locks.admits(lane, keys, spec.write, lockRequest)) continue;
      lockRequests.set(locks, locks.wait({ lane, keys, writes: spec.write, go: () => begin(lanes) }, lockRequest));
      return;
    }
    send(parts, lanes).catch(failed);
    leave();
  };
  void Promise.all([sequencer.lanes.source.open(identity), sequencer.lanes.target.open(identity)])
    .then(([source, target]) => begin({ source, target }))
    .catch(failed);
}

const idsOf = (part: Part): string[] => part.keys.map((key) => key.toString('latin1'));

/**
 * The parts; null while a workload is changing its stage; `rewritten` if a stage change has ended after which these
 * commands are rewritten.
 */
function partsOf(context: CommandContext): Part[] | 'rewritten' | null {
  const { router } = context.sequencer;
  const parts = new Map<Side, Part>();
  for (let i = 1; i < context.parser.argc; i++) {
    const key = context.argument(i);
    const workload = router.match(key, 0, key.length);
    if (workload.position.held) return null;
    if (workload.isRewritten) return 'rewritten';
    const rule = workload.position.rule(key, 0, key.length);
    let part = parts.get(rule.authority);
    if (part === undefined)
      parts.set(
        rule.authority,
        (part = { authority: rule.authority, workload, rule, mixed: false, places: [], keys: [] }),
      );
    else if (part.rule !== rule && !part.mixed) parts.set(rule.authority, (part = { ...part, mixed: true }));
    part.places.push(i - 1);
    part.keys.push(key);
  }
  return [...parts.values()];
}

export function sendPart(context: CommandContext, spec: CommandSpec, part: Part, lane: Lane): Promise<Buffer> {
  const { sequencer, readShares } = context.clients;
  const follow = followOf(sequencer, spec, part.rule, part.mixed);
  const frame = encodeCommand([spec.name, ...part.keys]);
  return new Promise((resolve, reject) => {
    const sink: Sink = {
      answered: (_operation, buffer, start, end) => resolve(buffer.subarray(start, end)),
      lost: (_operation, reason) => reject(reason),
    };
    const operation = new Operation(
      frame,
      0,
      frame.length,
      sink,
      spec,
      part.workload,
      context.client.db,
      context.client.protocol,
      readShares.followOf(follow, part.rule, part.workload),
    );
    operation.mustCopy = part.mixed;
    if (operation.follow === WRITE) sequencer.suspects.note(context.client.db, frame, 0);
    sequencer.hold(operation, lane, idsOf(part), spec.write);
    sequencer.submit(operation, lane);
  });
}

/**
 * Joins the replies: MGET's values in the order of the keys, otherwise the sum. An error of one part is the error of
 * the whole.
 */
function join(spec: CommandSpec, parts: readonly Part[], replies: readonly Buffer[]): Buffer {
  const failed = replies.find((reply) => isError(decodeReply(reply).reply));
  if (failed) return failed;
  if (spec.name !== 'mget')
    return integer(replies.reduce((sum, reply) => sum + Number(text(decodeReply(reply).reply)), 0));
  const values: Buffer[] = [];
  for (const [i, part] of parts.entries()) {
    let at = replies[i].indexOf(10) + 1;
    for (const place of part.places) {
      const { end } = decodeReply(replies[i], at);
      values[place] = replies[i].subarray(at, end);
      at = end;
    }
  }
  return array(values);
}
