/** Commands without keys that nothing is made of: the authority of `default` answers, and nothing follows. */
import { titleOf } from '../../command/forms.js';
import type { CommandSpec } from '../../command/table.js';
import { NOTHING, Operation } from '../../pipeline/operation.js';
import { countUnsupported } from '../../route/router.js';
import { otherSide } from '../../route/stage.js';
import type { CommandContext } from '../context.js';
import { noting } from './noting.js';
import { answerOwned } from './owned.js';
import { scanOf, shapeOf } from './scan.js';
import { sendInside } from './send-together.js';

/** A name of a command has no more letters. */
const MAX_NAME = 64;

/** The command at hand goes to the authority of the default workload, and nothing follows. */
export function plain(context: CommandContext, spec?: CommandSpec): void {
  const { parser, client, clients, lanes } = context;
  const { subscribers } = clients;
  const { router } = clients.sequencer;
  if (router.default.held) return context.flow.retryWhen('open');
  if (subscribers.changing && spec?.name.startsWith('pubsub|') === true && subscribers.holds(context, null)) return;
  const { authority } = router.default.keylessRule;
  const owned = clients.ownedAt(authority);
  if (spec !== undefined && owned !== null && answerOwned(context, spec, authority, owned)) return;
  const scan = spec?.name === 'scan' ? scanOf(context, authority) : null;
  const lane = lanes.to(scan?.side ?? authority);
  if (lane === null) return;
  if (spec !== undefined) clients.counts.sent(spec, router.default);
  const { db, protocol } = client;
  const [frame, start, end] = scan?.frame
    ? [scan.frame, 0, scan.frame.length]
    : [parser.frame, parser.start, parser.end];
  const sink = spec?.handling === 'script' ? noting(context) : context;
  const operation = new Operation(frame, start, end, sink, spec, router.default, db, protocol, NOTHING);
  const { side } = lane.server;
  const shape = spec === undefined ? null : shapeOf(spec.name, side, clients.ownedAt(side));
  if ((scan !== null || spec?.name === 'keys') && lane.server.isKeydb)
    return sendInside(context, operation, lane, shape);
  if (shape !== null) {
    operation.sink = {
      lost: (each, reason) => context.lost(each, reason),
      answered: (each, buffer, from, to) => context.deliver(each, shape(buffer.subarray(from, to))),
    };
  }
  lanes.submit(operation, lane);
}

/**
 * A command that neither the table nor, perhaps, the server knows: the authority answers, nothing follows.
 * @param again whether the command was looked at before, and had to wait
 */
export function unknown(context: CommandContext, again: boolean): void {
  const { client } = context;
  const { servers, router, table } = context.clients.sequencer;
  const { authority } = router.default.keylessRule;
  const word = (index: number): string => context.argument(index).toString('latin1').toLowerCase().slice(0, MAX_NAME);
  const name = table.byName(word(0)) === undefined ? word(0) : `${word(0)}|${word(1)}`;
  // What no server knows, such as a client's question for something newer, is refused by both alike: no client will
  // miss it.
  const isThere = servers[authority].commands.has(name);
  const other = otherSide(authority);
  if (!again && isThere !== servers[other].commands.has(name) && servers[other].commands.size > 0) {
    countUnsupported(router.default.counters, titleOf(name), isThere ? other : authority, !isThere);
  }
  if (client.transaction !== null) {
    // The server's own refusal is sent for, unless it might not refuse: then the command would run by itself.
    if (isThere)
      return context.refuse(`ERR shadow-proxy: ${name.replace('|', ' ').toUpperCase()} inside MULTI is not supported`);
    client.transaction.spoil();
  }
  plain(context);
}
