/**
 * WATCH: on a private lane, on which EXEC then runs; what the client does in between goes as ever. The keys of the
 * transaction are reserved and the shared lanes empty while it runs, so that its place in the order is certain.
 */
import type { Lane } from '../../pipeline/lane.js';
import { IGNORED, NOTHING, Operation, type Sink } from '../../pipeline/operation.js';
import { isSelect, submitTransaction, type Done, type PlacedTransaction } from '../../pipeline/transaction.js';
import { encodeCommand, error, OK } from '../../resp/encode.js';
import type { Workload } from '../../route/router.js';
import { notAllowed, rewrittenIn } from './regional.js';
import { routeKeys } from '../routing.js';
import { crossing } from './split.js';
import type { Session } from '../session.js';

export class Watch {
  /** The keys' workloads, and how often each had changed its stage. */
  readonly #moves = new Map<Workload, number>();

  constructor(
    private readonly session: Session,
    readonly lane: Lane,
    readonly workload: Workload,
  ) {}

  add(workload: Workload): void {
    if (!this.#moves.has(workload)) this.#moves.set(workload, workload.moves);
  }

  /** Whether nobody can tell any more if a key has changed: EXEC is to do nothing, as if one had. */
  get broken(): boolean {
    const { lane, session } = this;
    const { protocol, credentials } = lane.identity;
    if (lane.closed || protocol !== session.protocol || credentials !== session.credentials) return true;
    return [...this.#moves].some(([workload, moves]) => workload.moves !== moves);
  }

  /** The client watches no longer. */
  end(): void {
    if (this.session.watch === this) this.session.watch = null;
    if (this.lane.closed) return;
    this.#send(UNWATCH, IGNORED);
    this.giveBack();
  }

  /** Passes the command at hand, which is WATCH, to the server. */
  pass(): void {
    const { session } = this;
    // The server is gone with what it watched, and EXEC will do nothing: so it will for these keys.
    if (this.lane.closed) {
      session.reply(OK);
      // It may have waited for the lane.
      return session.resume();
    }
    session.hold();
    this.#select();
    this.#send(session.command, {
      answered: (_operation, buffer, start, end) => {
        session.reply(Buffer.from(buffer.subarray(start, end)));
        session.resume();
      },
      lost: () => session.destroy(),
    });
  }

  /**
   * Runs EXEC; whether it could begin: if not, it is looked at again.
   * @param db the database of its keys
   */
  exec(transaction: PlacedTransaction, db: number, done: Done): boolean {
    const { session, lane } = this;
    const { sequencer } = session.clients;
    const lanes = sequencer.lanes[lane.server.side];
    const order = lanes.order(db);
    const all = order.withWoken(transaction.keys);
    if (!session.admittedAlone(order, all)) return false;
    const reservation = order.reserve(all);
    session.watch = null;
    session.hold();
    const ready = async (): Promise<void> => {
      lane.home = await lanes.open({ ...session.identity, db });
      await lanes.emptied(db);
    };
    const run = (): void => {
      const over = (): void => {
        order.giveUp(reservation);
        this.giveBack();
      };
      if (lane.closed) {
        over();
        session.destroy();
        return;
      }
      this.#select(db);
      const exec = submitTransaction(
        sequencer,
        lane,
        transaction,
        (operation, reply, arrived) => {
          over();
          done(operation, reply, arrived);
        },
        (operation, reason) => {
          over();
          session.lost(operation, reason);
        },
      );
      session.adopt(exec, lane);
      if (transaction.commands.some(isSelect)) session.holdUntilIdle();
      else session.resume();
    };
    void ready().then(run, () => {
      order.giveUp(reservation);
      lane.close();
      session.destroy();
    });
    return true;
  }

  /** The lane, for a transaction that runs alone, in the database of the shared one: to be given back after it. */
  take(shared: Lane): Lane {
    this.session.watch = null;
    this.lane.home = shared;
    this.#select(shared.identity.db);
    return this.lane;
  }

  /** Puts the lane into the client's database. */
  #select(db = this.session.db): void {
    const { lane } = this;
    if (lane.identity.db === db) return;
    this.#send(encodeCommand(['SELECT', db]), IGNORED);
    lane.identity = { ...lane.identity, db };
  }

  #send(frame: Buffer, sink: Sink): void {
    const { session, lane, workload } = this;
    session.clients.sequencer.submit(
      new Operation(
        frame,
        0,
        frame.length,
        sink,
        undefined,
        workload,
        lane.identity.db,
        lane.identity.protocol,
        NOTHING,
      ),
      lane,
    );
  }

  /** The lane is for the next client. */
  giveBack(): void {
    this.session.clients.sequencer.lanes[this.lane.server.side].giveBack(this.lane);
  }
}

/** WATCH is the command at hand. */
export function watch(session: Session): void {
  if (session.parser.argc < 2) return session.refuse("ERR wrong number of arguments for 'watch' command");
  if (session.transaction !== null) return session.reply(error('ERR WATCH inside MULTI is not allowed'));
  if (session.inFlight > 0) return session.awaitIdle();
  const { clients } = session;
  const { router, table, lanes } = clients.sequencer;
  const rewritten = router.rewrites ? rewrittenIn(router, table.byName('watch')!, session.parser).workload : null;
  if (rewritten !== null) return session.refuse(notAllowed('WATCH', rewritten));
  const route = routeKeys(router, table.byName('watch')!, session.parser);
  if (route === null) return session.awaitOpen();
  const { workload, rule, other } = route;
  const elsewhere =
    other ??
    (session.watch !== null && session.watch.lane.server.side !== rule.authority ? session.watch.workload : null);
  if (elsewhere !== null) {
    clients.crossRefused++;
    return session.refuse(crossing('watch', workload, elsewhere));
  }
  const watched = workloadsOf(session);
  const begin = (watch: Watch): void => {
    for (const each of watched) watch.add(each);
    watch.pass();
  };
  if (session.watch !== null) return begin(session.watch);
  session.hold();
  lanes[rule.authority].borrow(session.identity).then(
    (lane) => {
      // A stage that changes now has changed before the server knows what to watch.
      session.watch = new Watch(session, lane, workload);
      if (session.closed) session.watch.end();
      else begin(session.watch);
    },
    (problem: Error) => session.noLane(problem),
  );
}

/** The workloads of the command's keys. */
function workloadsOf(session: Session): Set<Workload> {
  const { router } = session.clients.sequencer;
  const found = new Set<Workload>();
  for (let i = 1; i < session.parser.argc; i++) {
    const key = session.argument(i);
    found.add(router.match(key, 0, key.length));
  }
  return found;
}

/** UNWATCH is the command at hand. */
export function unwatch(session: Session): void {
  if (session.parser.argc !== 1) return session.refuse("ERR wrong number of arguments for 'unwatch' command");
  if (session.transaction !== null) return session.transaction.queueReply(OK);
  session.inquire(encodeCommand(['UNWATCH']), (refusal) => {
    session.watch?.end();
    session.reply(refusal ?? OK);
  });
}

const UNWATCH = encodeCommand(['UNWATCH']);
