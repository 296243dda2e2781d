/** The subscribers of a shard, and their move to another server when a workload's authority changes. */
import { encodeCommand } from '../resp/encode.js';
import type { Workload } from '../route/router.js';
import { otherSide, type Side } from '../route/stage.js';
import type { LaneIdentity } from '../pipeline/operation.js';
import { COMMANDS, IGNORE, KINDS, type Kind } from './subscription-kinds.js';
import type { Link } from './subscription-link.js';

/** A client that publishes or subscribes. */
export interface Party {
  readonly client: { readonly identity: LaneIdentity };
  readonly flow: {
    /** Dispatches the command at hand again when the promise is settled. */
    retryWhen(event: Promise<unknown>): void;
  };
  destroy(): void;
}

/** The subscriptions of one client, for its move to another server. */
export interface Subscriber {
  readonly context: Pick<Party, 'client' | 'destroy'>;
  /** The names, as latin1, by kind and by the server at which the client is subscribed. */
  readonly names: Readonly<Record<Kind, Readonly<Record<Side, Set<string>>>>>;
  readonly links: Record<Side, Link | null>;
  readonly closed: boolean;
  workloadOf(kind: Kind, name: Buffer): Workload;
  /** Opens a connection to the server for this client. @throws as `Link.open`, and if the client has disconnected */
  open(side: Side): Promise<Link>;
  /** Resolves when no subscription of this client is being changed. */
  settled(): Promise<void>;
  /** Gives its connections the protocol and the user that the client has now. */
  reidentified(): void;
  /** Closes connections without a subscription. */
  tidy(): void;
}

/** How many clients are connected at a time, and how many connected ones are moved at a time. */
const [CONNECTING, MOVING] = [64, 4096];

/** A SUBSCRIBE, UNSUBSCRIBE and so on that was received and has not taken effect yet. */
interface Change {
  readonly number: number;
  /** The channels of the change; null if it may concern any: a pattern, or all channels of the client. */
  readonly channels: ReadonlySet<string> | null;
  readonly over: Promise<void>;
  end(): void;
}

export class Subscribers {
  /** The changes by client, in order of arrival. */
  readonly #changes = new Map<object, Change>();
  #lastChange = 0;
  /** The clients that wait, each with the number of the last change that it waits for. */
  readonly #waiting = new Map<object, number>();
  readonly all = new Set<Subscriber>();
  /** Set while subscribers move: no client publishes, subscribes or unsubscribes. */
  moving = false;
  #moves: Move[] = [];
  /** Connections that are open already, for the next move. */
  #spare = new Map<Subscriber, Link>();

