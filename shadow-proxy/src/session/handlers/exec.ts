/** EXEC: finds the place of a queued transaction in the order, and sends it as one batch. */
import { removeExpired } from '../../pipeline/expired.js';
import type { Lane } from '../../pipeline/lane.js';
import { NOTHING, WRITE, type Operation } from '../../pipeline/operation.js';
import { isSelect, submitTransaction, type ExecCallback, type PlacedTransaction } from '../../pipeline/transaction.js';
import { argumentsOf, decodeReply, wordOf } from '../../resp/decode.js';
import { array, error } from '../../resp/encode.js';
import type { Side } from '../../route/stage.js';
import { ConnectionLost } from '../../upstream/connection.js';
import { DatabaseRefused } from '../../upstream/handshake.js';
import type { Watching } from '../client-state.js';
import type { CommandContext } from '../context.js';
import { isKeyed, leavesDatabase, planOf, type ExecPlan, type Queued } from './exec-plan.js';
import { alone, databasesSwapped, isAboutEveryKey, mayBegin, SWAPPED_BY_SCRIPT, unblockAll } from './exclusive.js';
import { hiddenBy, prepared } from './script.js';
import { databaseOf } from './databases.js';
import { crossing } from './split.js';
import { refusedRight } from './wider-rights.js';

/** A reply of the proxy's own, and the index of the queued command before which it belongs. */
export interface OwnReply {
  readonly before: number;
  readonly reply: Buffer;
}

export class Exec {
  /** Databases that a server does not let the client's user select. */
  readonly #refusedDbs: Readonly<Record<Side, Set<number>>> = { source: new Set(), target: new Set() };

  constructor(
    private readonly context: CommandContext,
    private readonly queue: readonly Queued[],
    private readonly own: readonly OwnReply[],
  ) {}

