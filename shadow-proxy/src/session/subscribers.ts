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
    /** The command at hand is looked at again when the promise is settled. */
    retryWhen(event: Promise<unknown>): void;
  };
  destroy(): void;
}

/** What one client is subscribed to, for its move to another server. */
export interface Subscriber {
  readonly context: Pick<Party, 'client' | 'destroy'>;
  /** Names, as latin1, by what they are and where the client is subscribed to them. */
  readonly names: Readonly<Record<Kind, Readonly<Record<Side, Set<string>>>>>;
  readonly links: Record<Side, Link | null>;
  readonly closed: boolean;
  workloadOf(kind: Kind, name: Buffer): Workload;
  /** A connection to that server for this client. @throws as `Link.open`, and when the client disconnected */
  open(side: Side): Promise<Link>;
  /** Resolves when nothing is being subscribed to, or unsubscribed from. */
  settled(): Promise<void>;
  /** Closes connections without a subscription. */
  tidy(): void;
}

/** So many clients connect at a time, and so many that are connected are moved. */
const [CONNECTING, MOVING] = [64, 4096];

/** A SUBSCRIBE, UNSUBSCRIBE … that was received and has not taken effect yet. */
interface Change {
  readonly number: number;
  /** The channels that it is about; null where it may be about any: a pattern, or all of its client's. */
  readonly channels: ReadonlySet<string> | null;
  readonly over: Promise<void>;
  end(): void;
}

export class Subscribers {
  /** By client, in the order in which they were received. */
  readonly #changes = new Map<object, Change>();
  #lastChange = 0;
  /** Who waits for changes, and up to which: those that were received before. */
  readonly #waiting = new Map<object, number>();
  readonly all = new Set<Subscriber>();
  /** Set while subscribers move: nobody publishes, subscribes or unsubscribes. */
  moving = false;
  #moves: Move[] = [];
  /** Connections for the next move. */
  #spare = new Map<Subscriber, Link>();

  /** The command at hand changes what the client is subscribed to: what others publish from now on waits for that. */
  began(session: object, channels: readonly string[] | null): void {
    if (this.#changes.has(session)) return;
    let end = (): void => undefined;
    const over = new Promise<void>((resolve) => (end = resolve));
    this.#changes.set(session, { number: ++this.#lastChange, channels: channels && new Set(channels), over, end });
  }

  /** Whether any change was received that has not taken effect. */
  get changing(): boolean {
    return this.#changes.size > 0;
  }

  /** The change has taken effect, or never will. */
  ended(session: object): void {
    this.#changes.get(session)?.end();
    this.#changes.delete(session);
    this.#waiting.delete(session);
    // What waited is looked at again, and waits for nothing.
    if (this.#changes.size === 0) this.#waiting.clear();
  }

  /**
   * Whether the command at hand has to wait for changes that were received before it; it is then looked at again.
   * @param channel which it publishes to; null where it may be any
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

  /** Connects those who will move, as far as that can be: nobody has to wait for it then. */
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
   * Subscribes those of the workload at the other server, too; they get their messages from the old one until `commit`.
   * @param force closes a client that cannot be moved
   * @throws {Error} where one cannot be moved
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

  /** The subscribers are at the right server. Resolves when the old server sends them nothing more. */
  async commit(): Promise<void> {
    await Promise.all(this.#moves.splice(0).map((move) => move.commit()));
  }

  /** A subscriber that was not moved stays. */
  end(): void {
    for (const move of this.#moves.splice(0)) move.abandon();
    for (const link of this.#spare.values()) link.close();
    this.#spare = new Map();
    this.moving = false;
  }

  /** The address leads to another server now: subscribers are closed, as after a lost connection. */
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

/** What the client has of the workload at the other server; nothing is no move. */
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
  /** The connection is there for the move only, until it is committed. */
  #isNew = false;
  #abandoned = false;

  constructor(
    readonly subscriptions: Subscriber,
    private readonly moving: readonly { readonly kind: Kind; readonly names: readonly Buffer[] }[],
    private readonly to: Side,
  ) {}

  /**
   * Subscribes at the new server, and waits until all that the old one had sent before has come.
   * Nobody publishes meanwhile.
   * @param spare a connection to the new server, to be used if it can be
   * @throws {Error} where that cannot be
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

  /** Leaves everything as it was. */
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
