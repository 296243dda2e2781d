/**
 * Pub/sub of one client. The client is subscribed over connections of its own (`subscription-link.ts`) to the authority
 * of its channels: to one server, or to both if its channels belong to workloads with different authorities. Messages
 * are passed on as they come, between the replies of the lanes.
 */
import type { CommandSpec } from '../../command/table.js';
import { closeFor } from '../../pipeline/failures.js';
import { NOTHING, Operation, WRITE, type Follow } from '../../pipeline/operation.js';
import { ConnectionLost } from '../../upstream/connection.js';
import { HandshakeRefused } from '../../upstream/server.js';
import { decodeReply, text } from '../../resp/decode.js';
import { bulk, encodeCommand, integer, type Argument } from '../../resp/encode.js';
import type { Workload } from '../../route/router.js';
import type { Side, StageRule } from '../../route/stage.js';
import type { Clients } from '../clients.js';
import { Link } from '../subscription-link.js';
import type { Subscribed } from '../client-state.js';
import type { CommandContext } from '../context.js';
import { COMMANDS, IGNORE, KINDS, type Kind } from '../subscription-kinds.js';
import type { Subscriber } from '../subscribers.js';
import { plain } from './plain.js';

// ── PUBLISH ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** PUBLISH or SPUBLISH: to the channel's authority, then to its mirror; both may have subscribers. */
export function publish(context: CommandContext, spec: CommandSpec): void {
  const { parser, clients } = context;
  const { frame, start, end, argStart, argEnd } = parser;
  if (parser.argc !== spec.arity) return plain(context, spec);
  const workload = clients.sequencer.router.channel(frame, argStart[1], argEnd[1]);
  if (workload.position.held || clients.subscribers.moving) return context.flow.retryWhen('open');
  if (clients.subscribers.holds(context, context.argument(1).toString('latin1'))) return;
  const rule = workload.position.keylessRule;
  const lane = context.lanes.to(rule.authority);
  if (lane === null) return;
  clients.counts.sent(spec, workload);
  context.lanes.submit(
    new Operation(
      frame,
      start,
      end,
      context,
      spec,
      workload,
      context.client.db,
      context.client.protocol,
      followOfPublish(clients, spec, rule.authority, mirrorsMessages(clients, rule)),
    ),
    lane,
  );
}

/**
 * Whether messages to a channel with this rule go to both servers. They do not go to a target where only other shards
 * have subscribers.
 */
export const mirrorsMessages = ({ sharedTarget }: Clients, { authority, mirrorsWrites }: StageRule): boolean =>
  mirrorsWrites && !(sharedTarget && authority === 'source');

/** A server without SPUBLISH has no subscribers for it. */
export function followOfPublish(clients: Clients, spec: CommandSpec, authority: Side, mirrors: boolean): Follow {
  if (!mirrors) return NOTHING;
  return clients.sequencer.mirrorKnows(authority, spec) ? WRITE : NOTHING;
}

// ── SUBSCRIBE ───────────────────────────────────────────────────────────────────────────────────────────────────

const SIDES: readonly Side[] = ['source', 'target'];

/** For each command and its confirmation: the kind of subscription, and whether it adds or removes. */
const MEANINGS: Readonly<Record<string, { readonly kind: Kind; readonly joins: boolean }>> = Object.fromEntries(
  KINDS.flatMap((kind) => [
    [COMMANDS[kind].join.toLowerCase(), { kind, joins: true }],
    [COMMANDS[kind].leave.toLowerCase(), { kind, joins: false }],
  ]),
);

/**
 * SUBSCRIBE and the like. The client waits until all its earlier commands are answered, then until this one is
 * confirmed. Other clients' PUBLISH waits meanwhile: at a server it would come after this command.
 */
export function subscription(context: CommandContext, spec: CommandSpec): void {
  const { clients } = context;
  clients.subscribers.began(context, channelsOf(context, MEANINGS[spec.name].kind));
  if (clients.subscribers.moving) return context.flow.retryWhen('open');
  if (context.lanes.inFlight > 0) return context.flow.retryWhen('idle');
  clients.counts.sent(spec, clients.sequencer.router.default);
  const { client } = context;
  const known = client.subscriptions;
  const subscriptions = known instanceof Subscriptions ? known : new Subscriptions(context);
  client.subscribes(subscriptions);
  subscriptions.change(spec);
}

