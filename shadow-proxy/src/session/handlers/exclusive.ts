/**
 * Commands that affect more than the keys that they name (FLUSHALL, FLUSHDB, SWAPDB; MOVE and COPY between databases;
 * scripts without declared keys), or that change the code that scripts may call. They run alone, when every lane is
 * empty.
 */
import type { CommandSpec } from '../../command/table.js';
import { ConnectionLost } from '../../upstream/connection.js';
import { removeExpired } from '../../pipeline/expired.js';
import { closeFor } from '../../pipeline/failures.js';
import type { Lane } from '../../pipeline/lane.js';
import { BEYOND, NOTHING, Operation, SWAPS, WRITE, type Sink } from '../../pipeline/operation.js';
import type { Lanes } from '../../pipeline/lanes.js';
import type { KeyLocks } from '../../pipeline/key-locks.js';
import { inTime } from '../../io/in-time.js';
import { HandshakeRefused, type Server } from '../../upstream/server.js';
import { swappedBy } from '../../pipeline/swaps.js';
import { Wakeup } from '../../pipeline/wakeup.js';
import { argumentsOf } from '../../resp/decode.js';
import { otherSide, type Side } from '../../route/stage.js';
import { routeKeys } from '../routing.js';
import { refusalOfDatabases } from './databases.js';
import { crossing } from './split.js';
import type { Clients } from '../clients.js';
import type { CommandContext } from '../context.js';

const DRAIN_MS = 5_000;

/** Runs the command at hand alone. @param authority the authority of its keys, if it has keys */
export function exclusive(context: CommandContext, spec: CommandSpec, authority?: Side): void {
  const { clients } = context;
  const { sequencer } = clients;
  const { router } = sequencer;
  if (!mayBegin(context)) return;
  const keyed = spec.name === 'move' || spec.name === 'copy';
  // Scripts were checked before.
  const everyKey = !keyed && isAboutEveryKey(spec);
  const refused = refusalOfDatabases(context, spec) ?? (everyKey ? refusalOfEveryKey(clients, spec) : null);
  if (refused !== null) return context.refuse(refused);
  const tooWide = everyKey && clients.foreignKeys.mayHoldForeignKeys;
  const route = keyed ? routeKeys(router, spec, context.parser) : null;
  if (keyed && route === null) return context.flow.retryWhen('open');
  if (route !== null) sequencer.counters.addSpanning(route.spanning);
  if (route !== null && route.other !== null) {
    clients.counts.addRefused();
    return context.refuse(crossing(spec.name, route.workload, route.other));
  }
  const side = authority ?? route?.rule.authority ?? router.default.position.keylessRule.authority;
  const mirrored =
    route === null
      ? router.mirrors && (!spec.aboutCode || sequencer.mirrorKnows(side, spec))
      : route.rule.mirrorsWrites || route.mixed;
  const mustCopy = route === null ? spec.handling === 'script' && !router.uniform : route.mixed;
  alone(context, side, async (lane) => {
    // Noted before the command is sent, and again after it: a verification may have begun in between.
    if (tooWide) sequencer.suspects.hidden(spec.name);
    await run(context, spec, lane, mirrored && !tooWide, route?.workload ?? router.default, mustCopy);
    if (tooWide) sequencer.suspects.hidden(spec.name);
  });
}

/** Whether the command affects every key of a database or more. Scripts and functions on a server are no keys. */
export const isAboutEveryKey = (spec: CommandSpec): boolean =>
  spec.handling === 'exclusive' && spec.name !== 'move' && !spec.aboutCode;

/** Why a command on every key cannot be run now; null if it can. It is not mirrored if it would reach foreign keys. */
export function refusalOfEveryKey(
  { sequencer: { router }, sharedTarget, foreignKeys }: Clients,
  spec: CommandSpec,
): string | null {
  const refused = `ERR shadow-proxy: ${spec.name.toUpperCase()} is refused`;
  if (sharedTarget) return `${refused}: other shards keep their keys on the same target`;
  if (!router.oneAuthority) return `${refused} while workloads have different authorities`;
  if (foreignKeys.mayHoldForeignKeys && router.default.position.keylessRule.authority === 'target') {
    return `${refused}: the target may hold keys that the proxy did not write (shadow-compare verify lists them)`;
  }
  return null;
}

/**
 * Whether the command can run with the stages as they are now: no stage change and no other exclusive command is in
 * progress. If one is, the command waits.
 */
export function mayBegin(context: CommandContext): boolean {
  if (context.lanes.inFlight > 0) context.flow.retryWhen('idle');
  else if (context.sequencer.router.positions.some(({ held }) => held)) context.flow.retryWhen('open');
  else return true;
  return false;
}

/**
 * Whether the command does the same in every database: then the mirror gets it even if it refuses the client's
 * database.
 */
const isOfNoDatabase = ({ name, aboutCode }: CommandSpec): boolean =>
  aboutCode || name === 'flushall' || name === 'swapdb';

/** The work of an exclusive command. It answers the client. */
type Work = (lane: Lane) => Promise<void>;

/** Runs `work` with the client's lane to the server, when every lane is empty. No other command is sent meanwhile. */
export function alone(context: CommandContext, side: Side, work: Work): void {
  context.flow.hold();
  pass(context, side, work)
    .then(() => context.flow.resume())
    .catch((problem: unknown) => context.failed(problem));
}

