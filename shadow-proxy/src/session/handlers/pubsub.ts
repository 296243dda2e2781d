/**
 * Pub/sub of one client. It is subscribed over connections of its own (`link.ts`): to the authority of its channels,
 * so to one server, or to both where its channels belong to workloads of different authorities. What comes over them
 * is passed on as it comes, between the replies of the lanes.
 */
import type { CommandSpec } from '../../command/table.js';
import { NOTHING, Operation, WRITE, type Follow } from '../../pipeline/operation.js';
import { ConnectionLost } from '../../upstream/connection.js';
import { HandshakeRefused } from '../../upstream/server.js';
import { decodeReply, text } from '../../resp/decode.js';
import { bulk, encodeCommand, integer, type Argument } from '../../resp/encode.js';
import type { Workload } from '../../route/router.js';
import type { Side, StageRule } from '../../route/stage.js';
import type { Clients } from '../clients.js';
import { Link } from './subscription-link.js';
import type { Session } from '../session.js';

// ── PUBLISH ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** PUBLISH or SPUBLISH: to the channel's authority, then to its mirror; both may have subscribers. */
export function publish(session: Session, spec: CommandSpec): void {
  const { parser, clients } = session;
  const { frame, start, end, argStart, argEnd } = parser;
  if (parser.argc !== spec.arity) return session.plain(spec);
  const workload = clients.sequencer.router.channel(frame, argStart[1], argEnd[1]);
  if (workload.held || clients.subscribers.moving) return session.awaitOpen();
  if (clients.subscribers.holds(session, session.argument(1).toString('latin1'))) return;
  const rule = workload.keylessRule;
  const lane = session.laneTo(rule.authority);
  if (lane === null) return;
  clients.count(spec, workload);
  session.submit(
    new Operation(
      frame,
      start,
      end,
      session,
      spec,
      workload,
      session.db,
      session.protocol,
      followOfPublish(clients, spec, rule.authority, mirrorsMessages(clients, rule)),
    ),
    lane,
  );
}

/**
 * Whether messages to a channel with this rule go to both servers: not to a target where only other shards' subscribers
 * would hear them.
 */
export const mirrorsMessages = ({ sharedTarget }: Clients, { authority, mirrorsWrites }: StageRule): boolean =>
  mirrorsWrites && !(sharedTarget && authority === 'source');

/** A server that lacks SPUBLISH has no subscribers to it. */
export function followOfPublish(clients: Clients, spec: CommandSpec, authority: Side, mirrors: boolean): Follow {
  if (!mirrors) return NOTHING;
  return clients.sequencer.mirrorKnows(authority, spec) ? WRITE : NOTHING;
}

// ── SUBSCRIBE ───────────────────────────────────────────────────────────────────────────────────────────────────

export const KINDS = ['channel', 'pattern', 'shard'] as const;
export type Kind = (typeof KINDS)[number];
const SIDES: readonly Side[] = ['source', 'target'];

export const COMMANDS: Readonly<Record<Kind, { readonly join: string; readonly leave: string }>> = {
  channel: { join: 'SUBSCRIBE', leave: 'UNSUBSCRIBE' },
  pattern: { join: 'PSUBSCRIBE', leave: 'PUNSUBSCRIBE' },
  shard: { join: 'SSUBSCRIBE', leave: 'SUNSUBSCRIBE' },
};

/** What each command, and its confirmation, is about. */
const MEANINGS: Readonly<Record<string, { readonly kind: Kind; readonly joins: boolean }>> = Object.fromEntries(
  KINDS.flatMap((kind) => [
    [COMMANDS[kind].join.toLowerCase(), { kind, joins: true }],
    [COMMANDS[kind].leave.toLowerCase(), { kind, joins: false }],
  ]),
);

/**
 * SUBSCRIBE and its like: the client waits until all that it sent before is answered, and then until this is confirmed.
 * What others publish meanwhile waits, too: at a server it would come after this.
 */