/** The channels of the command at hand; null if it may concern any channel. */
function channelsOf(context: CommandContext, kind: Kind): string[] | null {
  const { argc } = context.parser;
  if (kind === 'pattern' || argc === 1) return null;
  return Array.from({ length: argc - 1 }, (_, i) => context.argument(i + 1).toString('latin1'));
}

/** Bytes that a name takes in addition to its own, about. */
const NAME_BYTES = 64;

/** The part of a command that goes to one server. */
interface Part {
  readonly side: Side;
  readonly args: Buffer[];
  replies: number;
}

export class Subscriptions implements Subscribed, Subscriber {
  /** The names, as latin1, by kind and by the server at which the client is subscribed. */
  readonly names: Readonly<Record<Kind, Readonly<Record<Side, Set<string>>>>>;
  readonly links: Record<Side, Link | null> = { source: null, target: null };
  closed = false;
  /** Bytes that the names take, about. A move to another server does not change them. */
  bytes = 0;
  #change: Promise<void> = Promise.resolve();

  constructor(readonly context: CommandContext) {
    const none = (): Record<Side, Set<string>> => ({ source: new Set(), target: new Set() });
    this.names = { channel: none(), pattern: none(), shard: none() };
    context.clients.subscribers.all.add(this);
  }

  count(kind: Kind): number {
    return this.names[kind].source.size + this.names[kind].target.size;
  }

  get total(): number {
    return this.count('channel') + this.count('pattern') + this.count('shard');
  }

  /**
   * A RESP2 client with subscriptions may run few other commands; the server decides.
   * @returns whether the command at hand was sent to it
   */
  takes(spec: CommandSpec | undefined): boolean {
    const { context } = this;
    if (context.client.protocol === 3 || this.total === 0) return false;
    if (spec !== undefined && (spec.handling === 'subscribe' || spec.name === 'quit' || spec.name === 'reset'))
      return false;
    if (context.clients.subscribers.moving) context.flow.retryWhen('open');
    else this.#sendInOrder([{ side: this.#someSide, frame: context.command, replies: 1 }]);
    return true;
  }

