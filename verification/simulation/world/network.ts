/**
 * A network of hosts. A connection has two ends; what an end sends arrives at the other in order, after a delay, and
 * perhaps in pieces. It can be cut at any byte, or be silent in one direction.
 */
import { WORLD, type Events, type Owner } from './events.js';
import type { Random } from './random.js';
import { systemError } from './system-error.js';

export interface NetworkOptions {
  /** One-way delay of a connection, in milliseconds: each draws its own. */
  readonly delayMs: readonly [number, number];
  /** Share of segments that arrive late, and by how much at most. */
  readonly lateShare: number;
  readonly lateMs: number;
  /** Share of arrivals that come in two pieces. */
  readonly splitShare: number;
}

/** Bytes that an end may have on its way before `send` returns false. */
const WINDOW = 256 * 1024;

export interface Address {
  readonly host: string;
  readonly port: number;
}

interface Listener extends Address {
  readonly owner: Owner;
  accept(end: End): void;
}

export class Network {
  /** Each connection that is not closed at both ends. */
  readonly connections = new Set<Connection>();
  /** Pairs of hosts, of which the first cannot connect to the second. */
  readonly blocked = new Set<string>();
  /** Where new connections lead instead, by the address that is connected to. */
  readonly #moved = new Map<string, Address>();
  readonly #listeners = new Map<string, Listener>();
  #nextPort = 40_000;

  constructor(
    readonly events: Events,
    readonly random: Random,
    public options: NetworkOptions,
  ) {}

