/** What one client said of itself, and what it has begun. */
import type { ClientSocket } from '../io/client-socket.js';
import { monotonicMs } from '../io/clock.js';
import type { CommandSpec } from '../command/table.js';
import type { Lane } from '../pipeline/lane.js';
import type { LaneIdentity } from '../pipeline/operation.js';
import type { Done, PlacedTransaction } from '../pipeline/transaction.js';
import type { Workload } from '../route/router.js';
import type { Side } from '../route/stage.js';
import type { Credentials } from '../upstream/dialer.js';
import { Login } from '../upstream/login.js';
import type { Kind } from './subscription-kinds.js';

/** MULTI was sent, and EXEC was not. */
export interface OpenTransaction {
  /** Bytes that it takes while it is queued. */
  readonly bytes: number;
  /** Takes the command at hand. */
  queue(spec: CommandSpec): void;
  /** Takes the reply of a command that the proxy has answered itself. */
  queueReply(reply: Buffer): void;
  /** Takes the command at hand, which is about counters that are rewritten. */
  queueRegional(spec: CommandSpec, workload: Workload): void;
  /** The command at hand, which is queued next, has keys of this slot of a cluster. */
  entersSlot(slot: number): void;
  /** EXEC is the command at hand. */
  exec(): void;
  /** EXEC will refuse. */
  spoil(): void;
}

/** Keys that the client watches. */
export interface Watching {
  readonly lane: Lane;
  readonly workload: Workload;
  /** Whether nobody can tell any more if a key has changed. */
  readonly broken: boolean;
  /** Passes the command at hand, which is WATCH of keys of these workloads, to the server. */
  pass(workloads: ReadonlySet<Workload>): void;
  /** Runs EXEC; whether it could begin: if not, it is looked at again. */
  exec(transaction: PlacedTransaction, db: number, done: Done): boolean;
  /** The lane, for a transaction that runs alone. */
  take(shared: Lane): Lane;
  giveBack(reply: Buffer): void;
  end(): void;
}

/** A command that blocks, or is about to. */
export interface BlockedCommand {
  /** Whether the server has it, so that its keys may change at any moment. */
  readonly isSent: boolean;
  /** Whether it has found nothing at once, and waits from then on. */
  readonly isWaiting: boolean;
  /** Among those who wait for a flip to end, from when it first came. */
  readonly place: number;
  /** Bytes of the command, which is kept. */
  readonly bytes: number;
  /** Whether a change of the workload's stage concerns it. */
  concerns(workload: Workload): boolean;
  /** Notes in the journal what it may take at any moment. */
  note(): void;
  /** Resolves when the server has it no more: to be sent again once commands are let through. */
  interrupt(): Promise<void>;
  /** CLIENT UNBLOCK. Whether there was something to unblock. */
  unblock(how: 'TIMEOUT' | 'ERROR'): Promise<boolean>;
  /** Nobody waits for its answer any more: the client has disconnected, or the command has failed. */
  abandon(): void;
}

/** What the client is subscribed to. */
export interface Subscribed {
  readonly total: number;
  /** Bytes that the names take, about. */
  readonly bytes: number;
  readonly links: Readonly<Record<Side, object | null>>;
  count(kind: Kind): number;
  /** Whether the command at hand was taken to the server that the client is subscribed at. */
  takes(spec: CommandSpec | undefined): boolean;
  /** The client has another protocol or user. */
  reidentified(): void;
  /** Ends all subscriptions without a word. */
  close(): void;
}

/** Which replies the client wants (CLIENT REPLY). */
export type WantedReplies = 'on' | 'off' | 'skip';

/** What lanes tell clients apart by. */
export type Identity = Partial<{ readonly db: number; readonly protocol: 2 | 3; readonly login: Login }>;

