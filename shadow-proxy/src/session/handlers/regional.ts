/**
 * Commands on workloads whose layout is `per-region`: answered from this region's counters, or refused. No lane carries
 * them.
 *
 *   MULTI, the command, DISCARD ─▶ the client's own lane: may its user, and is the command well-formed?
 *                               ─▶ regional/counter-commands.ts ─▶ the counters package ─▶ the target
 */
import { CounterError, type PlainCounters } from '../../../../counters/src/index.js';
import { KeyList, keysOf } from '../../command/keys.js';
import type { CommandSpec } from '../../command/table.js';
import { OutOfStep } from '../../pipeline/failures.js';
import { isNoError, type Lane } from '../../pipeline/lane.js';
import { NOTHING, Operation, questions, type Sink } from '../../pipeline/operation.js';
import { isStillOpen } from '../../pipeline/transaction.js';
import { argumentsOf, decodeReply, isError } from '../../resp/decode.js';
import { encodeCommand, error } from '../../resp/encode.js';
import {
  isCounterCommand,
  Refusal,
  REWRITTEN,
  rewrite,
  type Answer,
  type CounterCommand,
} from '../../regional/counter-commands.js';
import { ErrorReply } from '../../regional/store.js';
import type { Router, Workload } from '../../route/router.js';
import type { CommandBytes } from '../routing.js';
import { hiddenBy } from './script.js';
import type { CommandContext } from '../context.js';

/** Takes the command at hand if it works on such a workload. @returns false if another handler answers it */
export function takeRegional(context: CommandContext, spec: CommandSpec): boolean {
  const { router } = context.sequencer;
  const { workload, beside } = rewrittenIn(router, spec, context.parser);
  if (workload === null) return refuseHidden(context, spec);
  const name = spec.name.replace('|', ' ').toUpperCase();
  const layout = `"${workload.name}", whose counterLayout is per-region`;
  if (!isCounterCommand(spec.name)) {
    context.refuse(notAllowed(name, workload));
  } else if (beside !== null) {
    context.clients.counts.addRefused();
    context.refuse(
      `ERR shadow-proxy: ${name} spans ${layout}, and "${beside.name}": send one command for each workload`,
    );
  } else if (context.client.db !== 0) {
    context.refuse(
      `ERR shadow-proxy: ${name} is refused on ${layout}, in database ${context.client.db}: per-region counters exist in database 0 only`,
    );
  } else if (context.client.transaction !== null) context.client.transaction.queueRegional(spec, workload);
  else answerAlone(context, spec, workload);
  return true;
}

export const notAllowed = (name: string, workload: Workload): string =>
  `ERR shadow-proxy: ${name} is refused on "${workload.name}", whose counterLayout is per-region: ${REWRITTEN} are allowed`;

/** The first key of the command that is rewritten, and the first that is not. */
export function rewrittenIn(
  router: Router,
  spec: CommandSpec,
  { frame, argStart, argEnd, argc }: CommandBytes,
): { workload: Workload | null; beside: Workload | null } {
  const keys = new KeyList();
  const found = keysOf(spec, frame, argStart, argEnd, argc, keys);
  let [workload, beside]: (Workload | null)[] = [null, null];
  for (let i = 0; i < (found < 0 ? keys.known : found); i++) {
    const each = router.match(frame, argStart[keys.index[i]], argEnd[keys.index[i]]);
    if (each.isRewritten) workload ??= each;
    else beside ??= each;
  }
  return { workload, beside };
}

/**
 * Refuses commands that may use such counters without naming them: they would find nothing, or delete parts of a
 * counter.
 */
function refuseHidden(context: CommandContext, spec: CommandSpec): boolean {
  const { sequencer } = context;
  const workload = sequencer.router.workloads.find(({ isRewritten: rewrites }) => rewrites);
  if (workload === undefined || (spec.handling !== 'script' && spec.handling !== 'exclusive') || spec.aboutCode)
    return false;
  if (spec.name === 'move' || spec.name === 'copy') return false;
  if (
    spec.handling === 'script' &&
    hiddenBy(sequencer, spec, context.command, sequencer.router.default.position.keylessRule.authority) === 'nothing'
  )
    return false;
  const todo = spec.handling === 'script' ? 'declare the keys of the script' : 'delete keys by their names';
  context.refuse(
    `ERR shadow-proxy: ${spec.name.replace('|', ' ').toUpperCase()} does not name its keys, and may touch "${workload.name}", whose counterLayout is per-region: ${todo}`,
  );
  return true;
}

function answerAlone(context: CommandContext, spec: CommandSpec, workload: Workload): void {
  carryOut(context, [Buffer.from(context.command)], workload, async (plain) => {
    const { counts, regional } = context.clients;
    counts.sent(spec, workload);
    const command = rewrite(spec.name, argumentsOf(context.command), context.client.protocol);
    if (command instanceof Refusal) return command.reply;
    regional!.lookBeside(command.names[0], () => counts.addSecondWriterWrite(workload));
    return (await perform(plain, [command]))[0];
  });
}