  /** @returns the port @throws {Error} code `EADDRINUSE` */
  listen(listener: Listener): number {
    const { owner, accept, host } = listener;
    const port = listener.port === 0 ? this.#nextPort++ : listener.port;
    const name = nameOf({ host, port });
    if (this.#listeners.get(name)?.owner.alive === true) throw failure('listen', 'EADDRINUSE', { host, port });
    this.#listeners.set(name, { host, port, owner, accept: (end) => accept.call(listener, end) });
    return port;
  }

  unlisten(address: Address): void {
    this.#listeners.delete(nameOf(address));
  }

  /** From now on, new connections to the address lead to the other one; null: to itself again. */
  lead(address: Address, to: Address | null): void {
    if (to === null) this.#moved.delete(nameOf(address));
    else this.#moved.set(nameOf(address), to);
  }

  /** Addresses lead to themselves. */
  settle(): void {
    this.#moved.clear();
  }

  /** Whether something that was sent does not arrive for a while. */
  get isSilent(): boolean {
    return [...this.connections].some(({ near, far }) => near.isSilent || far.isSilent);
  }

  /** `connected` is called when the other host has accepted, `closed` of the end where it refuses. */
  connect(owner: Owner, from: string, address: Address, connected: () => void): End {
    const to = this.#moved.get(nameOf(address)) ?? address;
    const connection = new Connection(this, owner, { host: from, port: this.#nextPort++ }, to);
    const { near, far } = connection;
    this.events.after(connection.delayMs, WORLD, () => {
      const listener = this.#listeners.get(nameOf(to));
      const accepts = listener?.owner.alive === true && !this.blocked.has(`${from} ${to.host}`);
      this.events.after(connection.delayMs, owner, () => {
        if (near.isClosed) return;
        if (!accepts) return near.fail(failure('connect', 'ECONNREFUSED', to));
        connected();
      });
      if (!accepts || near.isClosed || !owner.alive) return;
      far.owner = listener.owner;
      this.connections.add(connection);
      this.events.after(0, listener.owner, () => {
        if (!far.isClosed) listener.accept(far);
      });
    });
    return near;
  }

  /** Ends all connections of a process that is no more, as its system does. */
  abandon(owner: Owner): void {
    for (const { near, far } of this.connections)
      for (const end of [near, far]) if (end.owner === owner) end.close(this.random.chance(0.5));
    for (const [name, listener] of this.#listeners) if (listener.owner === owner) this.#listeners.delete(name);
  }
}

export class Connection {
  readonly near: End;
  readonly far: End;
  readonly delayMs: number;
  /** What is sent from now on is lost. */
  isCut = false;

  constructor(
    readonly network: Network,
    owner: Owner,
    readonly from: Address,
    readonly to: Address,
  ) {
    this.delayMs = network.random.between(...network.options.delayMs);
    this.near = new End(this, owner, from, to);
    this.far = new End(this, WORLD, to, from);
  }

  /** Loses what is on its way, but for some bytes, and resets both ends. */
  cut(): void {
    const { events, random } = this.network;
    this.isCut = true;
    for (const end of [this.near, this.far]) {
      end.loseBehind(random.chance(0.5) ? 0 : random.share());
      events.after(random.between(0, 5), WORLD, () => end.arrived(RESET));
    }
  }
}

/** What arrives instead of bytes. */
const FIN = null;
const RESET = 'reset';
type Segment = Buffer | typeof FIN | typeof RESET;

export class End {
  /** Bytes that were sent from here, and those that have arrived here. */
  bytesSent = 0;
  bytesArrived = 0;
  /** Its user sets these. */
  received: (bytes: Buffer) => void = () => undefined;
  ended: () => void = () => undefined;
  closed: (problem: NodeJS.ErrnoException | null) => void = () => undefined;
  /** Called when less than a window is on its way, after `send` returned false. */
  drained: () => void = () => undefined;
  isClosed = false;
  /** What was sent to this end and has not been read. */
  readonly #arriving: { at: number; segment: Segment }[] = [];
  #unread = 0;
  #lastAt = 0;
  /** Until when nothing arrives here. */
  #silentUntil = 0;
  #paused = false;
  #scheduledAt = Infinity;
  #hasFinished = false;
  #hasEnded = false;
  #full = false;

  constructor(
    readonly connection: Connection,
    public owner: Owner,
    readonly local: Address,
    readonly remote: Address,
  ) {}

  get other(): End {
    return this.connection.near === this ? this.connection.far : this.connection.near;
  }

  /** @returns false where so much is on its way that the sender should wait for `drained` */
  send(bytes: Buffer): boolean {
    if (this.isClosed || this.#hasFinished) return true;
    const { other } = this;
    this.bytesSent += bytes.length;
    other.#add(bytes);
    this.#full = other.#unread >= WINDOW;
    return !this.#full;
  }

  /** Sends the end: nothing more comes from here. */
  finish(): void {
    if (this.isClosed || this.#hasFinished) return;
    this.#hasFinished = true;
    this.other.#add(FIN);
    if (this.#hasEnded) this.#end(null);
  }

  /** Neither sends nor reads any more. */
  close(reset = false): void {
    if (this.isClosed) return;
    if (reset || this.#unread > 0) this.other.#add(RESET);
    else if (!this.#hasFinished) this.other.#add(FIN);
    this.isClosed = true;
    this.#forget();
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#schedule();
  }

  get isSilent(): boolean {
    return !this.isClosed && this.#silentUntil > this.connection.network.events.now;
  }

  /** Nothing arrives here for so long; what was sent comes afterwards. */
  silence(ms: number): void {
    this.#silentUntil = Math.max(this.#silentUntil, this.connection.network.events.now + ms);
  }

  fail(problem: NodeJS.ErrnoException): void {
    this.#end(problem);
  }

  /** What was sent to this end is lost, but for the first `share` of it. */
  loseBehind(share: number): void {
    let kept = Math.floor(this.#unread * share);
    for (const each of this.#arriving) {
      if (!Buffer.isBuffer(each.segment)) continue;
      const length = Math.min(kept, each.segment.length);
      kept -= length;
      this.#unread -= each.segment.length - length;
      each.segment = each.segment.subarray(0, length);
    }
  }

  /** Takes what arrives outside the order of what was sent. */
  arrived(segment: typeof RESET): void {
    if (this.isClosed) return;
    this.#arriving.push({ at: 0, segment });
    this.#paused = false;
    this.#silentUntil = 0;
    for (const each of this.#arriving) each.at = 0;
    this.#schedule();
  }

  #add(segment: Segment): void {
    const { network, delayMs } = this.connection;
    const { events, random, options } = network;
    if (this.connection.isCut) return;
    if (this.isClosed) {
      if (Buffer.isBuffer(segment)) events.after(2 * delayMs, WORLD, () => this.other.arrived(RESET));
      return;
    }
    let at = events.now + delayMs * (0.75 + random.share() / 2);
    if (random.chance(options.lateShare)) at += random.between(0, options.lateMs);
    this.#lastAt = Math.max(this.#lastAt, at);
    this.#arriving.push({ at: this.#lastAt, segment });
    if (Buffer.isBuffer(segment)) this.#unread += segment.length;
    this.#schedule();
  }

  #schedule(): void {
    const first = this.#arriving[0];
    if (first === undefined || (this.#paused && Buffer.isBuffer(first.segment))) return;
    const { events } = this.connection.network;
    const at = Math.max(first.at, this.#silentUntil, events.now);
    if (this.#scheduledAt <= at) return;
    this.#scheduledAt = at;
    events.after(at - events.now, this.owner, this.#deliver);
  }

  readonly #deliver = (): void => {
    const { events, random, options } = this.connection.network;
    this.#scheduledAt = Infinity;
    if (this.#silentUntil <= events.now) this.#deliverOne(random.chance(options.splitShare) ? random.share() : 1);
    this.#schedule();
  };

  /** Hands over what has arrived up to now, as one piece; of bytes, `share` of them. */
  #deliverOne(share: number): void {
    const { events } = this.connection.network;
    const arriving = this.#arriving;
    let count = 0;
    let length = 0;
    while (count < arriving.length && arriving[count].at <= events.now) {
      const { segment } = arriving[count];
      if (!Buffer.isBuffer(segment)) break;
      length += segment.length;
      count++;
    }
    if (count === 0) {
      if (arriving.length > 0 && arriving[0].at <= events.now) this.#deliverMark(arriving.shift()!.segment);
      return;
    }
    if (this.#paused) return;
    const taken = arriving.splice(0, count).map(({ segment }) => segment as Buffer);
    let bytes = count === 1 ? taken[0] : Buffer.concat(taken, length);
    const now = Math.min(length, Math.max(1, Math.ceil(length * share)));
    if (now < length) {
      arriving.unshift({ at: events.now + 0.01, segment: bytes.subarray(now) });
      bytes = bytes.subarray(0, now);
    }
    this.#unread -= bytes.length;
    this.bytesArrived += bytes.length;
    if (this.other.#full && this.#unread < WINDOW / 2) {
      const { other } = this;
      other.#full = false;
      events.after(0, other.owner, () => other.isClosed || other.drained());
    }
    if (bytes.length === 0) return;
    events.note(bytes.length ^ (bytes[0] << 16) ^ (bytes[bytes.length - 1] << 24));
    this.received(bytes);
  }

  #deliverMark(mark: Segment): void {
    if (this.isClosed) return;
    if (mark === RESET) return this.#end(failure('read', 'ECONNRESET', this.remote));
    this.#hasEnded = true;
    this.ended();
    if (this.#hasFinished) this.#end(null);
  }

  #end(problem: NodeJS.ErrnoException | null): void {
    if (this.isClosed) return;
    this.isClosed = true;
    const { closed } = this;
    this.#forget();
    closed(problem);
  }

  #forget(): void {
    this.#arriving.length = 0;
    // Who still knows the end does not keep its user's memory.
    this.received = this.ended = this.closed = this.drained = () => undefined;
    if (this.other.isClosed) this.connection.network.connections.delete(this.connection);
  }
}

const nameOf = ({ host, port }: Address): string => `${host}:${port}`;

/** An error as Node makes it from the system's. */
export function failure(call: string, code: string, { host, port }: Address): NodeJS.ErrnoException {
  const message = call === 'read' ? `read ${code}` : `${call} ${code} ${host}:${port}`;
  return Object.assign(systemError(message), { code, syscall: call, address: host, port });
}