  /** The command at hand changes the client's subscriptions: other clients' PUBLISH waits from now on. */
  began(session: object, channels: readonly string[] | null): void {
    if (this.#changes.has(session)) return;
    let end = (): void => undefined;
    const over = new Promise<void>((resolve) => (end = resolve));
    this.#changes.set(session, { number: ++this.#lastChange, channels: channels && new Set(channels), over, end });
  }

  /** Whether any change has not taken effect yet. */
  get changing(): boolean {
    return this.#changes.size > 0;
  }

  /** The change has taken effect, or never will. */
  ended(session: object): void {
    this.#changes.get(session)?.end();
    this.#changes.delete(session);
    this.#waiting.delete(session);
    // With no change left, no client waits; each is dispatched again.
    if (this.#changes.size === 0) this.#waiting.clear();
  }

  /**
   * Whether the command at hand has to wait for changes that arrived before it. If so, it is dispatched again later.
   * @param channel the channel that it publishes to; null if it may be any
   */
  holds(session: Party, channel: string | null): boolean {
    if (this.#changes.size === 0) return false;
    const upTo = this.#waiting.get(session) ?? this.#lastChange;
    this.#waiting.delete(session);
    const before: Promise<void>[] = [];
    for (const { number, channels, over } of this.#changes.values()) {
      if (number <= upTo && (channel === null || channels === null || channels.has(channel))) before.push(over);
    }
    if (before.length === 0) return false;
    this.#waiting.set(session, upTo);
    session.flow.retryWhen(Promise.all(before));
    return true;
  }

  /**
   * Opens connections for the clients that will move, as far as possible, so that the move itself need not wait for
   * them.
   */
  async connect(workload: Workload, to: Side): Promise<void> {
    const spare = this.#spare;
    const without = [...this.all].filter((each) => each.links[to] === null && moveOf(each, workload, to).length > 0);
    await inParallel(CONNECTING, without, async (each) => {
      const link = await each.open(to).catch(() => null);
      if (link === null) return;
      link.muted = true;
      if (this.#spare === spare) spare.set(each, link);
      else link.close();
    });
  }

  /**
   * Subscribes the workload's subscribers at the other server, too. They get their messages from the old server until
   * `commit`.
   * @param force closes a client that cannot be moved
   * @throws {Error} if one cannot be moved
   */
  async prepare(workload: Workload, to: Side, force: boolean): Promise<void> {
    await Promise.all([...this.all].map((each) => each.settled()));
    const moves = [...this.all].flatMap((each) => moveOf(each, workload, to));
    this.#moves = moves;
    await inParallel(MOVING, moves, (move) => {
      const spare = this.#spare.get(move.subscriptions);
      this.#spare.delete(move.subscriptions);
      return prepare(move, spare, force);
    });
  }

  /** The subscribers now use the new server. Resolves when the old server sends them nothing more. */
  async commit(): Promise<void> {
    await Promise.all(this.#moves.splice(0).map((move) => move.commit()));
  }

  /** The move is over. A subscriber that was not moved stays at its server. */
  end(): void {
    for (const move of this.#moves.splice(0)) move.abandon();
    for (const link of this.#spare.values()) link.close();
    this.#spare = new Map();
    this.moving = false;
  }

  /** The address leads to another server now: its subscribers are closed, as after a lost connection. */
  leave(side: Side): void {
    for (const { links, context } of [...this.all]) if (links[side] !== null) context.destroy();
  }
}

async function inParallel<T>(atATime: number, items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = items.values();
  const worker = async (): Promise<void> => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(atATime, items.length) }, worker));
}

async function prepare(move: Move, spare: Link | undefined, force: boolean): Promise<void> {
  const { subscriptions } = move;
  try {
    await move.prepare(spare);
  } catch (problem) {
    if (subscriptions.closed) return;
    if (!force) throw problem;
    subscriptions.context.destroy();
  }
}

/** The client's subscriptions to the workload that have to move; null if there are none. */
function moveOf(subscriptions: Subscriber, workload: Workload, to: Side): Move[] {
  const moving = KINDS.map((kind) => {
    const names = [...subscriptions.names[kind][otherSide(to)]].map((id) => Buffer.from(id, 'latin1'));
    return { kind, names: names.filter((name) => subscriptions.workloadOf(kind, name) === workload) };
  }).filter(({ names }) => names.length > 0);
  return moving.length === 0 ? [] : [new Move(subscriptions, moving, to)];
}

/** The subscriptions of one client to one workload's channels, on their way to another server. */
class Move {
  #link: Link | null = null;
  /** The connection was opened for this move, and belongs to it until the move is committed. */
  #isNew = false;
  #abandoned = false;

  constructor(
    readonly subscriptions: Subscriber,
    private readonly moving: readonly { readonly kind: Kind; readonly names: readonly Buffer[] }[],
    private readonly to: Side,
  ) {}

  /**
   * Subscribes at the new server, then waits until all earlier messages of the old server have arrived. No client
   * publishes meanwhile.
   * @param spare an open connection to the new server, used if it still works
   * @throws {Error} if the client cannot be moved
   */
  async prepare(spare?: Link): Promise<void> {
    const { links, context } = this.subscriptions;
    const usable =
      spare !== undefined &&
      !this.#abandoned &&
      !spare.closed &&
      spare.identity === context.client.identity &&
      links[this.to] === null;
    if (!usable) spare?.close();
    if (this.#abandoned) return;
    this.#isNew = links[this.to] === null;
    const link = links[this.to] ?? (usable ? spare : await this.subscriptions.open(this.to));
    this.#link = link;
    if (this.#abandoned) return this.abandon();
    link.muted = this.#isNew;
    const asked = this.#each((kind, names) =>
      link.ask(encodeCommand([COMMANDS[kind].join, ...names]), names.length, IGNORE),
    );
    const delivered = links[otherSide(this.to)]!.ask(PING, 1, IGNORE);
    for (const refusal of await Promise.all([...asked, delivered])) if (refusal !== null) throw new Error(refusal);
  }

  /** From now on messages come from the new server. Resolves when the old one sends no more. */
  async commit(): Promise<void> {
    const { subscriptions } = this;
    if (subscriptions.closed) return this.abandon();
    if (this.#link === null || this.#link.closed) return subscriptions.context.destroy();
    const from = otherSide(this.to);
    this.#link.muted = false;
    subscriptions.links[this.to] = this.#link;
    // The client may have changed them since the connection was opened.
    subscriptions.reidentified();
    for (const { kind, names } of this.moving) {
      for (const name of names) {
        const id = name.toString('latin1');
        subscriptions.names[kind][from].delete(id);
        subscriptions.names[kind][this.to].add(id);
      }
    }
    subscriptions.tidy();
    await this.#leave(subscriptions.links[from]);
  }

  /** Undoes the move. */
  abandon(): void {
    this.#abandoned = true;
    if (this.#isNew) this.#link?.close();
    else void this.#leave(this.#link);
  }

  async #leave(link: Link | null): Promise<void> {
    if (link === null || link.closed) return;
    await Promise.allSettled(
      this.#each((kind, names) => link.ask(encodeCommand([COMMANDS[kind].leave, ...names]), names.length, IGNORE)),
    );
  }

  #each<T>(ask: (kind: Kind, names: readonly Buffer[]) => T): T[] {
    return this.moving.map(({ kind, names }) => ask(kind, names));
  }
}

const PING = encodeCommand(['PING']);
