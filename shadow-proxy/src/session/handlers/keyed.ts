/** Commands on keys. They go to the authority of the keys' workload, and their effects go to its mirror. */
import type { CommandSpec } from '../../command/table.js';
import { removeExpired } from '../../pipeline/expired.js';
import type { Lane } from '../../pipeline/lane.js';
import { NOTHING, Operation, WRITE } from '../../pipeline/operation.js';
import type { Workload } from '../../route/router.js';
import { isOff, type StageRule } from '../../route/stage.js';
import type { CommandContext } from '../context.js';
import { crossesDatabases, followOf, hiddenKeys, mayWriteOthers, routeKeys } from '../routing.js';
import { exclusive } from './exclusive.js';
import { noting } from './noting.js';
import { takeScript } from './script.js';
import { sendProbed } from './send-together.js';
import { crossing, submitSplit } from './split.js';

export function keyed(context: CommandContext, spec: CommandSpec): void {
  const { parser, clients } = context;
  const { router } = clients.sequencer;
  const at = spec.singleKey;
  if (at === 0 || at >= parser.argc) return severalKeys(context, spec);
  const start = parser.argStart[at];
  const end = parser.argEnd[at];
  const workload = router.match(parser.frame, start, end);
  if (workload.position.held) return context.flow.retryWhen('open');
  send(context, spec, workload, workload.position.rule(parser.frame, start, end), false, at);
}

function severalKeys(context: CommandContext, spec: CommandSpec): void {
  const { parser, clients, flow } = context;
  const route = routeKeys(clients.sequencer.router, spec, parser);
  if (route === null) return flow.retryWhen('open');
  clients.sequencer.counters.addSpanning(route.spanning);
  const { workload, rule, other, mixed } = route;
  const hidden = hiddenKeys(clients, spec, route);
  if (hidden !== null) return context.refuse(hidden);
  if (spec.handling === 'script' && other === null && takeScript(context, spec, route)) return;
  if (spec.name === 'copy' && crossesDatabases(parser)) return exclusive(context, spec, rule.authority);
  if (other === null) return send(context, spec, workload, rule, mixed, 0);
  if (spec.splittable) {
    clients.counts.addSplit();
    flow.whenIdle(() => submitSplit(context, spec));
  } else {
    clients.counts.addRefused();
    context.refuse(crossing(spec.name, workload, other));
  }
}

/**
 * Sends the bytes of the command at hand to its authority.
 * @param key the index of its only key among the arguments; 0 if it has several, or none
 */
function send(
  context: CommandContext,
  spec: CommandSpec,
  workload: Workload,
  rule: StageRule,
  mixed: boolean,
  key: number,
): void {
  const { parser, clients, client, lanes } = context;
  const { sequencer } = clients;
  if (client.readsReplica && isOff(rule) && !mixed && !spec.write && readReplica(context, spec, workload)) return;
  const lane = lanes.to(rule.authority);
  if (lane === null) return;
  const { db } = client;
  const { frame, start, end, argStart, argEnd } = parser;
  const own = clients.readShares.followOf(followOf(sequencer, spec, rule, mixed), rule, workload);
  const hides = mayWriteOthers(sequencer, spec, frame, start);
  const follow = hides ? WRITE : own;
  const operation = new Operation(frame, start, end, context, spec, workload, db, client.protocol, follow);
  operation.mustCopy = mixed;
  const probe = follow === WRITE ? sequencer.effects.probeFor(operation) : null;
  const locks = sequencer.lanes[rule.authority].locks(db);
  if (locks.active) {
    // For most keys no client is blocked.
    const concerned =
      key === 0 || locks.tracking || locks.concerns(frame.toString('latin1', argStart[key], argEnd[key]));
    if (concerned && !ordered(context, operation, lane, probe !== null)) return;
  }
  if (own === WRITE) {
    if (key > 0) sequencer.journal.noteKey(db, frame, argStart[key], argEnd[key]);
    else sequencer.suspects.note(db, frame, start);
    if (key > 0) sequencer.expiry.sendingOne(lane, operation, argStart[key], argEnd[key]);
    else sequencer.expiry.sending(lane, operation, spec, frame, start);
  } else if (hides) sequencer.suspects.note(db, frame, start);
  if (spec.handling === 'script') operation.sink = noting(context);
  if (hides) sequencer.scriptEffects.beginSpan(operation, lane);
  if (lane.server.traits.isKeydb) removeExpired(sequencer, lane, spec, workload, frame, start);
  clients.counts.sent(spec, workload);
  if (probe !== null) sendProbed(context, operation, lane, probe);
  else {
    lanes.submit(operation, lane);
    if (spec.handling === 'script' && own === WRITE) sequencer.expiry.ranOn(lane, operation, operation.command);
  }
}

/**
 * Sends the command at hand, a read of a workload in `off`, to a replica of the source, or lets it wait for one.
 * @returns whether it did
 */
function readReplica(context: CommandContext, spec: CommandSpec, workload: Workload): boolean {
  const { client, clients, parser, lanes, mustLogIn } = context;
  // The authority has to refuse a client that is not logged in; and a replica lacks the scripts that clients loaded.
  if (mustLogIn || spec.handling !== 'keyed') return false;
  const { frame, start, end } = parser;
  const { db, protocol } = client;
  const operation = new Operation(frame, start, end, context, spec, workload, db, protocol, NOTHING);
  if (!lanes.readReplica(operation)) return false;
  if (operation.lane !== null) clients.counts.sent(spec, workload);
  return true;
}

/**
 * Sends the operation; if several lanes lead to the database, once no other lane has commands on its keys in flight.
 */
function ordered({ clients, lanes }: CommandContext, operation: Operation, lane: Lane, probed: boolean): boolean {
  const { sequencer } = clients;
  const keys = sequencer.keys.ids(operation.frame, operation.start);
  const writes = operation.spec === undefined || operation.spec.write || operation.spec.handling === 'script';
  if (!lanes.admits(lane, keys, writes)) return false;
  // With a probed command, its second read holds the keys.
  if (!probed) sequencer.hold(operation, lane, keys, writes);
  return true;
}
