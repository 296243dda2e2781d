/** MULTI … EXEC of one client: gathered and answered QUEUED here, then sent as one batch. */
import type { CommandSpec } from '../command/table.js';
import type { Lane } from '../lane/lane.js';
import { NOTHING, Operation, WRITE, type Follow, type Sink } from '../lane/operation.js';
import { submitTransaction, type QueuedCommand } from '../lane/transaction.js';
import { argumentsOf, decodeReply } from '../resp/decode.js';
import { REPLY_LOST } from '../record/suspects.js';
import { array, encodeCommand, error, simple } from '../resp/encode.js';
import { RequestParser } from '../resp/request.js';
import type { Workload } from '../route/router.js';
import { hashSlot } from '../route/slot.js';
import { otherSide, type Side } from '../route/stage.js';
import { alone, databasesSwapped, hidesKeys, mayBegin } from './barrier.js';
import { followOfPublish, mirrorsMessages } from './pubsub.js';
import { ASKS_FOR_ALL } from './owned.js';
import { Refusal, rewrite, type Rewritten } from '../regional/commands.js';
import { carryOut, perform, rewrittenIn } from './regional.js';
import { crossesDatabases, routeKeys } from './routing.js';
import { hiddenBy, prepared, refusalOf } from './scripts.js';
import { crossing } from './split.js';
import type { Session } from './session.js';
import type { Watch } from './watch.js';

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
  /** Bytes that it takes while it is queued. */
  bytes = 0;
  /** Replies of commands that the proxy answers itself, and before which of the queued commands they stand. */
  readonly #own: { readonly before: number; readonly reply: Buffer }[] = [];

  constructor(private readonly session: Session) {}

  /** Commands on counters that are rewritten: these are a transaction by themselves. */
  readonly #regional: (Queued & { readonly workload: Workload })[] = [];

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
    const { session } = this;
    const { transactionBytes } = session.clients.limits.bounds;
    if (this.#spoiled) session.reply(QUEUED);
    else if ((this.bytes += bytes + QUEUED_BYTES) <= transactionBytes) return true;
    else session.refuse(`ERR shadow-proxy: the transaction takes more than ${transactionBytes} bytes (limits.transactionBytes of the plan): send it in parts, or raise the limit`);
    return false;
  }

  /** Takes the reply of a command that the proxy has answered itself: it is one of EXEC's. */
  queueReply(reply: Buffer): void {
    if (!this.#admits(reply.length)) return;
    this.#own.push({ before: this.#queue.length, reply });
    this.session.reply(QUEUED);
  }

  /** Takes the command at hand, which is about counters that are rewritten. */
  queueRegional(spec: CommandSpec, workload: Workload): void {
    if (this.#isMalformed(spec)) return;
    if (!this.#admits(this.session.command.length)) return;
    this.#regional.push({ frame: Buffer.from(this.session.command), spec, workload });
    this.session.reply(QUEUED);
  }

  /** Takes the command at hand. */
  queue(spec: CommandSpec): void {
    const { session } = this;
    const { parser } = session;
    if (this.#isMalformed(spec)) return;
    if (spec.name === 'save' && !this.#authorityIsKeydb) return session.refuse('ERR Command not allowed inside a transaction');
    const loads = spec.name === 'script|load';
    // The other server is given the text when it is to run it.
    if (loads) session.clients.sequencer.scripts.learn(session.argument(2));
    const keepsOut = spec.handling === 'subscribe' || spec.handling === 'barrier' || (spec.handling === 'both' && !loads);
    if (keepsOut || (spec.name === 'copy' && crossesDatabases(parser))) {
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
      const hidden = route === null ? null : session.hidesKeys(spec, route);
      if (hidden !== null) {
        session.refuse(hidden);
        return;
      }
    }
    if (!this.#admits(session.command.length)) return;
    this.#queue.push({ frame: Buffer.from(session.command), spec });
    session.reply(QUEUED);
  }

  /** KeyDB queues SAVE, as Redis before 7.0. */
  get #authorityIsKeydb(): boolean {
    const { router, servers } = this.session.clients.sequencer;
    return servers[this.#authority ?? router.default.keylessRule.authority].isKeydb;
  }

  #isMalformed(spec: CommandSpec): boolean {
    const { argc } = this.session.parser;
    if (spec.arity > 0 ? argc === spec.arity : argc >= -spec.arity) return false;
    this.session.refuse(`ERR wrong number of arguments for '${spec.name}' command`);
    return true;
  }

  /** EXEC is the command at hand; it may have to wait, and is then looked at again. */
  exec(): void {
    const { session } = this;
    if (this.#spoiled) {
      session.transaction = null;
      session.watch?.end();
      session.reply(ABORTED);
      return;
    }
    if (this.#regional.length > 0) return this.#execRegional();
    if (this.#queue.length === 0 && session.watch === null) {
      session.transaction = null;
      session.reply(array(this.#own.map(({ reply }) => reply)));
      return;
    }
    if (this.#mayPublish() && session.clients.subscribers.holds(session, null)) return;
    const plan = this.#plan();
    if (plan === 'held') {
      session.awaitOpen();
      return;
    }
    if (plan instanceof Error) {
      session.transaction = null;
      session.watch?.end();
      session.clients.crossRefused++;
      session.reply(error(plan.message));
      return;
    }
    if (session.watch !== null && this.#givesUp(session.watch, plan)) return;
    const scripts = plan.commands.filter(({ spec }) => spec.handling === 'script');
    if (!scripts.every(({ spec, frame }) => prepared(session, spec, frame, plan.authority))) return;
    const { sequencer } = session.clients;
    if (scripts.some(({ spec, frame }) => hiddenBy(sequencer, spec, frame, plan.authority) === 'writes')) {
      if (mayBegin(session)) this.#execAlone(plan);
      return;
    }
    if (session.watch !== null) return this.#execWatched(session.watch, plan);
    const lane = session.laneTo(plan.authority);
    if (lane === null || !session.admitted(lane, plan.keys, true)) return;
    this.#begin(plan);
    submitInName(session, lane, plan.commands, plan.workload, plan.keys, (reply) => this.#withOwn(reply));
  }

  /** Whether a command of it may be a message to others who are about to subscribe. */
  #mayPublish(): boolean {
    const { subscribers, sequencer } = this.session.clients;
    const mayPublish = ({ spec, frame }: Queued): boolean => spec.handling === 'publish' || (spec.handling === 'script' && sequencer.scripts.mayPublish(frame));
    return subscribers.changing && this.#queue.some(mayPublish);
  }

  /** Whether EXEC does nothing, for what was watched may have changed, or cannot be told. */
  #givesUp(watch: Watch, plan: Plan): boolean {
    const { session } = this;
    const elsewhere = plan.keys.length > 0 && plan.authority !== watch.lane.server.side;
    if (!watch.broken && !elsewhere) return false;
    if (watch.broken) session.reply(session.protocol === 3 ? NULL3 : NULL_ARRAY);
    else {
      session.clients.crossRefused++;
      session.reply(error(crossing('a transaction', plan.workload, watch.workload)));
    }
    watch.end();
    session.transaction = null;
    return true;
  }

  /** Not the others' way: the replies are this region's, and nobody else's. */
  #execRegional(): void {
    const { session } = this;
    const [{ workload }] = this.#regional;
    if (this.#queue.length > 0 || this.#own.length > 0 || session.watch !== null) {
      session.transaction = null;
      session.watch?.end();
      return session.reply(error(`EXECABORT shadow-proxy: a transaction with counters of "${workload.name}", whose counterLayout is per-region, has nothing else in it, and no WATCH before it`));
    }
    const commands = this.#regional.map(({ frame, spec }) => rewrite(spec.name, argumentsOf(frame), session.protocol));
    const begun = carryOut(session, this.#regional.map(({ frame }) => frame), workload, async (plain) => {
      for (const { spec, workload: of } of this.#regional) session.clients.count(spec, of);
      const done = await perform(plain, commands.filter((command): command is Rewritten => !(command instanceof Refusal)));
      return array(commands.map((command) => (command instanceof Refusal ? command.reply : done.shift()!)));
    });
    if (begun) session.transaction = null;
  }

  #execWatched(watch: Watch, plan: Plan): void {
    const { session } = this;
    if (session.inFlight > 0) session.awaitIdle();
    else if (watch.exec(plan, (reply) => this.#withOwn(reply))) this.#begin(plan);
  }

  #begin({ commands }: Plan): void {
    this.session.transaction = null;
    for (const { spec, workload } of commands) this.session.clients.count(spec, workload);
  }

  /** Runs a transaction that holds a script whose keys are not known when every lane is empty. */
  #execAlone(plan: Plan): void {
    const { session } = this;
    this.#begin(plan);
    const { sequencer } = session.clients;
    sequencer.router.hid();
    const blind = plan.commands.some(({ spec, follow, frame }) => spec.handling === 'script' && follow === WRITE && hidesKeys(sequencer, frame));
    const { watch } = session;
    alone(session, plan.authority, blind, async (shared, calm) => {
      const lane = watch?.take(shared) ?? shared;
      const reply = await new Promise<Buffer>((resolve, reject) => {
        const exec = submitTransaction(sequencer, lane, plan.commands, plan.workload, plan.keys, (_exec, bytes) => resolve(bytes), (_exec, reason) => reject(reason));
        exec.calm = calm;
      });
      watch?.giveBack();
      if (plan.commands.some(({ spec, frame }) => spec.handling === 'script' && sequencer.scripts.swapDatabases(frame))) {
        const mirrored = plan.commands.some(({ follow }) => follow === WRITE);
        if (mirrored) sequencer.doubts.hidden('swapped');
        await databasesSwapped(session, plan.authority, mirrored);
      }
      session.reply(this.#withOwn(reply));
    });
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
    const { session } = this;
    const { sequencer } = session.clients;
    const { router } = sequencer;
    const parser = new RequestParser();
    const commands: Mutable<QueuedCommand>[] = [];
    const keys = new Set<string>();
    let authority: Side | null = null;
    let first: Workload | null = null;
    for (const { frame, spec } of this.#queue) {
      parser.feed(frame);
      parser.next();
      const keyed = spec.handling === 'keyed' || spec.handling === 'script';
      if (spec.handling === 'publish') {
        const workload = router.channel(frame, parser.argStart[1], parser.argEnd[1]);
        if (workload.held || session.clients.subscribers.moving) return 'held';
        commands.push({ frame, spec, workload, follow: NOTHING, mustCopy: false });
        continue;
      }
      // The stage may have changed since it was queued.
      if (router.rewrites && rewrittenIn(router, spec, parser).workload !== null) return new Error('EXECABORT shadow-proxy: counters of the transaction are counted in parts since it began: send it again');
      const route = routeKeys(router, spec, parser);
      if (route === null) return 'held';
      if (keyed && route.keys > 0) {
        if (route.other !== null) return new Error(crossing('a transaction', route.workload, route.other));
        if (authority !== null && authority !== route.rule.authority) return new Error(crossing('a transaction', first!, route.workload));
        authority = route.rule.authority;
        first ??= route.workload;
        for (const key of sequencer.keys.ids(frame, 0)) keys.add(key);
      }
      const hidden = spec.handling === 'script' ? hiddenBy(sequencer, spec, frame, route.rule.authority) : 'nothing';
      const refused = spec.handling === 'script' ? refusalOf(session.clients, spec, frame, hidden, route.rule.authority) : null;
      if (refused !== null) return new Error(refused);
      if (hidden !== 'nothing') {
        commands.push({ frame, spec, workload: route.workload, follow: hidden === 'writes' && router.mirrors ? WRITE : NOTHING, mustCopy: !router.uniform });
        continue;
      }
      const follow = keyed ? session.followOf(spec, route.rule, route.mixed) : NOTHING;
      commands.push({ frame, spec, workload: route.workload, follow, mustCopy: route.mixed });
    }
    if (spansSlots(keys)) for (const workload of new Set(commands.map((command) => command.workload))) workload.counters.spanning++;
    const published = commands.filter(({ spec }) => spec.handling === 'publish');
    first ??= published[0]?.workload ?? router.default;
    authority ??= first.keylessRule.authority;
    for (const command of published) command.follow = this.#followOfPublish(command, authority);
    const all = authority === 'target' && session.clients.owned !== null ? commands.find(({ spec }) => ASKS_FOR_ALL.has(spec.name)) : undefined;
    if (all !== undefined) return new Error(`ERR shadow-proxy: ${all.spec.name.toUpperCase()} inside MULTI is refused: other shards keep their keys on the same target`);
    return { commands, authority, workload: first, keys: [...keys] };
  }

  /** A PUBLISH goes where the transaction goes, and from there to its channel's authority, too. */
  #followOfPublish({ spec, workload }: QueuedCommand, authority: Side): Follow {
    const { clients } = this.session;
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

/**
 * Sends one command and, right behind it, the second read that its effect needs. Nothing comes between the two: they
 * are neighbours on their lane, and other lanes wait for the key until both are answered. Where the client's user may
 * not read, the key is copied.
 */
export function sendProbed(session: Session, operation: Operation, lane: Lane, probe: Buffer): void {
  const { sequencer } = session.clients;
  const { frame, start, end, spec, workload, db, protocol } = operation;
  operation.lane = lane;
  const asked: Sink = {
    answered: (each, buffer, from, to) => {
      operation.answeredAt = each.answeredAt;
      operation.submittedAt = each.submittedAt;
      operation.stalledMs = each.stalledMs;
      operation.reply = buffer;
      operation.replyStart = from;
      operation.replyEnd = to;
      session.answered(each, buffer, from, to);
    },
    lost: (each, reason) => session.lost(each, reason),
  };
  const read: Sink = {
    answered: (_each, buffer, from) => sequencer.followProbed(operation, buffer[from] === MINUS ? null : decodeReply(buffer, from).reply),
    lost: () => sequencer.doubts.operation(operation, REPLY_LOST),
  };
  session.submit(new Operation(frame, start, end, asked, spec, workload, db, protocol, NOTHING), lane);
  const second = new Operation(probe, 0, probe.length, read, undefined, workload, db, protocol, NOTHING);
  sequencer.submit(second, lane);
  sequencer.hold(second, lane, sequencer.keys.ids(frame, start), true);
}

/**
 * Sends one command inside MULTI, and answers with its own reply. KeyDB runs KEYS, and SCAN with a COUNT of 100 or more,
 * on another thread, and what stands behind it on the connection overtakes it, or waits for the next bytes to come; and
 * from a snapshot, which harms it (lane/page.ts). Not so in a transaction.
 * @param shape what the client gets instead of the reply
 */
export function sendInside(session: Session, operation: Operation, lane: Lane, shape: ((reply: Buffer) => Buffer) | null): void {
  const { frame, start, end, workload, db, protocol } = operation;
  const { sequencer } = session.clients;
  const own = (bytes: Buffer, sink: Sink): Operation => new Operation(bytes, 0, bytes.length, sink, undefined, workload, db, protocol, NOTHING);
  let refusal: Buffer | null = null;
  const queued: Sink = {
    answered: (_each, buffer, from, to) => {
      if (buffer[from] === MINUS) refusal ??= buffer.subarray(from, to);
    },
    lost: () => undefined,
  };
  sequencer.submit(own(MULTI, queued), lane);
  sequencer.submit(own(frame.subarray(start, end), queued), lane);
  const done: Sink = {
    answered: (each, buffer, from, to) => {
      const inner = buffer[from] === STAR ? buffer.subarray(buffer.indexOf(10, from) + 1, to) : buffer.subarray(from, to);
      session.deliver(each, refusal ?? shape?.(inner) ?? inner);
    },
    lost: (each, reason) => session.lost(each, reason),
  };
  session.submit(own(EXEC, done), lane);
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

const [STAR, MINUS] = [42, 45];
const NULL_ARRAY = Buffer.from('*-1\r\n');
const NULL3 = Buffer.from('_\r\n');
const MULTI = encodeCommand(['MULTI']);
const EXEC = encodeCommand(['EXEC']);