async function pass(context: CommandContext, side: Side, work: Work): Promise<void> {
  const { clients } = context;
  const { sequencer } = clients;
  sequencer.bar();
  try {
    const lane = await sequencer.lanes[side].open(context.client.identity);
    const { source, target } = sequencer.lanes;
    await withDeadline(Promise.all([source, target].map((lanes) => lanes.quiet())));
    // On a closed lane no reply would come, and all clients would wait without a limit.
    if (lane.closed) throw new ConnectionLost('the connection to the authority was lost');
    await work(lane);
    await woken(sequencer.lanes[side]);
  } catch (problem) {
    if (problem instanceof HandshakeRefused) context.replyRefused(problem);
    else closeFor(problem, context);
  } finally {
    sequencer.unbar();
    clients.waitingRoom.open();
  }
}

/** Waits for the replies to all clients that the exclusive command has woken. */
async function woken(lanes: Lanes): Promise<void> {
  await withDeadline(Promise.all([...lanes.allLocks()].map((locks) => wakeAll(locks, lanes.server))));
}

async function wakeAll(locks: KeyLocks, server: Server): Promise<void> {
  const blocked = locks.blocked();
  // Some blocked clients belong to the wakeup of the exclusive command.
  const wakeups = new Set([...blocked].flatMap(({ wakeup }) => wakeup ?? []));
  const rest = new Wakeup(locks, server, [], blocked);
  const over = [...wakeups, rest].map((wakeup) => new Promise<void>((resolve) => wakeup.after(resolve)));
  rest.answered();
  await Promise.all(over);
}

async function run(
  context: CommandContext,
  spec: CommandSpec,
  lane: Lane,
  mirrored: boolean,
  workload: Operation['workload'],
  mustCopy: boolean,
): Promise<void> {
  const { clients, parser } = context;
  const { sequencer } = clients;
  const { frame, start, end } = parser;
  const scriptSwaps = spec.handling === 'script' && sequencer.scripts.swapDatabases(context.command);
  if (spec.name === 'swapdb' || scriptSwaps) await unblockAll(clients, lane.server.side);
  clients.counts.sent(spec, workload);
  if (spec.handling === 'script') sequencer.counters.addHidden();
  if (mirrored) sequencer.suspects.note(context.client.db, frame, start);
  const swaps = spec.name === 'swapdb' || scriptSwaps ? sequencer.swaps.begin() : null;
  const reply = await new Promise<Buffer>((resolve, reject) => {
    const sink: Sink = {
      answered: (_operation, buffer, from, to) => resolve(buffer.subarray(from, to)),
      lost: (_operation, reason) => reject(reason),
    };
    const operation = new Operation(
      frame,
      start,
      end,
      sink,
      spec,
      workload,
      isOfNoDatabase(spec) ? 0 : context.client.db,
      context.client.protocol,
      mirrored ? WRITE : NOTHING,
    );
    operation.mustCopy = mustCopy;
    operation.reach = spec.name === 'swapdb' ? SWAPS : BEYOND;
    if (mirrored && spec.handling === 'script' && sequencer.scriptEffects.hidesChanges(frame, start))
      sequencer.scriptEffects.beginSpan(operation, lane);
    if (mirrored) sequencer.expiry.sending(lane, operation, spec, frame, start);
    removeExpired(sequencer, lane, spec, workload, frame, start);
    sequencer.submit(operation, lane);
    if (mirrored && spec.handling === 'script') sequencer.expiry.ranOn(lane, operation, operation.command);
  }).catch((problem: unknown) => {
    swaps?.('unknown');
    throw problem;
  });
  if (spec.handling === 'script' && reply[0] !== MINUS) sequencer.scripts.accepted(argumentsOf(frame, start));
  const { side } = lane.server;
  if (spec.name === 'swapdb' && reply[0] === PLUS) {
    sequencer.suspects.swapped(frame, start);
    const swapped = swappedBy(argumentsOf(frame, start));
    databasesSwapped(context, side, mirrored, () => swaps?.(mirrored ? swapped : 'unknown'));
  } else if (scriptSwaps) {
    // It is unknown which databases were swapped, and whether the mirror has swapped them.
    if (mirrored) sequencer.suspects.hidden(SWAPPED_BY_SCRIPT);
    databasesSwapped(context, side, mirrored, () => swaps?.('unknown'));
  } else swaps?.('none');
  if (spec.name === 'script|flush' && reply[0] === PLUS) sequencer.scripts.flushed();
  if (spec.name.startsWith('function|')) sequencer.scripts.functions.forget();
  context.reply(reply);
}

/**
 * Takes all blocking commands back from the servers, before a SWAPDB or a script that may call it; they are sent again
 * afterwards. KeyDB 6.3.4 crashes when it unblocks a client whose database was swapped meanwhile (an assertion in
 * `unblockClientWaitingData`).
 */
export async function unblockAll({ blocked, sequencer }: Clients, side: Side): Promise<void> {
  if (!sequencer.servers[side].traits.isKeydb) return;
  await withDeadline(Promise.all([...blocked].map((each) => each.interrupt())));
}

/** Why all keys that are written twice are suspects after a script that may have swapped databases. */
export const SWAPPED_BY_SCRIPT = 'a script that may call SWAPDB';

/**
 * The authority has run SWAPDB, or a script that may have called it: connections with a selected database select it
 * again, at both servers. `then` is called when both servers have run it.
 */
export function databasesSwapped({ clients }: CommandContext, side: Side, mirrored: boolean, then: () => void): void {
  const { sequencer } = clients;
  const selectAgain = (at: Side): void => {
    sequencer.selectAgain(at);
    if (at === 'target') clients.regional?.renew();
  };
  selectAgain(side);
  if (!mirrored) return then();
  const other = otherSide(side);
  sequencer.mirrors[other].afterAppended(() => {
    selectAgain(other);
    then();
  });
}

const [PLUS, MINUS] = ['+', '-'].map((sign) => sign.charCodeAt(0));

const withDeadline = <T>(wait: Promise<T>): Promise<T> =>
  inTime(wait, DRAIN_MS, () => new Error('the lanes did not become empty in time'));
