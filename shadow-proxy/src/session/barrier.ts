/**
 * Commands that touch more than their keys say (FLUSHALL, FLUSHDB, SWAPDB; MOVE and COPY between databases): they
 * run alone, when every lane is empty.
 */
import type { CommandSpec } from '../command/table.js';
import { NOTHING, Operation, WRITE, type Sink } from '../lane/operation.js';
import { HandshakeRefused } from '../lane/server.js';
import type { Side } from '../route/stage.js';
import { routeKeys } from './routing.js';
import type { Session } from './session.js';

const DRAIN_MS = 5_000;

/** Runs the command at hand alone; `authority` is its keys' where it has keys. */
export function barrier(session: Session, spec: CommandSpec, authority?: Side): void {
  const { clients } = session;
  const { router } = clients.sequencer;
  const keyed = spec.name === 'move' || spec.name === 'copy';
  if (!keyed && clients.sharedTarget) {
    return session.refuse(`ERR shadow-proxy: ${spec.name.toUpperCase()} is refused: other shards keep their keys on the same target`);
  }
  if (!keyed && !router.oneAuthority) {
    return session.refuse(`ERR shadow-proxy: ${spec.name.toUpperCase()} is refused while workloads have different authorities`);
  }
  const route = keyed ? routeKeys(router, spec, session.parser) : null;
  if (keyed && route === null) return session.awaitOpen();
  const side = authority ?? route?.rule.authority ?? router.default.keylessRule.authority;
  const workload = route?.workload ?? router.default;
  const mirrored = route === null ? router.mirrors : route.rule.mirrorsWrites || route.mixed;
  session.whenIdle(() => void pass(session, spec, side, mirrored, workload).then(() => session.resume()));
}

async function pass(session: Session, spec: CommandSpec, side: Side, mirrored: boolean, workload: Operation['workload']): Promise<void> {
  const { clients, parser } = session;
  const { sequencer } = clients;
  const { frame, start, end } = parser;
  while (sequencer.barred) await new Promise<void>((resolve) => clients.onceOpen(resolve));
  sequencer.barred = true;
  try {
    const lanes = sequencer.lanes[side];
    const lane = await lanes.open(session.identity);
    await withDeadline(Promise.all([...lanes.all()].map((each) => new Promise<void>((resolve) => each.afterInFlight(resolve)))));
    clients.count(spec, workload);
    if (mirrored) sequencer.noteFrame(session.db, frame, start);
    const reply = await new Promise<Buffer>((resolve, reject) => {
      const sink: Sink = {
        answered: (_operation, buffer, from, to) => resolve(buffer.subarray(from, to)),
        lost: (_operation, reason) => reject(reason),
      };
      const operation = new Operation(frame, start, end, sink, spec, workload, session.db, session.protocol, mirrored ? WRITE : NOTHING);
      sequencer.submit(operation, lane);
    });
    session.reply(reply);
  } catch (problem) {
    if (problem instanceof HandshakeRefused) session.reply(Buffer.from(`-${problem.reply}\r\n`, 'latin1'));
    else session.destroy();
  } finally {
    sequencer.barred = false;
    clients.open();
  }
}

function withDeadline<T>(wait: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout;
  return Promise.race([
    wait,
    new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(new Error('the lanes did not empty in time')), DRAIN_MS);
    }),
  ]).finally(() => clearTimeout(timer));
}
