/** The lanes to one server as an authority: opened at first use, shared, closed when idle. */
import { monotonicMs } from '../io/clock.js';
import { encodeCommand } from '../resp/encode.js';
import type { Workload } from '../route/router.js';
import type { Connection } from '../upstream/connection.js';
import type { Credentials } from '../upstream/dialer.js';
import { allLongCommands, Lane, type LaneEvents, type LongCommands } from './lane.js';
import type { LaneIdentity } from './operation.js';
import { Latencies, LatencyRecorder } from '../io/latency.js';
import { clearTimer, every, type Timer } from '../io/timers.js';
import { digestOf, type Login } from '../upstream/login.js';
import { IGNORED, NOTHING, Operation, type Sink } from './operation.js';
import { KeyLocks } from './key-locks.js';
import type { Side } from '../route/stage.js';
import { HandshakeRefused, type Server } from '../upstream/server.js';
import type { Turn } from '../io/turn.js';

/** How long, in ms, a lane may be idle before it is closed. */
export const IDLE_MS = 60_000;
/** How many idle private lanes are kept for the next client. */
const MAX_IDLE = 64;
/** For how many logins the server's last answer is remembered. */
const MAX_VERIFIED = 1_000;
const NONE: ReadonlySet<Lane> = new Set();
const MINUS = '-'.charCodeAt(0);

export class Lanes {
  readonly #lanes = new Map<string, Lane>();
  readonly #opening = new Map<string, Promise<Lane>>();
  readonly #locks = new Map<number, KeyLocks>();
  /** Private lanes without a client at present. */
  readonly #idle: Lane[] = [];
  /** All private lanes. */
  readonly #borrowed = new Set<Lane>();
  /** Settled when every client that asked for a lane has one. */
  #asked: Promise<unknown> = Promise.resolve();
  /** Not reported: the time for which commands block is not a latency. */
  readonly #unmeasured = new Latencies();
  readonly #sweeper: Timer;
  /** For each login, when the server was last asked about it, and its answer. */
  readonly #verified = new Map<string, { readonly at: number; readonly answer: Promise<void> }>();
  #inUse: () => ReadonlySet<Lane> = () => NONE;
  #closed = false;
  /** How many times the lanes have selected their databases again. */
  #selections = 0;

  constructor(
    readonly server: Server,
    readonly latencies: Latencies,
    private readonly events: LaneEvents,
    private readonly turn: Turn,
    private readonly framing: Workload,
  ) {
    this.#sweeper = every(IDLE_MS / 2, () => void this.#closeIdle()).unref();
  }

  /** @param inUse the lanes of clients, which may send commands on them again */
  usedBy(inUse: () => ReadonlySet<Lane>): void {
    this.#inUse = inUse;
  }

  /** The locks of the database's keys. */
  locks(db: number): KeyLocks {
    let locks = this.#locks.get(db);
    if (locks === undefined) this.#locks.set(db, (locks = new KeyLocks()));
    return locks;
  }

