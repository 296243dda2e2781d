/** MULTI … EXEC of one client: gathered and answered QUEUED here, then sent as one batch. */
import type { CommandSpec } from '../../command/table.js';
import { ConnectionLost } from '../../upstream/connection.js';
import { removeExpired } from '../../pipeline/expired.js';
import type { Lane } from '../../pipeline/lane.js';
import { NOTHING, type Operation, WRITE, type Follow } from '../../pipeline/operation.js';
import { HandshakeRefused } from '../../upstream/server.js';
import { otherDatabase } from '../../script/frame-keys.js';
import {
  isSelect,
  submitTransaction,
  type Done,
  type PlacedTransaction,
  type QueuedCommand,
} from '../../pipeline/transaction.js';
import { argumentsOf, decodeReply } from '../../resp/decode.js';
import { array, error, simple } from '../../resp/encode.js';
import { RequestParser } from '../../resp/request.js';
import type { Workload } from '../../route/router.js';
import { hashSlot } from '../../route/slot.js';
import { otherSide, type Side } from '../../route/stage.js';
import { alone, databasesSwapped, hidesKeys, isAboutEveryKey, mayBegin, refusalOfEveryKey } from './exclusive.js';
import { followOfPublish, mirrorsMessages } from './pubsub.js';
import { ASKS_FOR_ALL } from './owned.js';
import { Refusal, rewrite, type Rewritten } from '../../regional/commands.js';
import { carryOut, perform, rewrittenIn } from './regional.js';
import { followOf, hiddenKeys, routeKeys } from '../routing.js';
import { hiddenBy, prepared, refusalOf } from './script.js';
import { crossing } from './split.js';
import type { CommandContext } from '../context.js';
import type { OpenTransaction, Watching } from '../client-state.js';

const QUEUED = simple('QUEUED');
/** What a queued command takes beside its bytes, about. */
const QUEUED_BYTES = 256;
const ABORTED = error('EXECABORT Transaction discarded because of previous errors.');

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

interface Queued {
  readonly frame: Buffer;
  readonly spec: CommandSpec;
}

interface Plan {
  readonly commands: Mutable<QueuedCommand>[];
  readonly authority: Side;
  readonly workload: Workload;
  /** By database; those in which something is done that the mirror is told, or whose order matters. */
  readonly keys: Map<number, string[]>;
}

/** Whether the command is about keys that it tells. */
const isKeyed = ({ handling, name }: CommandSpec): boolean =>
  handling === 'keyed' || handling === 'script' || name === 'move';

/** The database that SELECT takes the text for; null where it takes none. */
export const databaseOf = (text: string): number | null => (/^(0|[1-9]\d{0,8})$/.test(text) ? Number(text) : null);

export class Transaction implements OpenTransaction {
  readonly #queue: Queued[] = [];
  #authority: Side | null = null;
  #workload: Workload | null = null;
  #spoiled = false;
  /** Bytes that it takes while it is queued. */
  bytes = 0;
  /** Replies of commands that the proxy answers itself, and before which of the queued commands they stand. */
  readonly #own: { readonly before: number; readonly reply: Buffer }[] = [];

  constructor(private readonly context: CommandContext) {}

  /** Commands on counters that are rewritten: these are a transaction by themselves. */
  readonly #regional: (Queued & { readonly workload: Workload })[] = [];
  /** Databases that a server does not let the client select. */
  readonly #barred: Readonly<Record<Side, Set<number>>> = { source: new Set(), target: new Set() };

  /** EXEC will refuse: what is queued is let go. */
  spoil(): void {
    this.#spoiled = true;
    this.#queue.length = 0;
    this.#regional.length = 0;
    this.#own.length = 0;
    this.bytes = 0;
  }