  /** Answers EXEC, the command at hand. If it has to wait, it is dispatched again. */
  begin(): void {
    const { context } = this;
    if (this.#mayPublish() && context.clients.subscribers.holds(context, null)) return;
    const plan = planOf(context, this.queue);
    if (plan === 'held') {
      context.flow.retryWhen('open');
      return;
    }
    if (plan instanceof Error) {
      context.client.endTransaction();
      context.clients.counts.addRefused();
      context.reply(error(plan.message));
      return;
    }
    if (this.#refusesRight(plan)) return;
    if (context.client.watch !== null && this.#aborts(context.client.watch, plan)) return;
    if (!this.#place(plan)) return;
    const scripts = plan.commands.filter(({ spec }) => spec.handling === 'script');
    if (!scripts.every(({ spec, frame }) => prepared(context, spec, frame, plan.authority))) return;
    const { sequencer } = context;
    const hides = scripts.some(({ spec, frame }) => hiddenBy(sequencer, spec, frame, plan.authority) === 'writes');
    if (hides || plan.keys.size > 1 || plan.commands.some(leavesDatabase)) {
      if (mayBegin(context)) this.#runAlone(plan, hides);
      return;
    }
    const [db = context.client.db] = plan.keys.keys();
    if (context.client.watch !== null) return this.#runWatched(context.client.watch, plan, db);
    const lane = this.#laneTo(plan.authority, db);
    const placed = this.#placed(plan, db);
    if (lane === null || !context.lanes.admits(lane, placed.keys, true)) return;
    this.#ends(plan);
    const lost = (operation: Operation, reason: Error): void => context.lost(operation, reason);
    context.lanes.adopt(submitTransaction(sequencer, lane, placed, this.#done, lost), lane);
    // Only EXEC's reply shows which database the next commands use.
    if (plan.commands.some(isSelect)) context.flow.holdUntilIdle();
  }

  /**
   * The lane to the database; null if EXEC has to wait, for that lane or for the client's commands in flight on another
   * one.
   */
  #laneTo(side: Side, db: number): Lane | null {
    const { context } = this;
    const own = context.lanes.to(side);
    if (own === null || db === context.client.db) return own;
    const lanes = context.sequencer.lanes[side];
    const identity = { ...context.client.identity, db };
    const there = lanes.get(identity);
    if (there === undefined || there.closed) context.lanes.retryOn(lanes.open(identity));
    else if (context.lanes.inFlight > 0) context.flow.retryWhen('idle');
    else return there;
    return null;
  }

  /**
   * Finds the database in which each command runs. The client may select a database if the authority gives it a lane
   * there.
   * @returns false if EXEC has to wait for that
   */
  #place({ commands, authority, keys }: ExecPlan): boolean {
    let { db } = this.context.client;
    for (const command of commands) {
      if (isSelect(command)) {
        const wanted = databaseOf(wordOf(argumentsOf(command.frame)[1]));
        if (wanted !== null && wanted !== db && !this.#refusedDbs[authority].has(wanted)) {
          if (!this.#reaches(authority, wanted)) return false;
          db = wanted;
        }
      }
      command.db = db;
      if (!isKeyed(command.spec) || (command.keys.length === 0 && command.follow === NOTHING)) continue;
      const known = keys.get(db);
      if (known === undefined) keys.set(db, [...command.keys]);
      else known.push(...command.keys);
    }
    return true;
  }

  /**
   * Whether the client has a lane to the database. If it has none yet, EXEC waits until the server has granted or
   * refused one.
   */
  #reaches(side: Side, db: number): boolean {
    const { context } = this;
    const lanes = context.sequencer.lanes[side];
    const identity = { ...context.client.identity, db };
    const lane = lanes.get(identity);
    if (lane !== undefined && !lane.closed) return true;
    const noted = (problem: unknown): void => {
      if (!(problem instanceof DatabaseRefused)) throw problem;
      this.#refusedDbs[side].add(db);
    };
    context.lanes.retryOn(lanes.open(identity).then(() => undefined, noted));
    return false;
  }

  #placed({ commands, workload, keys }: ExecPlan, db: number, lanes = new Map<number, Lane>()): PlacedTransaction {
    return { commands, workload, db: this.context.client.db, keys: [...new Set(keys.get(db))], lanes };
  }

  /** EXEC is answered. @param db the client's database from now on, if the transaction was run */
  readonly #done: ExecCallback = (operation, reply, db) => {
    this.#arrive(db);
    this.context.deliver(operation, this.#withOwn(reply));
  };

  #arrive(db: number | null): void {
    const { context } = this;
    if (db === null || db === context.client.db) return;
    context.client.become({ db });
  }

  /** Whether one of the commands may publish a message to clients that are about to subscribe. */
  #mayPublish(): boolean {
    const { subscribers, sequencer } = this.context.clients;
    const mayPublish = ({ spec, frame }: Queued): boolean =>
      spec.handling === 'publish' || (spec.handling === 'script' && sequencer.scripts.mayPublish(frame));
    return subscribers.changing && this.queue.some(mayPublish);
  }

  /**
   * Refuses EXEC, or lets it wait, for a command that the target would run although the source denies it to the user.
   */
  #refusesRight({ commands, authority }: ExecPlan): boolean {
    const { context } = this;
    for (const { spec, frame } of commands) {
      const refused = spec.rightsCheck === null ? null : refusedRight(context, spec.rightsCheck, frame, authority);
      if (refused === null) continue;
      if (typeof refused !== 'string') context.flow.retryWhen(refused);
      else {
        context.client.endTransaction();
        context.reply(error(`EXECABORT ${refused.replace(/^ERR /, '')}`));
      }
      return true;
    }
    return false;
  }