  #nameOf(identity: LaneIdentity): string {
    return nameOf(identity, this.server.side);
  }

  /** The open lane, if there is one that the client may use. */
  get(identity: LaneIdentity): Lane | undefined {
    return identity.login?.states[this.server.side] === 'unknown' ? undefined : this.#lanes.get(this.#nameOf(identity));
  }

  /** The shared lanes. */
  all(): IterableIterator<Lane> {
    return this.#lanes.values();
  }

  /** Private lanes: those of one client each, and those that are kept for the next client. */
  private(): IterableIterator<Lane> {
    return this.#borrowed.values();
  }

  /**
   * Lets every lane select its database again, including those that are being opened. After SWAPDB, a connection of
   * KeyDB 6.3.4 still uses the database's former data until then.
   */
  selectAgain(): void {
    this.#selections++;
    for (const lane of [...this.#lanes.values(), ...this.#borrowed]) this.#select(lane);
  }

  #select(lane: Lane): void {
    this.#submit(lane, encodeCommand(['SELECT', lane.identity.db]));
  }

  /**
   * Lets the lanes of these users log in again: as their fence users while there is a fence, else as themselves. A lane
   * whose login is refused is closed. Resolves when all that was in flight on them is answered or lost.
   */
  async logInAgain(users: ReadonlySet<string>): Promise<void> {
    const lanes = [...this.#lanes.values(), ...this.#borrowed].filter(
      ({ admitted, closed, identity }) => admitted && !closed && users.has(identity.credentials?.username ?? 'default'),
    );
    for (const lane of lanes) this.#logIn(lane, this.server.fence.loginFor(lane.identity.credentials));
    for (const lane of lanes) await new Promise<void>((resolve) => lane.afterInFlight(resolve));
  }

  /** @param login null: the client's own */
  #logIn(lane: Lane, login: Credentials | null): void {
    const { username = 'default', password } = login ?? lane.identity.credentials ?? { password: '' };
    this.#submit(lane, encodeCommand(['AUTH', username, password]));
  }

  /**
   * Names the lane's connection at the server; its commands do not wait for that.
   * @param refused called if the server does not allow it
   */
  rename(lane: Lane, name: string, refused: () => void): void {
    const { db, protocol } = lane.identity;
    const frame = encodeCommand(['CLIENT', 'SETNAME', name]);
    const sink: Sink = {
      answered: (_, buffer, start) => {
        if (buffer[start] === MINUS) refused();
      },
      lost: () => undefined,
    };
    lane.submit(new Operation(frame, 0, frame.length, sink, undefined, this.framing, db, protocol, NOTHING));
  }

  /** Submits a command on which all later ones depend. */
  #submit(lane: Lane, frame: Buffer): void {
    const { db, protocol } = lane.identity;
    lane.submitFirst(new Operation(frame, 0, frame.length, IGNORED, undefined, this.framing, db, protocol, NOTHING));
  }

  async #connect(identity: LaneIdentity): Promise<Connection> {
    const connection = await this.server.open(identity);
    await this.server.fence.ready(connection.runId);
    return connection;
  }

  /** The lane on a connection. @param selections how many selections there were when the connection was begun */
  #laneOn(connection: Connection, identity: LaneIdentity, latency: LatencyRecorder, selections: number): Lane {
    if (this.#closed || connection.ended) {
      connection.destroy();
      throw new Error('the connection ended');
    }
    const lane = new Lane(this.server, identity, connection, latency, this.events, this.turn);
    if (selections !== this.#selections) this.#select(lane);
    const login = lane.admitted ? this.server.fence.loginFor(identity.credentials) : null;
    if (login !== null) this.#logIn(lane, login);
    return lane;
  }

  /** Commands of clients that the server may be working on for long. */
  get longCommands(): LongCommands {
    return allLongCommands([...this.#lanes.values(), ...this.#borrowed].map(({ longCommands }) => longCommands));
  }

  /** When the server last replied on a lane, in ms of the monotonic clock; -Infinity without a lane. */
  get repliedAt(): number {
    return Math.max(...[...this.#lanes.values(), ...this.#borrowed].map(({ usedAt }) => usedAt));
  }

  /** Resolves once everything in flight on the shared lanes (to the database) is answered or lost. */
  async emptied(db?: number): Promise<void> {
    const lanes = [...this.#lanes.values()].filter(({ identity }) => db === undefined || identity.db === db);
    await Promise.all(lanes.map((lane) => new Promise<void>((resolve) => lane.afterInFlight(resolve))));
  }

  /** Whether nothing is in flight on any lane. */
  get isEmpty(): boolean {
    return [...this.#lanes.values(), ...this.#borrowed].every(({ inFlight }) => inFlight === 0);
  }

  /**
   * Resolves once everything in flight in every database is answered or lost, and all keys that are reserved then are
   * free.
   */
  async quiet(): Promise<void> {
    await this.emptied();
    await Promise.all([...this.#locks.values()].map((locks) => locks.afterReservations()));
  }

  /**
   * The lane; it is opened if there is none.
   * @throws {HandshakeRefused} with the server's own error, {Error} if the server cannot be reached
   */
  async open(identity: LaneIdentity): Promise<Lane> {
    if (identity.login !== undefined) await this.admit(identity.login);
    const name = this.#nameOf(identity);
    const open = this.#lanes.get(name);
    if (open) return open;
    let opening = this.#opening.get(name);
    if (opening === undefined) {
      opening = this.#open(name, identity).finally(() => this.#opening.delete(name));
      this.#opening.set(name, opening);
    }
    return opening;
  }

  /**
   * Asks the server, once, whether it admits the client: an open lane was admitted for other clients, perhaps under an
   * earlier password.
   * @throws {HandshakeRefused} if the server refuses the user or the password, {Error} if it cannot be reached
   */
  async admit(login: Login): Promise<void> {
    const { side } = this.server;
    if (login.states[side] !== 'unknown') return;
    if (login.credentials === undefined)
      login.states[side] = (await this.server.askNeedsPassword()) ? 'unauthenticated' : 'admitted';
    else {
      await this.#verify(login.credentials, login.at);
      login.states[side] = 'admitted';
    }
  }

  /** One answer serves all clients that logged in before the question. */
  async #verify(credentials: Credentials, since: number): Promise<void> {
    const digest = digestOf(credentials);
    const known = this.#verified.get(digest);
    if (known !== undefined && known.at >= since) return known.answer;
    if (this.#verified.size >= MAX_VERIFIED) this.#verified.clear();
    const asked = { at: monotonicMs(), answer: this.server.verify(credentials) };
    this.#verified.set(digest, asked);
    asked.answer.catch(() => {
      if (this.#verified.get(digest) === asked) this.#verified.delete(digest);
    });
    return asked.answer;
  }

  /**
   * The server has begun to demand a password. Lanes that were opened without one are closed if their clients came
   * while it was demanded: now if nothing is in flight there, otherwise at the next call.
   */
  retireUnauthenticated(): void {
    const { side } = this.server;
    for (const lane of [...this.#lanes.values(), ...this.#borrowed]) {
      if (lane.identity.login?.states[side] !== 'unauthenticated' || !lane.admitted) continue;
      const last = lane.retired;
      lane.retired = true;
      if (lane.inFlight === 0 || last) this.#shut(lane);
    }
  }

  #shut(lane: Lane): void {
    lane.closed = lane.inFlight === 0;
    lane.close();
    if (lane.closed) this.forget(lane);
  }

  /** The key locks of every database. */
  allLocks(): IterableIterator<KeyLocks> {
    return this.#locks.values();
  }

  /**
   * A lane for one client alone, until it is returned. Its commands have no order with other lanes' commands, so their
   * sender reserves their keys. Clients get lanes in the order in which they asked, whichever connection opens first.
   * @throws as `open`
   */
  async borrow(identity: LaneIdentity): Promise<Lane> {
    const before = this.#asked;
    const lane = this.#borrow(identity);
    this.#asked = Promise.allSettled([before, lane]);
    await before;
    return lane;
  }

  async #borrow(identity: LaneIdentity): Promise<Lane> {
    const home = await this.open(identity);
    const name = this.#nameOf(identity);
    const at = this.#idle.findIndex((lane) => this.#nameOf(lane.identity) === name);
    if (at !== -1) {
      const [lane] = this.#idle.splice(at, 1);
      lane.home = home;
      return lane;
    }
    const selections = this.#selections;
    const connection = await this.#connect(identity);
    const lane = this.#laneOn(connection, identity, new LatencyRecorder(this.#unmeasured), selections);
    lane.home = home;
    this.#borrowed.add(lane);
    return lane;
  }

  /** Takes back a private lane. Nothing of its client may be left on it. */
  giveBack(lane: Lane): void {
    if (lane.closed) return;
    if (lane.retired) this.#shut(lane);
    else if (this.#idle.length < MAX_IDLE) this.#idle.push(lane);
    else lane.close();
  }

  /** Forgets a lane that was lost. */
  forget(lane: Lane): void {
    const name = this.#nameOf(lane.identity);
    if (this.#borrowed.delete(lane)) {
      const at = this.#idle.indexOf(lane);
      if (at !== -1) this.#idle.splice(at, 1);
      return;
    }
    if (this.#lanes.get(name) === lane) this.#lanes.delete(name);
    this.#relax(lane.identity.db);
  }

  close(): void {
    this.#closed = true;
    clearTimer(this.#sweeper);
    for (const lane of [...this.#lanes.values(), ...this.#borrowed]) lane.close();
  }

  async #open(name: string, identity: LaneIdentity): Promise<Lane> {
    const siblings = [...this.#lanes.values()].filter((lane) => lane.identity.db === identity.db);
    const locks = this.locks(identity.db);
    if (siblings.length > 0 || [...this.#opening.keys()].some((other) => other !== name && dbOf(other) === identity.db))
      locks.tracking = true;
    const selections = this.#selections;
    const connection = await this.#connect(identity);
    // What the other lanes had in flight before keys were tracked must be answered before this lane is used.
    await Promise.all(siblings.map((lane) => new Promise<void>((resolve) => lane.afterInFlight(resolve))));
    const lane = this.#laneOn(connection, identity, new LatencyRecorder(this.latencies), selections);
    this.#lanes.set(name, lane);
    return lane;
  }

  async #closeIdle(): Promise<void> {
    const inUse = this.#inUse();
    for (const lane of [...this.#lanes.values(), ...this.#idle]) {
      const isIdle = (): boolean => !lane.closed && lane.inFlight === 0 && monotonicMs() - lane.usedAt > IDLE_MS;
      if (isIdle() && !(inUse.has(lane) && (await this.#isLast(lane))) && isIdle()) this.#shut(lane);
    }
  }

  /**
   * Whether the server would refuse to open another such lane for its clients. They keep this one, as they would keep a
   * connection to the server itself.
   */
  async #isLast({ identity: { credentials } }: Lane): Promise<boolean> {
    if (credentials === undefined) return this.server.needsPassword;
    return this.server.verify(credentials).then(
      () => false,
      (problem) => problem instanceof HandshakeRefused,
    );
  }

  /** One lane is left: its order is the order of the database. */
  #relax(db: number): void {
    const left = [...this.#lanes.values()].filter((lane) => lane.identity.db === db);
    if (left.length <= 1 && ![...this.#opening.keys()].some((name) => dbOf(name) === db))
      this.locks(db).tracking = false;
  }
}

/**
 * The name under which lanes are shared. Passwords are distinguished by their digests, clients without a login by
 * whether the server demanded one when they came.
 */
export function nameOf({ db, protocol, credentials, login }: LaneIdentity, side: Side): string {
  const user =
    credentials !== undefined
      ? digestOf(credentials)
      : login?.states[side] === 'unauthenticated'
        ? 'unauthenticated'
        : '';
  return `${db}/${protocol}/${user}`;
}

const dbOf = (name: string): number => Number(name.slice(0, name.indexOf('/')));
