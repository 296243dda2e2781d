/**
 * WATCH: it is sent on a private lane, on which EXEC then runs; the client's other commands use its shared lane. While
 * the transaction runs its keys are reserved and the shared lanes are empty, so that its place in the order is certain.
 */
import type { Lane } from '../../pipeline/lane.js';
import { IGNORED, NOTHING, Operation, type Sink } from '../../pipeline/operation.js';
import { isSelect, submitTransaction, type ExecCallback, type PlacedTransaction } from '../../pipeline/transaction.js';
import { encodeCommand, OK } from '../../resp/encode.js';
import { isSameLogin } from '../../upstream/ask-once.js';
import type { Workload } from '../../route/router.js';
import { notAllowed, rewrittenIn } from './regional.js';
import { routeKeys } from '../routing.js';
import { crossing } from './split.js';
import type { Watching } from '../client-state.js';
import type { CommandContext } from '../context.js';
import { refuseNested } from './nested.js';

export class Watch implements Watching {
  /** The workloads of the keys, each with its number of stage changes at the time of the WATCH. */
  readonly #moves = new Map<Workload, number>();

  constructor(
    private readonly context: CommandContext,
    readonly lane: Lane,
    readonly workload: Workload,
  ) {}

  /** Whether the proxy does not know any more if a key has changed: EXEC then answers nil, as if one had. */
  get broken(): boolean {
    const { lane, context } = this;
    const { protocol, credentials } = lane.identity;
    if (lane.closed || protocol !== context.client.protocol) return true;
    // The lane may have been opened for another client with the same login.
    if (!isSameLogin(credentials, context.client.credentials)) return true;
    return [...this.#moves].some(([workload, moves]) => workload.position.moves !== moves);
  }

  /** The client watches no longer. */
  end(): void {
    if (this.context.client.watch === this) this.context.client.watches(null);
    if (this.lane.closed) return;
    // The lane's next client must not watch the keys of this one.
    this.#send(UNWATCH, IGNORED, true);
    this.giveBack();
  }

  /** Sends the command at hand, a WATCH of keys of these workloads, to the server. */
  pass(workloads: ReadonlySet<Workload>): void {
    const { context } = this;
    const added = [...workloads].filter((workload) => !this.#moves.has(workload));
    for (const workload of added) this.#moves.set(workload, workload.position.moves);
    // The connection is lost with its watched keys. EXEC will answer nil, for the new keys as well.
    if (this.lane.closed) {
      context.reply(OK);
      // The client may have waited for the lane.
      return context.flow.resume();
    }
    context.flow.hold();
    this.#select();
    this.#send(context.command, {
      answered: (_operation, buffer, start, end) => {
        context.reply(Buffer.from(buffer.subarray(start, end)));
        if (buffer[start] === MINUS) this.#refused(added);
        context.flow.resume();
      },
      lost: () => context.destroy(),
    });
  }

  /** The server refused the WATCH: stage changes of these workloads do not matter to EXEC. */
  #refused(added: readonly Workload[]): void {
    for (const workload of added) this.#moves.delete(workload);
    if (this.#moves.size === 0) this.end();
  }

  /**
   * Runs EXEC.
   * @returns whether it could begin; if not, EXEC is dispatched again
   * @param db the database of the transaction's keys
   * @param sent called when the transaction is sent, which may be later
   */
  exec(transaction: PlacedTransaction, db: number, sent: () => void, done: ExecCallback): boolean {
    const { context, lane } = this;
    const { sequencer } = context;
    const lanes = sequencer.lanes[lane.server.side];
    const locks = lanes.locks(db);
    const all = locks.withWoken(transaction.keys);
    if (!context.lanes.admitsAlone(locks, all)) return false;
    const reservation = locks.reserve(all);
    context.client.watches(null);
    context.flow.hold();
    const ready = async (): Promise<void> => {
      lane.home = await lanes.open({ ...context.client.identity, db });
      await lanes.emptied(db);
    };
    const run = (): void => {
      const over = (reply?: Buffer): void => {
        locks.releaseReservation(reservation);
        this.giveBack(reply);
      };
      if (lane.closed) {
        over();
        context.destroy();
        return;
      }
      this.#select(db);
      sent();
      const exec = submitTransaction(
        sequencer,
        lane,
        transaction,
        (operation, reply, arrived) => {
          over(reply);
          done(operation, reply, arrived);
        },
        (operation, reason) => {
          over();
          context.lost(operation, reason);
        },
      );
      context.lanes.adopt(exec, lane);
      if (transaction.commands.some(isSelect)) context.flow.holdUntilIdle();
      else context.flow.resume();
    };
    ready()
      .then(run)
      .catch((problem: Error) => {
        locks.releaseReservation(reservation);
        this.end();
        context.lanes.failed(problem);
      });
    return true;
  }