export function subscription(session: Session, spec: CommandSpec): void {
  const { clients } = session;
  clients.subscribers.began(session, channelsOf(session, MEANINGS[spec.name].kind));
  if (clients.subscribers.moving) return session.awaitOpen();
  if (session.inFlight > 0) return session.awaitIdle();
  clients.count(spec, clients.sequencer.router.default);
  session.subscriptions ??= new Subscriptions(session);
  session.subscriptions.change(spec);
}

/** The channels that the command at hand is about; null where it may be about any. */
function channelsOf(session: Session, kind: Kind): string[] | null {
  const { argc } = session.parser;
  if (kind === 'pattern' || argc === 1) return null;
  return Array.from({ length: argc - 1 }, (_, i) => session.argument(i + 1).toString('latin1'));
}

/** A part of a command that goes to one server. */
interface Part {
  readonly side: Side;
  readonly args: Buffer[];
  replies: number;
}

export class Subscriptions {
  /** Names, as latin1, by what they are and where the client is subscribed to them. */
  readonly names: Readonly<Record<Kind, Readonly<Record<Side, Set<string>>>>>;
  readonly links: Record<Side, Link | null> = { source: null, target: null };
  closed = false;
  #change: Promise<void> = Promise.resolve();

  constructor(readonly session: Session) {
    const none = (): Record<Side, Set<string>> => ({ source: new Set(), target: new Set() });
    this.names = { channel: none(), pattern: none(), shard: none() };
    session.clients.subscribers.all.add(this);
  }

  count(kind: Kind): number {
    return this.names[kind].source.size + this.names[kind].target.size;
  }

  get total(): number {
    return this.count('channel') + this.count('pattern') + this.count('shard');
  }

  /**
   * A RESP2 client that is subscribed may do little else; the server says so. Whether the command at hand was taken to
   * it.
   */
  takes(spec: CommandSpec | undefined): boolean {
    const { session } = this;
    if (session.protocol === 3 || this.total === 0) return false;
    if (spec !== undefined && (spec.handling === 'subscribe' || spec.name === 'quit' || spec.name === 'reset'))
      return false;
    if (session.clients.subscribers.moving) session.awaitOpen();
    else this.#run([{ side: this.#someSide, frame: session.command, replies: 1 }]);
    return true;
  }