  /** Whether so many bytes more may be queued. If not, the command at hand is answered: EXEC will refuse. */
  #admits(bytes: number): boolean {
    const { context } = this;
    const { transactionBytes } = context.clients.limits.bounds;
    if (this.#spoiled) context.reply(QUEUED);
    else if ((this.bytes += bytes + QUEUED_BYTES) <= transactionBytes) return true;
    else
      context.refuse(
        `ERR shadow-proxy: the transaction takes more than ${transactionBytes} bytes (limits.transactionBytes of the plan): send it in parts, or raise the limit`,
      );
    return false;
  }

  /** Takes the reply of a command that the proxy has answered itself: it is one of EXEC's. */
  queueReply(reply: Buffer): void {
    if (!this.#admits(reply.length)) return;
    this.#own.push({ before: this.#queue.length, reply });
    this.context.reply(QUEUED);
  }

  /** Takes the command at hand, which is about counters that are rewritten. */
  queueRegional(spec: CommandSpec, workload: Workload): void {
    if (this.#isMalformed(spec)) return;
    if (!this.#admits(this.context.command.length)) return;
    this.#regional.push({ frame: Buffer.from(this.context.command), spec, workload });
    this.context.reply(QUEUED);
  }

  /** Takes the command at hand. */
  queue(spec: CommandSpec): void {
    const { context } = this;
    const { parser } = context;
    if (this.#isMalformed(spec)) return;
    if (spec.name === 'save' && !this.#authorityIsKeydb)
      return context.refuse('ERR Command not allowed inside a transaction');
    const loads = spec.name === 'script|load';
    // The other server is given the text when it is to run it.
    if (loads) context.clients.sequencer.scripts.learn(context.argument(2));
    const everyKey = isAboutEveryKey(spec);
    const runsAlone = spec.name === 'move' || (everyKey && spec.name !== 'swapdb');
    const keepsOut = (spec.handling === 'barrier' && !runsAlone) || (spec.handling === 'both' && !loads);
    if (spec.handling === 'subscribe' || keepsOut) {
      context.refuse(`ERR shadow-proxy: ${spec.name.replace('|', ' ').toUpperCase()} inside MULTI is not supported`);
      return;
    }
    const refused = everyKey ? refusalOfEveryKey(context.clients, spec) : null;
    if (refused !== null) return context.refuse(refused);
    if (isKeyed(spec)) {
      const route = routeKeys(context.clients.sequencer.router, spec, parser);
      if (route !== null && route.keys > 0) {
        const other =
          route.other ?? (this.#authority !== null && this.#authority !== route.rule.authority ? this.#workload : null);
        if (other !== null) {
          context.clients.crossRefused++;
          context.refuse(crossing('a transaction', route.workload, other));
          return;
        }
        this.#authority = route.rule.authority;
        this.#workload = route.workload;
      }
      const hidden = route === null ? null : hiddenKeys(context.clients, spec, route);
      if (hidden !== null) {
        context.refuse(hidden);
        return;
      }
    }
    if (!this.#admits(context.command.length)) return;
    this.#queue.push({ frame: Buffer.from(context.command), spec });
    context.reply(QUEUED);
  }

  /** KeyDB queues SAVE, as Redis before 7.0. */
  get #authorityIsKeydb(): boolean {
    const { router, servers } = this.context.clients.sequencer;
    return servers[this.#authority ?? router.default.keylessRule.authority].isKeydb;
  }

  #isMalformed(spec: CommandSpec): boolean {
    const { argc } = this.context.parser;
    if (spec.arity > 0 ? argc === spec.arity : argc >= -spec.arity) return false;
    this.context.refuse(`ERR wrong number of arguments for '${spec.name}' command`);
    return true;
  }

  /** EXEC is the command at hand; it may have to wait, and is then looked at again. */
  exec(): void {
    const { context } = this;
    if (this.#spoiled) {
      context.client.endTransaction();
      context.client.watch?.end();
      context.reply(ABORTED);
      return;
    }
    if (this.#regional.length > 0) return this.#execRegional();
    if (this.#queue.length === 0 && context.client.watch === null) {
      context.client.endTransaction();
      context.reply(array(this.#own.map(({ reply }) => reply)));
      return;
    }
    if (this.#mayPublish() && context.clients.subscribers.holds(context, null)) return;
    const plan = this.#plan();
    if (plan === 'held') {
      context.flow.retryWhen('open');
      return;
    }
    if (plan instanceof Error) {
      context.client.endTransaction();
      context.client.watch?.end();
      context.clients.crossRefused++;
      context.reply(error(plan.message));
      return;
    }
    if (context.client.watch !== null && this.#givesUp(context.client.watch, plan)) return;
    if (!this.#place(plan)) return;
    const scripts = plan.commands.filter(({ spec }) => spec.handling === 'script');
    if (!scripts.every(({ spec, frame }) => prepared(context, spec, frame, plan.authority))) return;
    const { sequencer } = context.clients;
    const hides = scripts.some(({ spec, frame }) => hiddenBy(sequencer, spec, frame, plan.authority) === 'writes');
    if (hides || plan.keys.size > 1 || plan.commands.some(leavesDatabase)) {
      if (mayBegin(context)) this.#execAlone(plan, hides);
      return;
    }
    const [db = context.client.db] = plan.keys.keys();
    if (context.client.watch !== null) return this.#execWatched(context.client.watch, plan, db);
    const lane = this.#laneTo(plan.authority, db);
    const placed = this.#placed(plan, db);
    if (lane === null || !context.lanes.admits(lane, placed.keys, true)) return;
    this.#begin(plan);
    const lost = (operation: Operation, reason: Error): void => context.lost(operation, reason);
    context.lanes.adopt(submitTransaction(sequencer, lane, placed, this.#done, lost), lane);
    // Which database its next commands are for, EXEC tells.
    if (plan.commands.some(isSelect)) context.flow.holdUntilIdle();
  }

  /** The lane to the database; null when EXEC waits: for it, or for what the client has in flight on another one. */
  #laneTo(side: Side, db: number): Lane | null {
    const { context } = this;
    const own = context.lanes.to(side);
    if (own === null || db === context.client.db) return own;
    const lanes = context.clients.sequencer.lanes[side];
    const identity = { ...context.client.identity, db };
    const there = lanes.get(identity);
    if (there === undefined || there.closed) context.lanes.retryOn(lanes.open(identity));
    else if (context.lanes.inFlight > 0) context.flow.retryWhen('idle');
    else return there;
    return null;
  }

  /**
   * Finds out in which database each command runs: the authority lets the client into those to which it gives it a
   * lane. False when EXEC waits for that.
   */
  #place({ commands, authority, keys }: Plan): boolean {
    let { db } = this.context.client;
    for (const command of commands) {
      if (isSelect(command)) {
        const wanted = databaseOf(argumentsOf(command.frame)[1].toString('latin1'));
        if (wanted !== null && wanted !== db && !this.#barred[authority].has(wanted)) {
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

  /** Whether the client has a lane to the database; if not, EXEC waits until it is known whether it can have one. */
  #reaches(side: Side, db: number): boolean {
    const { context } = this;
    const lanes = context.clients.sequencer.lanes[side];
    const identity = { ...context.client.identity, db };
    const lane = lanes.get(identity);
    if (lane !== undefined && !lane.closed) return true;
    const noted = (problem: unknown): void => {
      if (!(problem instanceof HandshakeRefused && ABOUT_DATABASE.test(problem.reply))) throw problem;
      this.#barred[side].add(db);
    };
    context.lanes.retryOn(lanes.open(identity).then(() => undefined, noted));
    return false;
  }

  #placed({ commands, workload, keys }: Plan, db: number, lanes = new Map<number, Lane>()): PlacedTransaction {
    return { commands, workload, db: this.context.client.db, keys: [...new Set(keys.get(db))], lanes };
  }

  /** EXEC is answered; `db` is the client's database from now on, if it has run. */
  readonly #done: Done = (operation, reply, db) => {
    this.#arrive(db);
    this.context.deliver(operation, this.#withOwn(reply));
  };

  #arrive(db: number | null): void {
    const { context } = this;
    if (db === null || db === context.client.db) return;
    context.client.become({ db });
  }

  /** Whether a command of it may be a message to others who are about to subscribe. */
  #mayPublish(): boolean {
    const { subscribers, sequencer } = this.context.clients;
    const mayPublish = ({ spec, frame }: Queued): boolean =>
      spec.handling === 'publish' || (spec.handling === 'script' && sequencer.scripts.mayPublish(frame));
    return subscribers.changing && this.#queue.some(mayPublish);
  }

  /** Whether EXEC does nothing, for what was watched may have changed, or cannot be told. */
  #givesUp(watch: Watching, plan: Plan): boolean {
    const { context } = this;
    const elsewhere = plan.commands.some(({ keys }) => keys.length > 0) && plan.authority !== watch.lane.server.side;
    if (!watch.broken && !elsewhere) return false;
    if (watch.broken) context.reply(context.client.protocol === 3 ? NULL3 : NULL_ARRAY);
    else {
      context.clients.crossRefused++;
      context.reply(error(crossing('a transaction', plan.workload, watch.workload)));
    }
    watch.end();
    context.client.endTransaction();
    return true;
  }

  /** Not the others' way: the replies are this region's, and nobody else's. */
  #execRegional(): void {
    const { context } = this;
    const [{ workload }] = this.#regional;
    if (this.#queue.length > 0 || this.#own.length > 0 || context.client.watch !== null) {
      context.client.endTransaction();
      context.client.watch?.end();
      return context.reply(
        error(
          `EXECABORT shadow-proxy: a transaction with counters of "${workload.name}", whose counterLayout is per-region, has nothing else in it, and no WATCH before it`,
        ),
      );
    }
    const commands = this.#regional.map(({ frame, spec }) =>
      rewrite(spec.name, argumentsOf(frame), context.client.protocol),
    );
    const begun = carryOut(
      context,
      this.#regional.map(({ frame }) => frame),
      workload,
      async (plain) => {
        for (const { spec, workload: of } of this.#regional) context.clients.count(spec, of);
        const done = await perform(
          plain,
          commands.filter((command): command is Rewritten => !(command instanceof Refusal)),
        );
        return array(commands.map((command) => (command instanceof Refusal ? command.reply : done.shift()!)));
      },
    );
    if (begun) context.client.endTransaction();
  }

  #execWatched(watch: Watching, plan: Plan, db: number): void {
    const { context } = this;
    if (context.lanes.inFlight > 0) context.flow.retryWhen('idle');
    else if (watch.exec(this.#placed(plan, db), db, this.#done)) this.#begin(plan);
  }

  #begin({ commands }: Plan): void {
    this.context.client.endTransaction();
    for (const { spec, workload } of commands) this.context.clients.count(spec, workload);
  }

  /**
   * Runs a transaction when every lane is empty: one with keys in several databases, or that are not known.
   * @param hides whether a script of it does not tell its keys
   */
  #execAlone(plan: Plan, hides: boolean): void {
    const { context } = this;
    this.#begin(plan);
    const { sequencer } = context.clients;
    if (hides) sequencer.router.hid();
    const tooWide = plan.commands.find(({ spec }) => isAboutEveryKey(spec) && sequencer.router.mayHoldForeignKeys);
    const blind = plan.commands.some(
      ({ spec, follow, frame }) => spec.handling === 'script' && follow === WRITE && hidesKeys(sequencer, frame),
    );
    const { watch } = context.client;
    alone(context, plan.authority, blind, async (own, calm) => {
      const lanes = await this.#lanesOf(plan);
      const shared = (lanes.size === 1 ? [...lanes.values()][0] : undefined) ?? own;
      const lane = watch?.take(shared) ?? shared;
      if (lane.closed) throw new ConnectionLost('the connection to the authority was lost');
      // Noted before it is sent; and after it, for a verification may have begun in between.
      if (tooWide !== undefined) sequencer.doubts.hidden(tooWide.spec.name);
      const reply = await new Promise<Buffer>((resolve, reject) => {
        const done: Done = (_exec, bytes, db) => {
          this.#arrive(db);
          resolve(bytes);
        };
        const placed = this.#placed(plan, shared.identity.db, lanes);
        const exec = submitTransaction(sequencer, lane, placed, done, (_exec, reason) => reject(reason));
        exec.calm = calm;
      });
      watch?.giveBack();
      if (tooWide !== undefined) sequencer.doubts.hidden(tooWide.spec.name);
      if (
        plan.commands.some(({ spec, frame }) => spec.handling === 'script' && sequencer.scripts.swapDatabases(frame))
      ) {
        const mirrored = plan.commands.some(({ follow }) => follow === WRITE);
        if (mirrored) sequencer.doubts.hidden('swapped');
        await databasesSwapped(context, plan.authority, mirrored);
      }
      context.reply(this.#withOwn(reply));
    });
  }

  /** The lanes to the databases that the transaction has keys in; what has expired there is removed. */
  async #lanesOf({ commands, authority, keys }: Plan): Promise<Map<number, Lane>> {
    const { context } = this;
    const { sequencer } = context.clients;
    const found = new Map<number, Lane>();
    for (const db of keys.keys())
      found.set(db, await sequencer.lanes[authority].open({ ...context.client.identity, db }));
    if (found.size < 2) return found;
    for (const { db, spec, workload, frame } of commands) {
      const lane = found.get(db);
      if (lane !== undefined) removeExpired(sequencer, lane, spec, workload, frame, 0);
    }
    await sequencer.lanes[authority].emptied();
    return found;
  }

  /** EXEC's reply with the proxy's own replies in their places. */
  #withOwn(reply: Buffer): Buffer {
    // An error, or nil.
    if (this.#own.length === 0 || reply[0] !== STAR || reply[1] === MINUS) return reply;
    const replies: Buffer[] = [];
    let own = 0;
    let at = reply.indexOf(10) + 1;
    for (let i = 0; i <= this.#queue.length; i++) {
      for (; own < this.#own.length && this.#own[own].before === i; own++) replies.push(this.#own[own].reply);
      if (i === this.#queue.length) break;
      const { end } = decodeReply(reply, at);
      replies.push(reply.subarray(at, end));
      at = end;
    }
    return array(replies);
  }

  /** Where each command goes, by the stages as they are now. */
  #plan(): Plan | 'held' | Error {
    const { context } = this;
    const { sequencer } = context.clients;
    const { router } = sequencer;
    const parser = new RequestParser();
    const { db } = context.client;
    const commands: Mutable<QueuedCommand>[] = [];
    const keys = new Set<string>();
    let authority: Side | null = null;
    let first: Workload | null = null;
    for (const { frame, spec } of this.#queue) {
      parser.feed(frame);
      parser.next();
      const keyed = isKeyed(spec);
      if (spec.handling === 'publish') {
        const workload = router.channel(frame, parser.argStart[1], parser.argEnd[1]);
        if (workload.held || context.clients.subscribers.moving) return 'held';
        commands.push({ frame, spec, workload, follow: NOTHING, mustCopy: false, keys: [], db });
        continue;
      }
      // The stage may have changed since it was queued.
      if (router.rewrites && rewrittenIn(router, spec, parser).workload !== null)
        return new Error(
          'EXECABORT shadow-proxy: counters of the transaction are counted in parts since it began: send it again',
        );
      const route = routeKeys(router, spec, parser);
      if (route === null) return 'held';
      let own: readonly string[] = [];
      if (keyed && route.keys > 0) {
        if (route.other !== null) return new Error(crossing('a transaction', route.workload, route.other));
        if (authority !== null && authority !== route.rule.authority)
          return new Error(crossing('a transaction', first!, route.workload));
        authority = route.rule.authority;
        first ??= route.workload;
        own = sequencer.keys.ids(frame, 0);
        for (const key of own) keys.add(key);
      }
      const hidden = spec.handling === 'script' ? hiddenBy(sequencer, spec, frame, route.rule.authority) : 'nothing';
      const refused =
        spec.handling === 'script' ? refusalOf(context.clients, spec, frame, hidden, route.rule.authority) : null;
      if (refused !== null) return new Error(refused);
      if (hidden !== 'nothing') {
        const follow = hidden === 'writes' && router.mirrors ? WRITE : NOTHING;
        commands.push({ frame, spec, workload: route.workload, follow, mustCopy: !router.uniform, keys: own, db });
        continue;
      }
      if (isAboutEveryKey(spec)) {
        const refused = refusalOfEveryKey(context.clients, spec);
        if (refused !== null) return new Error(refused);
        if (router.rewrites)
          return new Error(
            `ERR shadow-proxy: ${spec.name.toUpperCase()} is refused while counters are counted in parts`,
          );
        const follow = router.mirrors && !router.mayHoldForeignKeys ? WRITE : NOTHING;
        commands.push({ frame, spec, workload: router.default, follow, mustCopy: false, keys: own, db });
        continue;
      }
      const follow = keyed ? followOf(context.clients.sequencer, spec, route.rule, route.mixed) : NOTHING;
      commands.push({ frame, spec, workload: route.workload, follow, mustCopy: route.mixed, keys: own, db });
    }
    if (spansSlots(keys))
      for (const workload of new Set(commands.map((command) => command.workload))) workload.counters.spanning++;
    const published = commands.filter(({ spec }) => spec.handling === 'publish');
    first ??= published[0]?.workload ?? router.default;
    authority ??= first.keylessRule.authority;
    for (const command of published) command.follow = this.#followOfPublish(command, authority);
    const all =
      authority === 'target' && context.clients.owned !== null
        ? commands.find(({ spec }) => ASKS_FOR_ALL.has(spec.name))
        : undefined;
    if (all !== undefined)
      return new Error(
        `ERR shadow-proxy: ${all.spec.name.toUpperCase()} inside MULTI is refused: other shards keep their keys on the same target`,
      );
    return { commands, authority, workload: first, keys: new Map() };
  }

  /** A PUBLISH goes where the transaction goes, and from there to its channel's authority, too. */
  #followOfPublish({ spec, workload }: QueuedCommand, authority: Side): Follow {
    const { clients } = this.context;
    const away = workload.keylessRule.authority !== authority;
    if (away) clients.sequencer.mirrors[otherSide(authority)].start();
    return followOfPublish(clients, spec, authority, away || mirrorsMessages(clients, workload.keylessRule));
  }
}

function spansSlots(keys: ReadonlySet<string>): boolean {
  const slots = new Set<number>();
  if (keys.size > 1) for (const key of keys) slots.add(hashSlot(Buffer.from(key, 'latin1'), 0, key.length));
  return slots.size > 1;
}

/** Whether it touches another database than the one that it runs in, or every key. */
const leavesDatabase = ({ spec, frame }: Queued): boolean =>
  spec.name === 'move' || isAboutEveryKey(spec) || (spec.name === 'copy' && otherDatabase(frame, 0) !== null);

/** A server's answer to a SELECT that leaves the client where it is. */
const ABOUT_DATABASE = /DB index|SELECT is not allowed|'select' command/i;
const [STAR, MINUS] = [42, 45];
const NULL_ARRAY = Buffer.from('*-1\r\n');
const NULL3 = Buffer.from('_\r\n');
