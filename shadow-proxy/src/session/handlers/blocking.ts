/**
 * Commands that block at the server: each on a private lane. The mirror gets what they took (rule 6).
 *
 *   its keys are reserved ─▶ shared lanes empty ─▶ sent ─┬─ answered at once ─▶ effect ─▶ client
 *                                                        └─ seen blocked ─▶ keys free ─▶ … woken (waking.ts)
 *
 * When a stage changes, clients that block on its keys are unblocked, and their commands sent again, with the time that
 * is left. A client that disconnects is unblocked as well, or its lane is closed: until the server has done so, the
 * keys stay reserved, so that nothing can be pushed to that client. What the command took at that moment is still
 * replicated.
 */
import { blockOption, type Blocking } from '../../command/policy.js';
import type { CommandSpec } from '../../command/table.js';
import { nextTurn, sleep } from '../../io/timers.js';
import type { Lane } from '../../pipeline/lane.js';
import { IGNORED, NOTHING, Operation, WRITE, type Follow, type Sink } from '../../pipeline/operation.js';
import { PROXY_FAILED } from '../../pipeline/failures.js';
import type { BlockedClient, KeyLocks, LockRequest, Reservation } from '../../pipeline/key-locks.js';
import { Wakeup } from '../../pipeline/wakeup.js';
import { argumentsOf, wordOf } from '../../resp/decode.js';
import { encodeCommand } from '../../resp/encode.js';
import { REPLY_LOST } from '../../pipeline/suspicion.js';
import type { Workload } from '../../route/router.js';
import { otherSide, type Side, type StageRule } from '../../route/stage.js';
import { BlockTime } from './block-time.js';
import { attemptOf, isNothing } from './try-non-blocking.js';
import { followOf, routeKeys, type Route } from '../routing.js';
import { crossing } from './split.js';
import type { BlockedCommand } from '../client-state.js';
import type { CommandContext } from '../context.js';
import type { Server } from '../../upstream/server.js';

/** Where a command goes, by the stages at the time when it is sent. */
interface BlockingRoute {
  readonly workload: Workload;
  readonly rule: StageRule;
  readonly follow: Follow;
  readonly mixed: boolean;
}

/** While a command is not blocked yet, CLIENT UNBLOCK is repeated at this interval, in ms. */
const UNBLOCK_MS = 5;

const argumentsAtHand = (context: CommandContext): Buffer[] =>
  Array.from({ length: context.parser.argc }, (_, i) => context.argument(i));

/** Whether the command at hand asks to block. */
export const asksToBlock = (context: CommandContext, { timeout }: Blocking): boolean =>
  timeout !== 'option' || blockOption(argumentsAtHand(context)) !== -1;

/** Sends the command at hand on a lane of its own. */
export function block(context: CommandContext, spec: CommandSpec): void {
  const { clients } = context;
  if (context.lanes.inFlight > 0) return context.flow.retryWhen('idle');
  const route = routeKeys(clients.sequencer.router, spec, context.parser);
  if (route === null) return context.flow.retryWhen('open');
  const { client } = context;
  const known = client.blocked;
  if (known === null) clients.sequencer.counters.addSpanning(route.spanning);
  if (route.other !== null) {
    clients.counts.addRefused();
    return context.refuse(crossing(spec.name, route.workload, route.other));
  }
  const blocked = known instanceof BlockingCommand ? known : new BlockingCommand(context, spec, route.rule.authority);
  client.blocks(blocked);
  if (blocked.isOver) return blocked.timeOut();
  const follow = route.keys > 0 ? followOf(context.sequencer, spec, route.rule, route.mixed) : NOTHING;
  if (!blocked.attempt(route, follow))
    void blocked.send({ workload: route.workload, rule: route.rule, follow, mixed: route.mixed });
}

export class BlockingCommand implements BlockedCommand {
  /**
   * The command's place among those that wait for a stage change to end. It is given when the command first arrives.
   */
  readonly place: number;
  readonly #time: BlockTime;
  /** The client's command. */
  readonly #frame: Buffer;
  readonly #args: readonly Buffer[];
  /** The keys as strings of bytes. */
  readonly #keys: readonly string[];
  #workload: Workload | null = null;
  #db = 0;
  #writes = false;
  /** The attempt without blocking was made. */
  #attempted = false;
  /** The server at which the attempt was made. */
  #attemptedAt: Side | null = null;
  /** The command is counted in the block queue: it is about to block. */
  #coming = false;
  /** The lane that carries the command at present. */
  #lane: Lane | null = null;
  /** The command's place among those that wait for the keys, and the lane on which it will be sent. */
  #queued: { readonly lockRequest: LockRequest; readonly lane: Lane; readonly route: BlockingRoute } | null = null;
  /** The server's reply when the time is over. */
  #nothing: Buffer | null = null;
  /** Set while the server is asked to unblock the command. */
  #unblocking: Promise<unknown> | null = null;
  /** A connection was lost with a CLIENT UNBLOCK unanswered: the server may still run it. */
  #mayUnblockLater = false;
  /** Reserves the command's keys while the server still has it and the client has disconnected. */
  #reservation: Reservation | null = null;
  #interrupted: (() => void)[] = [];
  #abandoned = false;

