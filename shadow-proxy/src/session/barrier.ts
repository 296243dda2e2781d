/**
 * Commands that touch more than their keys say (FLUSHALL, FLUSHDB, SWAPDB; MOVE and COPY between databases): they
 * run alone, when every lane is empty.
 */
import type { CommandSpec } from '../command/table.js';
import { ACCEPT, NOTHING, Operation, WRITE, type Sink } from '../lane/operation.js';
import type { KeyOrder } from '../lane/order.js';
import { HandshakeRefused, type Server } from '../lane/server.js';
import { Waking } from '../lane/waking.js';
import { encodeCommand } from '../resp/encode.js';
import { otherSide, type Side } from '../route/stage.js';
import { routeKeys } from './routing.js';
import { crossing } from './split.js';
import type { Session } from './session.js';

const DRAIN_MS = 5_000;

/** Runs the command at hand alone; `authority` is its keys' where it has keys. */
export function barrier(session: Session, spec: CommandSpec, authority?: Side): void {
  const { clients } = session;
  const { router } = clients.sequencer;
  // From the look at the stages to the barrier nothing may come between: neither a flip nor another barrier.
  if (session.inFlight > 0) return session.awaitIdle();
  if (router.workloads.some(({ held }) => held)) return session.awaitOpen();
  const keyed = spec.name === 'move' || spec.name === 'copy';
  if (!keyed && clients.sharedTarget) {
    return session.refuse(`ERR shadow-proxy: ${spec.name.toUpperCase()} is refused: other shards keep their keys on the same target`);
  }
  if (!keyed && !router.oneAuthority) {
    return session.refuse(`ERR shadow-proxy: ${spec.name.toUpperCase()} is refused while workloads have different authorities`);
  }
  const route = keyed ? routeKeys(router, spec, session.parser) : null;
  if (keyed && route === null) return session.awaitOpen();
  if (route !== null && route.other !== null) {
    clients.crossRefused++;
    return session.refuse(crossing(spec.name, route.workload, route.other));
  }
  const side = authority ?? route?.rule.authority ?? router.default.keylessRule.authority;
  const workload = route?.workload ?? router.default;
  const mirrored = route === null ? router.mirrors : route.rule.mirrorsWrites || route.mixed;
  session.hold();
  void pass(session, spec, side, mirrored, workload, route?.mixed === true).then(() => session.resume());
}

async function pass(session: Session, spec: CommandSpec, side: Side, mirrored: boolean, workload: Operation['workload'], mustCopy: boolean): Promise<void> {
  const { clients, parser } = session;
  const { sequencer } = clients;
  const { frame, start, end } = parser;
  sequencer.barred = true;
  try {
    const lanes = sequencer.lanes[side];
    const lane = await lanes.open(session.identity);
    await withDeadline(lanes.emptied().then(() => lanes.afterReservations()));
    clients.count(spec, workload);
    if (mirrored) sequencer.noteFrame(session.db, frame, start);
    const reply = await new Promise<Buffer>((resolve, reject) => {
      const sink: Sink = {
        answered: (_operation, buffer, from, to) => resolve(buffer.subarray(from, to)),
        lost: (_operation, reason) => reject(reason),
      };
      const operation = new Operation(frame, start, end, sink, spec, workload, session.db, session.protocol, mirrored ? WRITE : NOTHING);
      operation.mustCopy = mustCopy;
      sequencer.submit(operation, lane);
    });
    await withDeadline(Promise.all([...lanes.orders()].map((order) => wakeAll(order, lanes.server))));
    if (spec.name === 'swapdb' && reply[0] === PLUS) {
      if (mirrored) sequencer.expiry.swapping();
      sequencer.swapDoubts(frame, start);
      selectAgain(session, side, mirrored);
      // KeyDB wakes clients that block by the database as it was.
      if (lanes.server.isKeydb) await Promise.all([...clients.blocked].map((blocked) => blocked.interrupt()));
    }
    session.reply(reply);
  } catch (problem) {
    if (problem instanceof HandshakeRefused) session.reply(Buffer.from(`-${problem.reply}\r\n`, 'latin1'));
    else session.destroy();
  } finally {
    sequencer.barred = false;
    clients.open();
  }
}

/** Waits for all clients that the command has woken. */
const wakeAll = (order: KeyOrder, server: Server): Promise<void> =>
  new Promise((resolve) => {
    const waking = new Waking(order, server, [], order.blocked());
    waking.after(resolve);
    waking.answered();
  });

/** A connection to KeyDB 6.3.4 stays with what its database held before SWAPDB, until it selects the database anew. */
function selectAgain(session: Session, side: Side, mirrored: boolean): void {
  const { sequencer } = session.clients;
  const { router, lanes, mirrors } = sequencer;
  const select = (db: number, sink: Sink | null, protocol: 2 | 3): Operation => {
    const frame = encodeCommand(['SELECT', db]);
    return new Operation(frame, 0, frame.length, sink, undefined, router.default, db, protocol, NOTHING);
  };
  for (const lane of [...lanes[side].all(), ...lanes[side].private()]) {
    const { db, protocol } = lane.identity;
    sequencer.submit(select(db, IGNORED, protocol), lane);
  }
  if (!mirrored) return;
  // Its lane is in the database of the SWAPDB that it was just told.
  const again = select(session.db, null, session.protocol);
  again.check = ACCEPT;
  again.answeredAt = performance.now();
  mirrors[otherSide(side)].append(again);
}

const IGNORED: Sink = { answered: () => undefined, lost: () => undefined };
const PLUS = '+'.charCodeAt(0);

function withDeadline<T>(wait: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout;
  return Promise.race([
    wait,
    new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(new Error('the lanes did not empty in time')), DRAIN_MS);
    }),
  ]).finally(() => clearTimeout(timer));
}