  /** Whether EXEC answers nil: a watched key may have changed, or the proxy cannot know. */
  #aborts(watch: Watching, plan: ExecPlan): boolean {
    const { context } = this;
    const otherAuthority =
      plan.commands.some(({ keys }) => keys.length > 0) && plan.authority !== watch.lane.server.side;
    if (!watch.broken && !otherAuthority) return false;
    if (watch.broken) context.reply(context.client.protocol === 3 ? NULL3 : NULL_ARRAY);
    else {
      context.clients.counts.addRefused();
      context.reply(error(crossing('a transaction', plan.workload, watch.workload)));
    }
    context.client.endTransaction();
    return true;
  }

  #runWatched(watch: Watching, plan: ExecPlan, db: number): void {
    const { context } = this;
    if (context.lanes.inFlight > 0) context.flow.retryWhen('idle');
    else if (watch.exec(this.#placed(plan, db), db, () => this.#count(plan), this.#done))
      context.client.endTransaction();
  }

  #ends(plan: ExecPlan): void {
    this.context.client.endTransaction();
    this.#count(plan);
  }

  #count({ commands }: ExecPlan): void {
    for (const { spec, workload } of commands) this.context.clients.counts.sent(spec, workload);
  }

  /**
   * Runs a transaction when every lane is empty: one with keys in several databases, or with unknown keys.
   * @param hides whether one of its scripts does not name its keys
   */
  #runAlone(plan: ExecPlan, hides: boolean): void {
    const { context } = this;
    const { sequencer, foreignKeys } = context.clients;
    if (hides) sequencer.counters.addHidden();
    const tooWide = plan.commands.find(({ spec }) => isAboutEveryKey(spec) && foreignKeys.mayHoldForeignKeys);
    const { watch } = context.client;
    alone(context, plan.authority, async (own) => {
      const lanes = await this.#lanesOf(plan);
      const shared = (lanes.size === 1 ? [...lanes.values()][0] : undefined) ?? own;
      const maySwap = plan.commands.some(
        ({ spec, frame }) => spec.handling === 'script' && sequencer.scripts.swapDatabases(frame),
      );
      if (maySwap) await unblockAll(context.clients, plan.authority);
      // The client has left, and the lane of its WATCH belongs to another client by now.
      if (context.client.watch !== watch) return;
      const lane = watch?.take(shared) ?? shared;
      this.#ends(plan);
      if (lane.closed) throw new ConnectionLost('the connection to the authority was lost');
      // Noted before the transaction is sent, and again after it: a verification may have begun in between.
      if (tooWide !== undefined) sequencer.suspects.hidden(tooWide.spec.name);
      const swaps = maySwap ? sequencer.swaps.begin() : null;
      const reply = await new Promise<Buffer>((resolve, reject) => {
        const done: ExecCallback = (_exec, bytes, db) => {
          this.#arrive(db);
          resolve(bytes);
        };
        const placed = this.#placed(plan, shared.identity.db, lanes);
        submitTransaction(sequencer, lane, placed, done, (_exec, reason) => reject(reason));
      }).catch((problem: unknown) => {
        swaps?.('unknown');
        throw problem;
      });
      watch?.giveBack(reply);
      if (tooWide !== undefined) sequencer.suspects.hidden(tooWide.spec.name);
      if (maySwap) {
        const mirrored = plan.commands.some(({ follow }) => follow === WRITE);
        if (mirrored) sequencer.suspects.hidden(SWAPPED_BY_SCRIPT);
        databasesSwapped(context, plan.authority, mirrored, () => swaps?.('unknown'));
      }
      context.reply(this.#withOwn(reply));
    });
  }

  /** The lanes to the databases in which the transaction has keys. Keys that have expired there are removed. */
  async #lanesOf({ commands, authority, keys }: ExecPlan): Promise<Map<number, Lane>> {
    const { context } = this;
    const { sequencer } = context;
    const found = new Map<number, Lane>();
    for (const db of keys.keys())
      found.set(db, await sequencer.lanes[authority].open({ ...context.client.identity, db }));
    if (found.size < 2) return found;
    const { protocol } = context.client;
    for (const { db, spec, workload, frame, follow } of commands) {
      const lane = found.get(db);
      if (lane === undefined) continue;
      if (follow === WRITE) sequencer.expiry.sending(lane, { workload, db, protocol }, spec, frame, 0);
      removeExpired(sequencer, lane, spec, workload, frame, 0);
    }
    await sequencer.lanes[authority].emptied();
    return found;
  }

  /** EXEC's reply with the proxy's own replies in their places. */
  #withOwn(reply: Buffer): Buffer {
    // The reply is an error, or nil.
    if (this.own.length === 0 || reply[0] !== STAR || reply[1] === MINUS) return reply;
    const replies: Buffer[] = [];
    let own = 0;
    let at = reply.indexOf(10) + 1;
    for (let i = 0; i <= this.queue.length; i++) {
      for (; own < this.own.length && this.own[own].before === i; own++) replies.push(this.own[own].reply);
      if (i === this.queue.length) break;
      const { end } = decodeReply(reply, at);
      replies.push(reply.subarray(at, end));
      at = end;
    }
    return array(replies);
  }
}

const [STAR, MINUS] = [42, 45];
const NULL_ARRAY = Buffer.from('*-1\r\n');
const NULL3 = Buffer.from('_\r\n');
