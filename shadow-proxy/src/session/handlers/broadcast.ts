/**
 * Commands that go to the authority of `default`, and to its mirror if they concern that server, too: SCRIPT LOAD,
 * CONFIG SET.
 */
import type { CommandSpec } from '../../command/table.js';
import { BEYOND, Operation, NOTHING, WRITE } from '../../pipeline/operation.js';
import { noting } from './noting.js';
import type { CommandContext } from '../context.js';

export function broadcast(context: CommandContext, spec: CommandSpec): void {
  const { clients, parser } = context;
  const { scripts, router } = clients.sequencer;
  if (router.default.position.held) return context.flow.retryWhen('open');
  const lane = context.lanes.to(router.default.position.keylessRule.authority);
  if (lane === null) return;
  if (spec.name === 'script|load' && parser.argc > 2) scripts.learn(context.argument(2));
  clients.counts.sent(spec, router.default);
  const operation = new Operation(
    parser.frame,
    parser.start,
    parser.end,
    context,
    spec,
    router.default,
    // The command does the same in every database.
    0,
    context.client.protocol,
    router.mirrors ? WRITE : NOTHING,
  );
  operation.reach = BEYOND;
  if (spec.name === 'script|load') operation.sink = noting(context);
  // A mirror that knows fewer events may refuse the setting. That is no problem of the migration.
  if (spec.name === 'config|set') operation.confirmed = () => undefined;
  context.lanes.submit(operation, lane);
}
