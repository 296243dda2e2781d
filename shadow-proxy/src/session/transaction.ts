/** MULTI … EXEC of one client: gathered and answered QUEUED here, then sent as one batch. */
import type { CommandSpec } from '../command/table.js';
import type { Lane } from '../lane/lane.js';
import { WRITE, type Operation } from '../lane/operation.js';
import { submitTransaction, type QueuedCommand } from '../lane/transaction.js';
import { array, error, simple } from '../resp/encode.js';
import { RequestParser } from '../resp/request.js';
import type { Workload } from '../route/router.js';
import type { Side } from '../route/stage.js';
import { crossesDatabases, routeKeys } from './routing.js';
import { crossing } from './split.js';
import type { Session } from './session.js';

const QUEUED = simple('QUEUED');
const ABORTED = error('EXECABORT Transaction discarded because of previous errors.');

interface Queued {
  readonly frame: Buffer;
  readonly spec: CommandSpec;
}

interface Plan {
  readonly commands: QueuedCommand[];
  readonly authority: Side;
  readonly workload: Workload;
  readonly keys: string[];
}

export class Transaction {
  readonly #queue: Queued[] = [];
  #authority: Side | null = null;
  #workload: Workload | null = null;
  #spoiled = false;

  constructor(private readonly session: Session) {}

  /** EXEC will refuse. */
  spoil(): void {
    this.#spoiled = true;
  }

  /** Takes the command at hand. */
  queue(spec: CommandSpec): void {
    const { session } = this;
    const { parser } = session;
    if (spec.arity > 0 ? parser.argc !== spec.arity : parser.argc < -spec.arity) {
      this.spoil();
      session.refuse(`ERR wrong number of arguments for '${spec.name}' command`);
      return;
    }
    if (spec.handling === 'barrier' || spec.handling === 'script-load' || (spec.name === 'copy' && crossesDatabases(parser))) {
      session.refuse(`ERR shadow-proxy: ${spec.name.replace('|', ' ').toUpperCase()} inside MULTI is not supported`);
      return;
    }
    if (spec.handling === 'keyed' || spec.handling === 'script') {
      const route = routeKeys(session.clients.sequencer.router, spec, parser);
      if (route !== null && route.keys > 0) {
        const other = route.other ?? (this.#authority !== null && this.#authority !== route.rule.authority ? this.#workload : null);
        if (other !== null) {
          session.clients.crossRefused++;
          session.refuse(crossing('a transaction', route.workload, other));
          return;
        }
        this.#authority = route.rule.authority;
        this.#workload = route.workload;
      }
      if (spec.handling === 'script') session.clients.sequencer.scripts.find([session.argument(0), session.argument(1)]);
    }
    this.#queue.push({ frame: Buffer.from(parser.frame.subarray(parser.start, parser.end)), spec });
    session.reply(QUEUED);
  }

  /** EXEC is the command at hand; it may have to wait, and is then looked at again. */
  exec(): void {
    const { session } = this;
    if (this.#spoiled) {
      session.transaction = null;
      session.reply(ABORTED);
      return;
    }
    if (this.#queue.length === 0) {
      session.transaction = null;
      session.reply(array([]));
      return;
    }
    const plan = this.#plan();
    if (plan === 'held') {
      session.awaitOpen();
      return;
    }
    if (plan instanceof Error) {
      session.transaction = null;
      session.clients.crossRefused++;
      session.reply(error(plan.message));
      return;
    }
    const lane = session.laneTo(plan.authority);
    if (lane === null || !session.admitted(lane, plan.keys, true)) return;
    session.transaction = null;
    for (const { spec, workload } of plan.commands) session.clients.count(spec, workload);
    submitInName(session, lane, plan.commands, plan.workload, plan.keys, (reply) => reply);
  }

  /** Where each command goes, by the stages as they are now. */
  #plan(): Plan | 'held' | Error {
    const { session } = this;
    const { sequencer } = session.clients;
    const { router } = sequencer;
    const parser = new RequestParser();
    const commands: QueuedCommand[] = [];
    const keys = new Set<string>();
    let authority: Side | null = null;
    let first: Workload | null = null;
    for (const { frame, spec } of this.#queue) {
      parser.feed(frame);
      parser.next();
      const keyed = spec.handling === 'keyed' || spec.handling === 'script';
      const route = routeKeys(router, spec, parser);
      if (route === null) return 'held';
      if (keyed && route.keys > 0) {
        if (route.other !== null) return new Error(crossing('a transaction', route.workload, route.other));
        if (authority !== null && authority !== route.rule.authority) return new Error(crossing('a transaction', first!, route.workload));
        authority = route.rule.authority;
        first ??= route.workload;
        for (const key of sequencer.keyIds(frame, 0)) keys.add(key);
      }
      const follow = keyed ? session.followOf(spec, route.rule, route.mixed) : 0;
      commands.push({ frame, spec, workload: route.workload, follow, mustCopy: route.mixed });
    }
    return { commands, authority: authority ?? router.default.keylessRule.authority, workload: first ?? router.default, keys: [...keys] };
  }
}

/** Sends one command together with the second read that its effect needs; the client sees the command's reply alone. */
export function sendProbed(session: Session, operation: Operation, lane: Lane): void {
  const { spec, workload, mustCopy } = operation;
  const frame = operation.frame.subarray(operation.start, operation.end);
  const commands = [{ frame, spec: spec!, workload, follow: WRITE, mustCopy } as const];
  const keys = session.clients.sequencer.keyIds(frame, 0);
  submitInName(session, lane, commands, workload, keys, (reply) => (reply[0] === STAR ? reply.subarray(reply.indexOf(10) + 1) : reply));
}

function submitInName(session: Session, lane: Lane, commands: readonly QueuedCommand[], workload: Workload, keys: readonly string[], shape: (reply: Buffer) => Buffer): void {
  const exec = submitTransaction(
    session.clients.sequencer,
    lane,
    commands,
    workload,
    keys,
    (operation, reply) => session.deliver(operation, shape(reply)),
    (operation, reason) => session.lost(operation, reason),
  );
  session.adopt(exec, lane);
}

const STAR = '*'.charCodeAt(0);