export class ClientState {
  /** When it connected, in ms of the monotonic clock. */
  readonly connectedAt = monotonicMs();
  #activeAt = this.connectedAt;
  #name = '';
  #login = new Login(undefined);
  #identity: LaneIdentity = { db: 0, protocol: 2, credentials: undefined, login: this.#login };
  #replies: WantedReplies = 'on';
  #transaction: OpenTransaction | null = null;
  #watch: Watching | null = null;
  #blocked: BlockedCommand | null = null;
  #subscriptions: Subscribed | null = null;
  #readOnly = false;
  #halfClosed = false;
  #closed = false;

  /** @param reidentified is called after a change of database, protocol or login */
  constructor(
    readonly id: number,
    readonly socket: ClientSocket,
    private readonly reidentified: () => void,
    /** Whether it came where the shard's proxy is a replica of its cluster. */
    readonly viaReplica = false,
  ) {}

  get db(): number {
    return this.#identity.db;
  }

  get protocol(): 2 | 3 {
    return this.#identity.protocol;
  }

  get name(): string {
    return this.#name;
  }

  get login(): Login {
    return this.#login;
  }

  get credentials(): Credentials | undefined {
    return this.#login.credentials;
  }

  /** The same object for as long as nothing in it changes. */
  get identity(): LaneIdentity {
    return this.#identity;
  }

  /** Whether a replica may answer its reads: what they return may be older. */
  get readsReplica(): boolean {
    return this.#readOnly && this.viaReplica;
  }

  get replies(): WantedReplies {
    return this.#replies;
  }

  get transaction(): OpenTransaction | null {
    return this.#transaction;
  }

  get watch(): Watching | null {
    return this.#watch;
  }

  get blocked(): BlockedCommand | null {
    return this.#blocked;
  }

  get subscriptions(): Subscribed | null {
    return this.#subscriptions;
  }

  /** When it last sent something or was served, in ms of the monotonic clock. */
  get activeAt(): number {
    return this.#activeAt;
  }

  /** Bytes of memory that what it has said of itself takes. */
  get bytes(): number {
    const queued = this.#transaction?.bytes ?? 0;
    return queued + this.#name.length + (this.#blocked?.bytes ?? 0) + (this.#subscriptions?.bytes ?? 0);
  }

  /** The client sends nothing more, and may still read. */
  get halfClosed(): boolean {
    return this.#halfClosed;
  }

  get closed(): boolean {
    return this.#closed;
  }

  get isSubscriber(): boolean {
    return this.#subscriptions !== null && this.#subscriptions.total > 0;
  }

  become({ db = this.db, protocol = this.protocol, login = this.#login }: Identity): void {
    this.#login = login;
    this.#identity = { db, protocol, credentials: login.credentials, login };
    this.reidentified();
    this.#subscriptions?.reidentified();
  }

  rename(name: string): void {
    this.#name = name;
  }

  /** READONLY, READWRITE. */
  readOnly(readOnly: boolean): void {
    this.#readOnly = readOnly;
  }

  wants(replies: WantedReplies): void {
    this.#replies = replies;
  }

  begin(transaction: OpenTransaction): void {
    this.#transaction = transaction;
  }

  /** EXEC or DISCARD ends WATCH with it. */
  endTransaction(): void {
    this.#transaction = null;
    this.#watch?.end();
  }

  watches(watch: Watching | null): void {
    this.#watch = watch;
  }

  blocks(command: BlockedCommand | null): void {
    this.#blocked = command;
  }

  subscribes(subscriptions: Subscribed | null): void {
    this.#subscriptions = subscriptions;
  }

  /** RESET: it is as if it had just connected. */
  reset(): void {
    this.endTransaction();
    this.#subscriptions?.close();
    this.#subscriptions = null;
    this.#name = '';
    this.#replies = 'on';
    this.#readOnly = false;
    this.become({ db: 0, protocol: 2, login: new Login(undefined) });
  }

  wasActive(now: number): void {
    this.#activeAt = now;
  }

  closedItsSide(): void {
    this.#halfClosed = true;
  }

  left(): void {
    this.#closed = true;
  }
}
