/** Commands without keys that have no effect on the mirror: the authority of `default` answers them. */
import type { CommandSpec } from '../../command/table.js';
import { closeFor } from '../../pipeline/failures.js';
import { NOTHING, Operation } from '../../pipeline/operation.js';
import { isError, text } from '../../resp/decode.js';
import { bulk, error } from '../../resp/encode.js';
import type { Side } from '../../route/stage.js';
import type { CommandContext } from '../context.js';
import { noting } from './noting.js';
import { answerOwned } from './owned.js';
import { scanOf, shapeOf } from './scan.js';
import { sendInside } from './send-together.js';

/** Sends the command at hand to the authority of the default workload. The mirror gets nothing. */
export function plain(context: CommandContext, spec?: CommandSpec): void {
  const { parser, client, clients, lanes } = context;
  const { subscribers } = clients;
  const { router } = clients.sequencer;
  if (router.default.position.held) return context.flow.retryWhen('open');
  if (subscribers.changing && spec?.name.startsWith('pubsub|') === true && subscribers.holds(context, null)) return;
  const { authority } = router.default.position.keylessRule;
  if (spec?.name === 'acl|whoami' && clients.sequencer.servers[authority].fence.loginFor(client.credentials) !== null)
    return whoAmI(context, authority);
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
  if ((scan !== null || spec?.name === 'keys') && lane.server.traits.isKeydb)
    return sendInside(context, operation, lane, shape);
  if (shape !== null) {
    operation.sink = {
      lost: (each, reason) => context.lost(each, reason),
      answered: (each, buffer, from, to) => context.deliver(each, shape(buffer.subarray(from, to))),
    };
  }
  lanes.submit(operation, lane);
}

/** Behind a fence the client's lane has another user than the client. */
function whoAmI(context: CommandContext, side: Side): void {
  const { client, clients, flow } = context;
  flow.whenIdle(() => {
    clients.sequencer.servers[side]
      .askFenced(client.credentials, 'ACL', 'WHOAMI')
      .then((reply) => {
        context.reply(isError(reply) ? error(text(reply)) : bulk(reply.data));
        flow.resume();
      })
      .catch((problem: unknown) => closeFor(problem, context));
  });
}