  /**
   * Gives the lane to a transaction that runs alone, in the database of the shared lane. The caller returns it
   * afterwards.
   */
  take(shared: Lane): Lane {
    this.context.client.watches(null);
    this.lane.home = shared;
    this.#select(shared.identity.db);
    return this.lane;
  }

  /** Selects the client's database on the lane. */
  #select(db = this.context.client.db): void {
    const { lane } = this;
    if (lane.identity.db === db) return;
    this.#send(encodeCommand(['SELECT', db]), IGNORED, true);
    lane.identity = { ...lane.identity, db };
  }

  /**
   * @param first whether the lane waits for the reply before it sends more
   */
  #send(frame: Buffer, sink: Sink, first = false): void {
    const { context, lane, workload } = this;
    const { db, protocol } = lane.identity;
    const operation = new Operation(frame, 0, frame.length, sink, undefined, workload, db, protocol, NOTHING);
    if (first) lane.first(operation);
    context.sequencer.submit(operation, lane);
  }

  /** Returns the lane for the next client. @param reply EXEC's: after an error the keys may still be watched */
  giveBack(reply?: Buffer): void {
    if (reply?.[0] === MINUS && !this.lane.closed) this.#send(UNWATCH, IGNORED, true);
    this.context.sequencer.giveBack(this.lane);
  }
}

/** Answers WATCH, the command at hand. */
export function watch(context: CommandContext): void {
  if (context.parser.argc < 2) return context.refuse("ERR wrong number of arguments for 'watch' command");
  if (context.client.transaction !== null) return refuseNested(context, 'watch');
  if (context.lanes.inFlight > 0) return context.flow.retryWhen('idle');
  const { clients } = context;
  const { router, table, lanes, counters } = clients.sequencer;
  const rewritten = router.rewrites ? rewrittenIn(router, table.byName('watch')!, context.parser).workload : null;
  if (rewritten !== null) return context.refuse(notAllowed('WATCH', rewritten));
  const route = routeKeys(router, table.byName('watch')!, context.parser);
  if (route === null) return context.flow.retryWhen('open');
  counters.addSpanning(route.spanning);
  const { workload, rule, other } = route;
  const crossed =
    other ??
    (context.client.watch !== null && context.client.watch.lane.server.side !== rule.authority
      ? context.client.watch.workload
      : null);
  if (crossed !== null) {
    clients.counts.addRefused();
    return context.refuse(crossing('watch', workload, crossed));
  }
  const watched = workloadsOf(context);
  if (context.client.watch !== null) return context.client.watch.pass(watched);
  context.flow.hold();
  lanes[rule.authority]
    .borrow(context.client.identity)
    .then((lane) => {
      // The keys are not watched yet: the server sees a stage change from now on as one before WATCH.
      const watch = new Watch(context, lane, workload);
      context.client.watches(watch);
      if (context.client.closed) watch.end();
      else watch.pass(watched);
    })
    .catch((problem: Error) => context.lanes.failed(problem));
}

/** The workloads of the command's keys. */
function workloadsOf(context: CommandContext): Set<Workload> {
  const { router } = context.sequencer;
  const found = new Set<Workload>();
  for (let i = 1; i < context.parser.argc; i++) {
    const key = context.argument(i);
    found.add(router.match(key, 0, key.length));
  }
  return found;
}

/** Answers UNWATCH, the command at hand. */
export function unwatch(context: CommandContext): void {
  if (context.parser.argc !== 1) return context.refuse("ERR wrong number of arguments for 'unwatch' command");
  if (context.client.transaction !== null) return context.client.transaction.queueReply(OK);
  context.lanes.inquire(encodeCommand(['UNWATCH']), (refusal) => {
    if (refusal === null) context.client.watch?.end();
    context.reply(refusal ?? OK);
  });
}

const MINUS = '-'.charCodeAt(0);
const UNWATCH = encodeCommand(['UNWATCH']);
