/**
 * Commands that go to the authority of `default` and, as far as they concern it, to its mirror: SCRIPT LOAD, CONFIG
 * SET.
 */
import type { CommandSpec } from '../../command/table.js';
import { Operation, NOTHING, WRITE } from '../../pipeline/operation.js';
import { noting } from './script.js';
import type { Session } from '../session.js';

export function both(session: Session, spec: CommandSpec): void {
  const { clients, parser } = session;
  const { scripts, router } = clients.sequencer;
  if (router.default.held) return session.awaitOpen();
  const lane = session.laneTo(router.default.keylessRule.authority);
  if (lane === null) return;
  if (spec.name === 'script|load' && parser.argc > 2) scripts.learn(session.argument(2));
  clients.count(spec, router.default);
  const operation = new Operation(
    parser.frame,
    parser.start,
    parser.end,
    session,
    spec,
    router.default,
    session.db,
    session.protocol,
    router.mirrors ? WRITE : NOTHING,
  );
  if (spec.name === 'script|load') operation.sink = noting(session);
  // A mirror that knows fewer events refuses the setting: that is its own affair.
  if (spec.name === 'config|set') operation.confirmed = () => undefined;
  session.submit(operation, lane);
}