  constructor(
    private readonly context: CommandContext,
    private readonly spec: CommandSpec,
    authority: Side,
  ) {
    // The parser's buffer will be reused for the client's next bytes.
    this.#frame = Buffer.from(context.command);
    this.#args = argumentsOf(this.#frame);
    this.#keys = context.sequencer.keys.ids(this.#frame, 0);
    this.#time = new BlockTime(this.#frame, this.#args, spec.blocking!);
    const { servers } = context.sequencer;
    // Clients would miss the command once they have left the proxy: count it.
    const lacks = otherSide(authority);
    if (this.#time.isCutByKeydb && servers[lacks].traits.isKeydb)
      context.clients.support.inScript(spec, this.#frame, `${spec.name} 0.001`, lacks);
    this.place = context.clients.waitingRoom.nextPlace();
    context.clients.blocked.add(this);
  }

  /** Whether the command's time ran out while it was interrupted. */
  get isOver(): boolean {
    return this.#nothing !== null && this.#time.isOver;
  }

  /** Bytes of the command and its keys. */
  get bytes(): number {
    return 2 * this.#frame.length;
  }

  /** Whether the server has the command, so that its keys may change at any moment. */
  get isSent(): boolean {
    return this.#lane !== null;
  }

  /** Whether the attempt found nothing, so that the command waits. */
  get isWaiting(): boolean {
    return this.#workload !== null;
  }

  /** Notes in the journal the keys that the command may change at any moment. */
  note(): void {
    if (this.#lane !== null && this.#writes) this.context.sequencer.suspects.note(this.#db, this.#frame, 0);
  }

  /** Whether a stage change of the workload concerns the command. */
  concerns(workload: Workload): boolean {
    return this.#workload === workload || this.#keys.some((key) => this.#workloadOf(key) === workload);
  }

  #workloadOf(key: string): Workload {
    const bytes = Buffer.from(key, 'latin1');
    return this.context.sequencer.router.match(bytes, 0, bytes.length);
  }

  /** Tries the command without blocking. @returns whether it was sent, or waits to be */
  attempt({ workload, rule, mixed }: Route, follow: Follow): boolean {
    const { context } = this;
    const { sequencer, blockQueue } = context.clients;
    // What the attempt finds might belong to a client that came earlier.
    if (this.#attempted || (this.spec.write && blockQueue.has(context.client.db, this.#keys))) return false;
    const attempt = attemptOf(this.#args, sequencer.servers[rule.authority].traits.commands);
    const spec = attempt === null ? undefined : sequencer.table.byName(attempt.name);
    if (attempt === null || spec === undefined) return false;
    // The user may be allowed the blocking command and denied the other one.
    if (spec !== this.spec) {
      const { privileges } = sequencer.servers[rule.authority];
      const learning = privileges.learn(context.client.credentials);
      if (learning !== null) {
        context.flow.retryWhen(learning);
        return true;
      }
      if (!privileges.isUnrestricted(context.client.credentials)) return false;
    }
    const lane = context.lanes.to(rule.authority);
    if (lane === null || !context.lanes.admits(lane, this.#keys, spec.write)) return true;
    this.#attempted = true;
    this.#attemptedAt = rule.authority;
    context.flow.holdOpen(false);
    if (follow === WRITE) sequencer.suspects.note(context.client.db, attempt.frame, 0);
    const sink: Sink = {
      answered: (_operation, buffer, start, end) => {
        if (this.#abandoned) return;
        const answer = attempt.answer(Buffer.from(buffer.subarray(start, end)));
        if (answer === null) this.#retryWhen((retry) => retry());
        else {
          context.clients.counts.sent(this.spec, workload);
          this.#end();
          context.reply(answer);
          context.flow.resume();
        }
      },
      lost: () => {
        this.#end();
        context.destroy();
      },
    };
    const operation = new Operation(
      attempt.frame,
      0,
      attempt.frame.length,
      sink,
      spec,
      workload,
      context.client.db,
      context.client.protocol,
      follow,
    );
    if (follow === WRITE) sequencer.expiry.sending(lane, operation, spec, attempt.frame, 0);
    operation.mustCopy = mixed;
    sequencer.hold(operation, lane, this.#keys, spec.write);
    sequencer.submit(operation, lane);
    return true;
  }

  async send(route: BlockingRoute): Promise<void> {
    const { context } = this;
    // Redis does not let a client block that has closed its sending side.
    if (context.client.halfClosed) {
      this.#end();
      return context.destroy();
    }
    this.#workload = route.workload;
    this.#db = context.client.db;
    this.#attempted = true;
    this.#writes = route.follow === WRITE;
    this.#comes(this.spec.write);
    context.flow.holdOpen(false);
    let lane: Lane;
    try {
      lane = await context.sequencer.lanes[route.rule.authority].borrow(context.client.identity);
    } catch (problem) {
      return this.#failed(problem as Error);
    }
    this.#enter(lane, route);
  }

  /** Counts the command in the block queue, so that it is served before later ones; or removes it there. */
  #comes(on: boolean): void {
    if (on === this.#coming) return;
    const { blockQueue } = this.context.clients;
    this.#coming = on;
    if (on) blockQueue.add(this.#db, this.#keys);
    else blockQueue.remove(this.#db, this.#keys);
  }

  /** Whether the stages and the lane are still those that the command was prepared for. */
  #ready(lane: Lane, { rule }: BlockingRoute): boolean {
    const now = routeKeys(this.context.sequencer.router, this.spec, this.context.parser);
    return !this.#abandoned && !lane.closed && now !== null && now.rule === rule;
  }

  /** Requests the locks of the keys, and waits for them. */
  #enter(lane: Lane, route: BlockingRoute): void {
    const { spec } = this;
    const lockRequest = this.#queued?.lockRequest ?? null;
    this.#queued = null;
    if (this.context.sequencer.blocked || !this.#ready(lane, route)) return this.#later(lane, route);
    // XREAD takes nothing: no client waits for it, and the reply that wakes it has no place in the order, and is not
    // compared.
    if (route.follow !== WRITE) return this.#submit(lane, route, null, null);
    const lanes = this.context.sequencer.lanes[lane.server.side];
    const locks = lanes.locks(this.#db);
    const destination = spec.name === 'blmove' || spec.name === 'brpoplpush' ? (this.#keys[1] ?? null) : null;
    const blockedClient: BlockedClient = {
      lane,
      keys: this.#keys,
      waitsOn: destination === null ? this.#keys : this.#keys.slice(0, 1),
      destination,
      wakeup: null,
      unordered: false,
    };
    const wakes = locks.wokenBy(destination === null ? [] : [destination]);
    const keys = [...this.#keys, ...[...wakes].flatMap((each) => each.keys)];
    if (!locks.admits(null, keys, true, lockRequest)) {
      this.#queued = {
        lane,
        route,
        lockRequest: locks.wait({ lane: null, keys, writes: true, go: () => this.#enter(lane, route) }, lockRequest),
      };
      return;
    }
    locks.block(blockedClient);
    const wakeup = new Wakeup(locks, lanes.server, this.#keys, wakes, 0, blockedClient);
    // An exclusive command from now on waits until these keys are free.
    const leave = (): void => {
      locks.unblock(blockedClient);
      wakeup.lost();
    };
    lanes
      .emptied(this.#db)
      .then(() => {
        if (this.#ready(lane, route)) return this.#submit(lane, route, blockedClient, wakeup);
        // Before the keys are free: the next command on them must not wait for one that was never sent.
        leave();
        this.#later(lane, route);
      })
      .catch((problem: unknown) => {
        leave();
        this.#end();
        this.context.failed(problem);
      });
  }

  #submit(
    lane: Lane,
    { workload, follow, mixed }: BlockingRoute,
    blockedClient: BlockedClient | null,
    wakeup: Wakeup | null,
  ): void {
    const { context, spec } = this;
    const { sequencer } = context;
    const db = this.#db;
    const locks = sequencer.locksOf(lane, db);
    const operation = new Operation(
      this.#time.frameNow(this.#nothing !== null),
      0,
      0,
      null,
      spec,
      workload,
      db,
      context.client.protocol,
      NOTHING,
    );
    operation.end = operation.frame.length;
    if (follow === WRITE) sequencer.suspects.note(db, this.#frame, 0);
    this.#lane = lane;
    this.#comes(false);
    context.clients.counts.sent(spec, workload);
    const followUp = new Operation(
      this.#frame,
      0,
      this.#frame.length,
      null,
      spec,
      workload,
      db,
      context.client.protocol,
      follow,
    );
    followUp.mustCopy = mixed;
    if (follow === WRITE && this.#createsUnseen(lane.server)) sequencer.suspects.operation(followUp, 'copy');
    const settle = (effect: Parameters<Wakeup['settled']>[1]): void => {
      this.#lane = null;
      if (blockedClient !== null) leave(blockedClient, effect);
      this.#release(locks);
    };
    const leave = (blockedClient: BlockedClient, effect: Parameters<Wakeup['settled']>[1]): void => {
      const { wakeup, unordered } = blockedClient;
      locks.unblock(blockedClient);
      // The write that woke it bypassed the proxy, or was hidden in a script, and may have been replicated already.
      // Only a copy of the keys is certain.
      const place = wakeup !== null && !unordered;
      if (effect !== null && !place && follow === WRITE) sequencer.suspects.operation(followUp, 'copy');
      wakeup?.settled(blockedClient, place ? effect : null);
    };
    operation.sink = {
      answered: (each, buffer, start, end) => {
        const reply = Buffer.from(buffer.subarray(start, end));
        this.#free(lane);
        const tookNothing = isNothing(reply) || reply[0] === MINUS;
        // The keys are in the journal before the client has the reply.
        if (!tookNothing && follow === WRITE) sequencer.suspects.note(db, this.#frame, 0);
        followUp.lane = lane;
        followUp.answeredAt = each.answeredAt;
        followUp.submittedAt = each.submittedAt;
        settle(
          tookNothing
            ? null
            : { domains: this.#domains(), replicate: (ordered) => this.#follow(followUp, reply, ordered) },
        );
        this.#answered(reply);
      },
      lost: () => {
        settle(null);
        if (follow === WRITE) sequencer.suspects.frame(db, this.#frame, 0, REPLY_LOST);
        this.#end();
        context.destroy();
      },
    };
    if (spec.name.startsWith('wait'))
      sequencer.submit(
        new Operation(PING, 0, PING.length, IGNORED, undefined, workload, db, context.client.protocol, NOTHING),
        lane,
      );
    if (follow === WRITE) sequencer.expiry.sending(lane, followUp, spec, this.#frame, 0);
    sequencer.submit(operation, lane);
    wakeup?.answered();
  }

  /** Replicates what the command took. This may happen while another client's write is answered: that must not fail. */
  #follow(followUp: Operation, reply: Buffer, ordered: boolean): void {
    const { effects, failures, suspects } = this.context.sequencer;
    try {
      effects.woken(followUp, reply, ordered);
    } catch (thrown) {
      failures.at(followUp, thrown);
      suspects.operation(followUp, PROXY_FAILED);
    }
  }

  /**
   * Whether the command creates its consumer when it blocks. It does not if the attempt without blocking has created
   * it.
   */
  #createsUnseen({ side, traits: { createsConsumers } }: Server): boolean {
    return this.spec.name === 'xreadgroup' && createsConsumers && this.#attemptedAt !== side;
  }

  /** The domains of the command's order: its keys, each with the group that reads it. */
  #domains(): readonly string[] | null {
    if (this.spec.name === 'blmove' || this.spec.name === 'brpoplpush') return null;
    const at =
      this.spec.name === 'xreadgroup' ? this.#args.findIndex((arg) => wordOf(arg).toUpperCase() === 'GROUP') : -1;
    const group = at === -1 ? '' : this.#args[at + 1].toString('latin1');
    return this.#keys.map((key) => `${key} ${group}`);
  }

  #answered(reply: Buffer): void {
    const { context } = this;
    if (this.#interrupted.length > 0 && isNothing(reply) && !this.#abandoned) {
      this.#nothing = reply;
      this.#retryWhen((retry) => context.clients.waitingRoom.onceOpen(retry, this.place));
      return;
    }
    this.#end();
    if (this.#abandoned) return;
    context.reply(reply);
    context.flow.resume();
  }

  /** Answers that the time is over: it ran out while the command waited to be sent again. */
  timeOut(): void {
    const nothing = this.#nothing!;
    this.#end();
    this.context.reply(nothing);
  }

  #end(): void {
    this.#comes(false);
    this.context.clients.blocked.delete(this);
    if (this.context.client.blocked === this) this.context.client.blocks(null);
    this.#resolveInterrupted();
  }

  #resolveInterrupted(): void {
    for (const then of this.#interrupted.splice(0)) then();
  }

  #failed(problem: Error): void {
    this.#end();
    this.context.lanes.failed(problem);
  }

  /** A stage changes, or an exclusive command runs: the command is tried again after that. */
  #later(lane: Lane, route: BlockingRoute): void {
    const { clients } = this.context;
    const closed = clients.sequencer.blocked || clients.sequencer.router.positions.some(({ held }) => held);
    // The command keeps its lane, so that it is sent at once then: another exclusive command may be next.
    if (closed && !this.#abandoned && !lane.closed)
      clients.waitingRoom.onceOpen(() => this.#enter(lane, route), this.place);
    else this.#retry(lane, nextTurn);
  }

  #retry(lane: Lane, wait: (retry: () => void) => void): void {
    this.context.sequencer.giveBack(lane);
    if (this.#abandoned) this.#end();
    else this.#retryWhen(wait);
  }

  /** Tries the command again when `wait` calls back. */
  #retryWhen(wait: (retry: () => void) => void): void {
    this.context.flow.holdOpen(true);
    this.#resolveInterrupted();
    wait(() => this.context.flow.resume());
  }

  /**
   * Takes the command back from the server, so that it can be sent again later. Resolves when the server has dropped
   * it.
   */
  interrupt(): Promise<void> {
    if (this.#lane === null) return Promise.resolve();
    return new Promise((resolve) => {
      this.#interrupted.push(resolve);
      void this.#unblock();
    });
  }

  /** CLIENT UNBLOCK. @returns whether the command was blocked */
  async unblock(how: 'TIMEOUT' | 'ERROR'): Promise<boolean> {
    return (await this.#ask(how)) === true;
  }

  async #ask(how: 'TIMEOUT' | 'ERROR'): Promise<boolean | null> {
    if (this.#lane === null) return false;
    const asked = this.#lane.server.connections.unblock(this.#lane.clientId, how);
    this.#unblocking = asked.catch(() => (this.#mayUnblockLater = true));
    return asked;
  }

  /** Returns the lane for the next client, unless a CLIENT UNBLOCK is on its way that could hit that client. */
  #free(lane: Lane): void {
    const giveBack = (): void => {
      if (this.#mayUnblockLater) lane.close();
      else this.context.sequencer.giveBack(lane);
      this.#mayUnblockLater = false;
    };
    if (this.#unblocking === null) giveBack();
    else void this.#unblocking.then(giveBack);
  }

  /** Drops the command: its client has disconnected, or it has failed. */
  abandon(): void {
    this.#abandoned = true;
    if (this.#queued !== null) {
      const { lockRequest, lane, route } = this.#queued;
      this.#queued = null;
      lockRequest.locks.leave(lockRequest);
      this.#later(lane, route);
    } else if (this.#lane === null) this.#end();
    else {
      const locks = this.context.sequencer.locksOf(this.#lane, this.#db);
      if (this.spec.write) this.#reservation = locks.reserve(this.#keys);
      this.#unblock().catch((problem: unknown) => this.context.failed(problem));
    }
  }

  #release(locks: KeyLocks): void {
    if (this.#reservation !== null) locks.releaseReservation(this.#reservation);
    this.#reservation = null;
  }

  /**
   * Repeats CLIENT UNBLOCK until the server finds the client blocked: the command may still be on its way, and block
   * only then. A command that is sent again may get the same lane. If the server refuses CLIENT UNBLOCK, the command
   * stays with its client, and its lane is closed when the client has left.
   */
  async #unblock(): Promise<void> {
    const wanted = (): boolean => this.#abandoned || this.#interrupted.length > 0;
    for (const lane = this.#lane!; this.#lane === lane && wanted(); await sleep(UNBLOCK_MS)) {
      const done = await this.#ask('TIMEOUT').catch(() => false);
      if (done === null && this.#abandoned) this.#cut(lane);
      if (done !== false) return;
    }
  }

  /**
   * Closes the lane's connection, at the server first: until then the server could still push an element to the client
   * that has left.
   */
  #cut(lane: Lane): void {
    this.#unblocking = lane.server.connections
      .kill(lane.clientId)
      .catch(() => undefined)
      .then(() => lane.close());
  }
}

const MINUS = '-'.charCodeAt(0);

const PING = encodeCommand(['PING']);