/**
 * Answers the command at hand with the result of `work`, if the client's user may run `commands`. It begins once all
 * earlier commands of the client are answered; the client is held meanwhile.
 */
export function carryOut(
  context: CommandContext,
  commands: readonly Buffer[],
  workload: Workload,
  work: (plain: PlainCounters) => Promise<Buffer>,
): boolean {
  const lane = context.lanes.to('target');
  if (lane === null) return false;
  if (context.lanes.inFlight > 0) {
    context.flow.retryWhen('idle');
    return false;
  }
  const { frame, start, end } = context.parser;
  const operation = new Operation(
    frame,
    start,
    end,
    context,
    undefined,
    workload,
    context.client.db,
    context.client.protocol,
    NOTHING,
  );
  context.lanes.adopt(operation, lane);
  context.flow.hold();
  const answer = async (): Promise<Buffer> =>
    (await refusalOf(context, lane, commands, workload)) ?? work(await context.clients.regional!.counters());
  const deliver = (reply: Buffer): void => {
    context.deliver(operation, reply);
    context.flow.resume();
  };
  answer()
    .catch((problem: Error) => {
      const said = errorOf(problem);
      if (said === null) throw problem;
      return said;
    })
    .then(deliver)
    // The command may have been counted, or not. The client sees a closed connection, as if it had lost the server
    // itself.
    .catch((problem: Error) => context.lost(operation, problem));
  return true;
}

/** The error for the client if the command was certainly not run; null if that is unknown. */
function errorOf(problem: Error): Buffer | null {
  if (problem instanceof ErrorReply) return error(problem.message);
  if (!(problem instanceof CounterError)) return null;
  if (problem.code === 'REFUSED') return error((problem.cause as Error).message);
  return problem.code === 'FOREIGN_VALUE' ? error(`ERR shadow-proxy: ${problem.message}`) : null;
}

const [MULTI, DISCARD] = [encodeCommand(['MULTI']), encodeCommand(['DISCARD'])];

/** The index at which the last of the replies begins. */
function lastOf(replies: Buffer, start: number, end: number): number {
  let last = start;
  for (let at = start; at < end; at = decodeReply(replies, at).end) last = at;
  return last;
}

const MINUS = '-'.charCodeAt(0);

/**
 * Asks the server whether it would run the commands for the client's user, without running them.
 * @returns the error, or null
 */
async function refusalOf(
  context: CommandContext,
  lane: Lane,
  commands: readonly Buffer[],
  workload: Workload,
): Promise<Buffer | null> {
  const { sequencer } = context;
  const { db, protocol } = context.client;
  const replies = await new Promise<Buffer>((resolve, reject) => {
    const operation = (frame: Buffer, sink: Sink): Operation =>
      new Operation(frame, 0, frame.length, sink, undefined, workload, db, protocol, NOTHING);
    const inside = operation(Buffer.concat([...commands, DISCARD]), {
      answered: (_operation, buffer, start, end) => {
        resolve(buffer.subarray(start, end));
        const last = lastOf(buffer, start, end);
        if (lane.mayMulti === true && isStillOpen(buffer, last)) throw new OutOfStep('the server refused DISCARD');
      },
      lost: (_operation, reason) => reject(reason),
    });
    inside.bundle = questions(commands.length + 1);
    const multi = operation(MULTI, {
      answered: (_operation, buffer, start) => void (lane.mayMulti = buffer[start] !== MINUS),
      lost: () => undefined,
    });
    // Without MULTI the commands would run.
    if (lane.mayMulti !== true) lane.first(multi, isNoError, [inside]);
    sequencer.submit(multi, lane);
    sequencer.submit(inside, lane);
  });
  for (let at = 0; at < replies.length;) {
    const { reply, end } = decodeReply(replies, at);
    if (isError(reply)) return replies.subarray(at, end);
    at = end;
  }
  return null;
}

/**
 * Runs the commands in order. Neighbours on one counter run together, so that no other command of this region comes
 * between them.
 */
export async function perform(plain: PlainCounters, commands: readonly CounterCommand[]): Promise<Buffer[]> {
  const replies: Buffer[] = [];
  for (let at = 0; at < commands.length;) {
    const { names, asks } = commands[at];
    let to = at + 1;
    if (names.length === 1)
      while (to < commands.length && commands[to].names.length === 1 && commands[to].names[0] === names[0]) to++;
    const some = commands.slice(at, to);
    const answers = some.length === 1 && asks ? [await plain.look(names)] : await together(plain, some);
    some.forEach((command, i) => replies.push(command.reply(answers[i])));
    at = to;
  }
  return replies;
}

/**
 * @returns the answer to each command, for each of its names
 */
async function together(plain: PlainCounters, commands: readonly CounterCommand[]): Promise<(readonly Answer[])[]> {
  const [{ names, step }] = commands;
  if (commands.length === 1) return [await Promise.all(names.map((name) => plain.run(name, step)))];
  return (
    await plain.runAll(
      names[0],
      commands.map((command) => command.step),
    )
  ).map((answer) => [answer]);
}