  /** Sends the SUBSCRIBE, UNSUBSCRIBE … at hand to where its channels are. */
  change(spec: CommandSpec): void {
    const name = this.session.argument(0);
    this.#run(
      this.#partsOf(spec).map(({ side, args, replies }) => ({ side, frame: encodeCommand([name, ...args]), replies })),
    );
  }

  #partsOf(spec: CommandSpec): Part[] {
    const { kind, joins } = MEANINGS[spec.name];
    const { argc } = this.session.parser;
    if (argc === 1) {
      const sides = joins ? [] : SIDES.filter((side) => this.names[kind][side].size > 0);
      if (sides.length === 0) return [{ side: this.#someSide, args: [], replies: 1 }];
      return sides.map((side) => ({ side, args: [], replies: this.names[kind][side].size }));
    }
    const parts: Part[] = [];
    for (let i = 1; i < argc; i++) {
      const name = this.session.argument(i);
      const side =
        this.#sideOf(kind, name) ?? (joins ? this.workloadOf(kind, name).keylessRule.authority : this.#someSide);
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
    const { router } = this.session.clients.sequencer;
    return kind === 'pattern' ? router.channelPattern(name.toString()) : router.channel(name, 0, name.length);
  }

  /** Where to ask what any server may answer. */
  get #someSide(): Side {
    return (
      SIDES.find((side) => this.links[side] !== null) ??
      this.session.clients.sequencer.router.default.keylessRule.authority
    );
  }

  /** Sends commands in turn, up to the first that is refused; the client is held until they are answered. */
  #run(commands: readonly { side: Side; frame: Buffer; replies: number }[]): void {
    const { session } = this;
    session.hold();
    const run = async (): Promise<void> => {
      for (const { side, frame, replies } of commands) {
        const link = this.links[side] ?? (this.links[side] = await this.open(side));
        if ((await link.ask(frame, replies, (buffer, start, end) => this.#answer(side, buffer, start, end))) !== null)
          break;
      }
      this.tidy();
      if (session.replies === 'skip') session.replies = 'on';
    };
    this.#change = run().catch((problem: Error) => {
      if (problem instanceof HandshakeRefused) session.replyRefused(problem);
      else session.destroy();
    });
    void this.#change.then(() => {
      session.clients.subscribers.ended(session);
      session.resume();
    });
  }

  /** Resolves when nothing is being subscribed to, or unsubscribed from. */
  settled(): Promise<void> {
    return this.#change;
  }

  /** A connection to that server for this client. @throws as `Link.open`, and when the client is gone */
  async open(side: Side): Promise<Link> {
    const { session } = this;
    const link = await Link.open(session.clients.sequencer.servers[side], session.identity, {
      message: (buffer, start, end) => this.#pass(buffer, start, end),
      // As the loss of the server would show itself.
      lost: (lost) => {
        if (this.links[lost.side] === lost) session.destroy();
      },
    });
    if (!this.closed) return link;
    link.close();
    throw new ConnectionLost('the client is gone');
  }

  /** Confirmations come whatever CLIENT REPLY says; anything else is a reply. */
  #answer(side: Side, buffer: Buffer, start: number, end: number): void {
    const frame = buffer.subarray(start, end);
    if (frame[0] !== STAR && frame[0] !== PUSH) return this.session.reply(frame);
    const [what, name, count] = decodeReply(buffer, start).reply.items!;
    const meaning = MEANINGS[text(what)];
    if (meaning === undefined) return this.session.reply(frame);
    const total = this.#confirmed(side, meaning.kind, meaning.joins, name.data);
    // A server counts what it knows of.
    if (text(count) === String(total)) this.#pass(buffer, start, end);
    else
      this.#pass(
        ...whole(
          Buffer.concat([
            frame.subarray(0, 4),
            bulk(what.data),
            bulk(name.data, this.session.protocol),
            integer(total),
          ]),
        ),
      );
  }

  /** @returns what the confirmation is to say: channels and patterns are counted together */
  #confirmed(side: Side, kind: Kind, joins: boolean, name: Buffer | null): number {
    const names = this.names[kind][side];
    if (name !== null && joins) names.add(name.toString('latin1'));
    if (name !== null && !joins) names.delete(name.toString('latin1'));
    return kind === 'shard' ? this.count('shard') : this.count('channel') + this.count('pattern');
  }

  #pass(buffer: Buffer, start: number, end: number): void {
    const { session } = this;
    if (session.mayOwe(end - start)) session.outbox.add(buffer, start, end);
    else session.clients.limits.close(session, 'output');
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

  /** The client has another protocol or user: what comes from now on is for that one. */
  reidentified(): void {
    const { protocol, credentials } = this.session.identity;
    for (const link of Object.values(this.links)) {
      if (link === null || (link.identity.protocol === protocol && link.identity.credentials === credentials)) continue;
      link.identity = this.session.identity;
      const login: Argument[] =
        credentials === undefined ? [] : ['AUTH', credentials.username ?? 'default', credentials.password];
      link.ask(encodeCommand(['HELLO', protocol, ...login]), 1, IGNORE).then(
        (refusal) => refusal !== null && this.session.destroy(),
        () => undefined,
      );
    }
  }

  /** Ends all subscriptions without a word. */
  close(): void {
    this.closed = true;
    for (const side of SIDES) this.#drop(side);
    this.session.clients.subscribers.all.delete(this);
  }
}

const whole = (buffer: Buffer): [Buffer, number, number] => [buffer, 0, buffer.length];
export const IGNORE = (): void => undefined;
const [STAR, PUSH] = [42, 62];