  /** Sends the SUBSCRIBE, UNSUBSCRIBE and so on at hand to the servers of its channels. */
  change(spec: CommandSpec): void {
    const name = this.context.argument(0);
    this.#sendInOrder(
      this.#partsOf(spec).map(({ side, args, replies }) => ({ side, frame: encodeCommand([name, ...args]), replies })),
    );
  }

  #partsOf(spec: CommandSpec): Part[] {
    const { kind, joins } = MEANINGS[spec.name];
    const { argc } = this.context.parser;
    if (argc === 1) {
      const sides = joins ? [] : SIDES.filter((side) => this.names[kind][side].size > 0);
      if (sides.length === 0) return [{ side: this.#someSide, args: [], replies: 1 }];
      return sides.map((side) => ({ side, args: [], replies: this.names[kind][side].size }));
    }
    const parts: Part[] = [];
    for (let i = 1; i < argc; i++) {
      const name = this.context.argument(i);
      const side =
        this.#sideOf(kind, name) ??
        (joins ? this.workloadOf(kind, name).position.keylessRule.authority : this.#someSide);
      let part = parts.at(-1);
      if (part?.side !== side) parts.push((part = { side, args: [], replies: 0 }));
      part.args.push(name);
      part.replies++;
    }
    return parts;
  }

  #sideOf(kind: Kind, name: Buffer): Side | undefined {
    const id = name.toString('latin1');
    return SIDES.find((side) => this.names[kind][side].has(id));
  }

  workloadOf(kind: Kind, name: Buffer): Workload {
    const { router } = this.context.sequencer;
    return kind === 'pattern' ? router.channelPattern(name.toString()) : router.channel(name, 0, name.length);
  }

  /** A server for questions that either server can answer. */
  get #someSide(): Side {
    return (
      SIDES.find((side) => this.links[side] !== null) ??
      this.context.sequencer.router.default.position.keylessRule.authority
    );
  }

  /**
   * Sends commands one after the other, up to the first that is refused. The client is held until they are answered.
   */
  #sendInOrder(commands: readonly { side: Side; frame: Buffer; replies: number }[]): void {
    const { context } = this;
    context.flow.hold();
    const run = async (): Promise<void> => {
      for (const { side, frame, replies } of commands) {
        const link = this.links[side] ?? (this.links[side] = await this.open(side));
        if ((await link.ask(frame, replies, (buffer, start, end) => this.#answer(side, buffer, start, end))) !== null)
          break;
      }
      if (context.client.replies === 'skip') context.client.wants('on');
    };
    this.#change = run().catch((problem: Error) => {
      if (problem instanceof HandshakeRefused) context.replyRefused(problem);
      else closeFor(problem, context);
    });
    this.#change
      .then(() => {
        this.tidy();
        context.clients.subscribers.ended(context);
        context.flow.resume();
      })
      .catch((problem: unknown) => context.failed(problem));
  }

  /** Resolves when no subscription of this client is being changed. */
  settled(): Promise<void> {
    return this.#change;
  }

  /** Opens a connection to the server for this client. @throws as `Link.open`, and if the client has disconnected */
  async open(side: Side): Promise<Link> {
    const { context } = this;
    const link = await Link.open(context.sequencer.servers[side], context.client.identity, {
      message: (buffer, start, end) => this.#pass(buffer, start, end),
      // The client sees a closed connection, as if it had lost the server itself.
      lost: (lost) => {
        if (this.links[lost.side] === lost) context.destroy();
      },
    });
    if (!this.closed) return link;
    link.close();
    throw new ConnectionLost('the client disconnected');
  }

  /** Passes on a reply. Confirmations are sent whatever CLIENT REPLY says; other replies follow it. */
  #answer(side: Side, buffer: Buffer, start: number, end: number): void {
    const frame = buffer.subarray(start, end);
    if (frame[0] !== STAR && frame[0] !== PUSH) return this.context.reply(frame);
    const [what, name, count] = decodeReply(buffer, start).reply.items!;
    const meaning = MEANINGS[text(what)];
    if (meaning === undefined) return this.context.reply(frame);
    const total = this.#confirmed(side, meaning.kind, meaning.joins, name.data);
    // A server counts only the subscriptions that it has itself.
    if (text(count) === String(total)) this.#pass(buffer, start, end);
    else
      this.#pass(
        ...whole(
          Buffer.concat([
            frame.subarray(0, 4),
            bulk(what.data),
            bulk(name.data, this.context.client.protocol),
            integer(total),
          ]),
        ),
      );
  }

  /** Notes a confirmed change. @returns the count for the client's confirmation: channels and patterns together */
  #confirmed(side: Side, kind: Kind, joins: boolean, name: Buffer | null): number {
    const names = this.names[kind][side];
    if (name !== null) {
      const id = name.toString('latin1');
      if (joins && !names.has(id)) {
        names.add(id);
        this.bytes += id.length + NAME_BYTES;
        this.context.clients.limits.grew(id.length + NAME_BYTES);
      } else if (!joins && names.delete(id)) this.bytes -= id.length + NAME_BYTES;
    }
    return kind === 'shard' ? this.count('shard') : this.count('channel') + this.count('pattern');
  }

  #pass(buffer: Buffer, start: number, end: number): void {
    this.context.pass(buffer, start, end);
  }

  /** Closes connections without a subscription. */
  tidy(): void {
    for (const side of SIDES) if (!KINDS.some((kind) => this.names[kind][side].size > 0)) this.#drop(side);
  }

  #drop(side: Side): void {
    const link = this.links[side];
    this.links[side] = null;
    link?.close();
  }

  /** The client's protocol or user has changed: messages from now on follow the new one. */
  reidentified(): void {
    const { protocol, credentials } = this.context.client.identity;
    for (const link of Object.values(this.links)) {
      if (link === null || (link.identity.protocol === protocol && link.identity.credentials === credentials)) continue;
      link.identity = this.context.client.identity;
      const login: Argument[] =
        credentials === undefined ? [] : ['AUTH', credentials.username ?? 'default', credentials.password];
      link.ask(encodeCommand(['HELLO', protocol, ...login]), 1, IGNORE).then(
        (refusal) => refusal !== null && this.context.destroy(),
        () => undefined,
      );
    }
  }

  /** Ends all subscriptions without confirming it to the client. */
  close(): void {
    this.closed = true;
    for (const side of SIDES) this.#drop(side);
    this.context.clients.subscribers.all.delete(this);
  }
}

const whole = (buffer: Buffer): [Buffer, number, number] => [buffer, 0, buffer.length];
const [STAR, PUSH] = [42, 62];
