/**
 * Finds the handler of the command at hand: interceptors in their order, then the handler of its kind.
 *
 *   unsupported forms are counted ─▶ exclusive command? wait ─▶ another shard's slot? ─▶ subscriber? ─▶ unknown?
 *   ─▶ intercepted? ─▶ HANDLERS
 */
import { refusal, type Handling } from '../command/policy.js';
import type { CommandSpec } from '../command/table.js';
import { LEAST_MAX_ARGUMENTS, refusesArguments } from './argument-limit.js';
import type { CommandContext, Handler } from './context.js';
import { answerLocally } from './handlers/answered-here.js';
import { asksToBlock, block } from './handlers/blocking.js';
import { broadcast } from './handlers/broadcast.js';
import { redirected } from './handlers/cluster.js';
import { exclusive } from './handlers/exclusive.js';
import { flushOwned } from './handlers/flush-owned.js';
import { keyed } from './handlers/keyed.js';
import { plain } from './handlers/plain.js';
import { publish, subscription } from './handlers/pubsub.js';
import { takeRegional } from './handlers/regional.js';
import { takeSecondWriter } from './handlers/second-writer.js';
import { unknown } from './handlers/unknown.js';
import { takeWiderRight } from './handlers/wider-rights.js';
import { refusalOfLength } from './text-limit.js';

/**
 * Takes the command at hand, so that no other handler gets it.
 * @param isRetry whether the command was dispatched before, and had to wait
 * @returns whether it was taken
 */
type Interceptor = (context: CommandContext, spec: CommandSpec, isRetry: boolean) => boolean;

const refused: Interceptor = (context, spec) => {
  if (!spec.refusable) return false;
  const { frame, argStart, argEnd, argc } = context.parser;
  const message = refusal(spec, frame, argStart, argEnd, argc);
  if (message === null) return false;
  context.refuse(message);
  return true;
};

const secondWriter: Interceptor = (context, spec, isRetry) =>
  context.sequencer.router.pinsOtherRegion && takeSecondWriter(context, spec, isRetry);

const regional: Interceptor = (context, spec) => context.sequencer.router.rewrites && takeRegional(context, spec);

/** Only counts: it takes no command. */
const counting: Interceptor = (context, spec, isRetry) => {
  if (spec.watched >= 0 && !isRetry) context.clients.counterWatch.offer(context, spec);
  return false;
};

const widerRight: Interceptor = (context, spec) =>
  spec.rightsCheck !== null && takeWiderRight(context, spec, spec.rightsCheck);

const inTransaction: Interceptor = ({ client }, spec) => {
  if (client.transaction === null) return false;
  client.transaction.queue(spec);
  return true;
};

const blocking: Interceptor = (context, spec) => {
  if (spec.blocking === null || !asksToBlock(context, spec.blocking)) return false;
  block(context, spec);
  return true;
};

// Calls each function by its name: V8 inlines these calls, and would not inline calls through a list.
const intercepted: Interceptor = (context, spec, isRetry) =>
  refused(context, spec, isRetry) ||
  secondWriter(context, spec, isRetry) ||
  regional(context, spec, isRetry) ||
  counting(context, spec, isRetry) ||
  widerRight(context, spec, isRetry) ||
  inTransaction(context, spec, isRetry) ||
  blocking(context, spec, isRetry);

const HANDLERS: Readonly<Record<Handling, Handler>> = {
  local: (context, spec) => answerLocally(context, spec.name),
  keyed,
  script: keyed,
  exclusive: (context, spec) => flushOwned(context, spec) || exclusive(context, spec),
  broadcast,
  publish,
  subscribe: subscription,
  authority: plain,
  // An interceptor refuses these commands.
  refused: plain,
};

/** Refuses the command at hand if arguments that become text are too long. @returns whether it was refused */
function refusesLength(context: CommandContext, spec: CommandSpec | undefined): boolean {
  const message = refusalOfLength(spec, context.parser, context.clients.textLimits);
  if (message !== null) context.refuse(message);
  return message !== null;
}

/**
 * @param isRetry whether the command at hand was dispatched before, and had to wait
 */
export function dispatch(context: CommandContext, isRetry: boolean): void {
  const { parser, clients, client } = context;
  const { frame, argStart, argEnd, argc } = parser;
  const { sequencer } = clients;
  const spec = sequencer.table.find(frame, argStart, argEnd, argc);
  if (parser.end - parser.start > clients.textLimits.argument && refusesLength(context, spec)) return;
  if (argc > LEAST_MAX_ARGUMENTS && refusesArguments(context, spec, isRetry)) return;
  if (spec !== undefined && spec.forms !== null && !isRetry) clients.support.offer(parser, spec, spec.forms);
  if (sequencer.blocked) return context.flow.retryWhen('open');
  // Redirected before the subscription takes it: the server's redirection would name a server.
  if (clients.face !== null && spec !== undefined && redirected(context, spec, clients.face)) return;
  if (client.subscriptions !== null && client.subscriptions.takes(spec)) return;
  if (spec === undefined) return unknown(context, isRetry);
  client.lastCommand = spec;
  // A command that the proxy answers itself is never refused here; only its own handler queues it.
  if (spec.handling !== 'local' && intercepted(context, spec, isRetry)) return;
  HANDLERS[spec.handling](context, spec);
}
