/**
 * The state of one client's connection: database, user, protocol, and what is open (a transaction, a blocking command,
 * subscriptions).
 */
import { isIP } from 'node:net';
import type { ClientSocket } from '../io/client-socket.js';
import { monotonicMs } from '../io/clock.js';
import type { CommandSpec } from '../command/table.js';
import type { Lane } from '../pipeline/lane.js';
import type { LaneIdentity } from '../pipeline/operation.js';
import type { ExecCallback, PlacedTransaction } from '../pipeline/transaction.js';
import type { Workload } from '../route/router.js';
import type { Side } from '../route/stage.js';
import type { Credentials } from '../upstream/dialer.js';
import { Login } from '../upstream/login.js';
import type { Kind } from './subscription-kinds.js';

/** A transaction between MULTI and EXEC. */
export interface OpenTransaction {
  /** Bytes that the queued commands take. */
  readonly bytes: number;
  /** How many commands are queued. */
  readonly size: number;
  /** Queues the command at hand. */
  queue(spec: CommandSpec): void;
  /** Queues the reply to a command that the proxy answers itself. */
  queueReply(reply: Buffer): void;
  /** Queues the command at hand, which uses counters that the proxy rewrites. */
  queueRegional(spec: CommandSpec, workload: Workload): void;
  /** The keys of the command at hand are in this slot of a cluster. */
  entersSlot(slot: number): void;
  /** Answers EXEC, the command at hand. */
  exec(): void;
  /** Makes EXEC answer EXECABORT. */
  spoil(): void;
}

/** Keys that the client watches. */
export interface Watching {
  readonly lane: Lane;
  readonly workload: Workload;
  /** Whether the proxy does not know any more if a watched key has changed. */
  readonly broken: boolean;
  /** Sends the command at hand, a WATCH of keys of these workloads, to the server. */
  pass(workloads: ReadonlySet<Workload>): void;
  /** Runs EXEC. @returns whether it could begin; if not, EXEC is dispatched again */
  exec(transaction: PlacedTransaction, db: number, sent: () => void, done: ExecCallback): boolean;
  /** Gives the lane of the WATCH to a transaction that runs alone. */
  take(shared: Lane): Lane;
  giveBack(reply: Buffer): void;
  end(): void;
}

/** A command that blocks, or is about to block. */
export interface BlockedCommand {
  /** Whether the server has the command, so that its keys may change at any moment. */
  readonly isSent: boolean;
  /** Whether the first attempt found nothing, so that the command waits. */
  readonly isWaiting: boolean;
  /**
   * The command's place among those that wait for a stage change to end. It is given when the command first arrives.
   */
  readonly place: number;
  /** Bytes of the stored command. */
  readonly bytes: number;
  /** Whether a stage change of the workload concerns the command. */
  concerns(workload: Workload): boolean;
  /** Notes in the journal the keys that the command may change at any moment. */
  note(): void;
  /**
   * Takes the command back from the server, so that it can be sent again later. Resolves when the server has dropped
   * it.
   */
  interrupt(): Promise<void>;
  /** CLIENT UNBLOCK. @returns whether the command was blocked */
  unblock(how: 'TIMEOUT' | 'ERROR'): Promise<boolean>;
  /** Drops the command: its client has disconnected, or it has failed. */
  abandon(): void;
}

/** What the client is subscribed to. */
export interface Subscribed {
  readonly total: number;
  /** Bytes that the names take, about. */
  readonly bytes: number;
  readonly links: Readonly<Record<Side, object | null>>;
  count(kind: Kind): number;
  /** Sends the command at hand on the client's subscription, if it belongs there. @returns whether it was sent */
  takes(spec: CommandSpec | undefined): boolean;
  /** The client's protocol or user has changed. */
  reidentified(): void;
  /** Ends all subscriptions without confirming it to the client. */
  close(): void;
}

/** Which replies the client wants (CLIENT REPLY). */
export type WantedReplies = 'on' | 'off' | 'skip';

/** The properties by which lanes are chosen for a client. */
export type Identity = Partial<{ readonly db: number; readonly protocol: 2 | 3; readonly login: Login }>;

export class ClientState {
  /** When the client connected, in ms of the monotonic clock. */
  readonly connectedAt = monotonicMs();
  #activeAt = this.connectedAt;
  #name = '';
  /** The client's last command that the proxy knows; null before the first. */
  lastCommand: CommandSpec | null = null;
  /** What the client has said of its library (CLIENT SETINFO). */
  readonly library = { name: '', version: '' };
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
    /** Whether the client connected to the address at which the proxy is a replica of the cluster. */
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

  /** The properties by which lanes are chosen. The same object until one of them changes. */
  get identity(): LaneIdentity {
    return this.#identity;
  }

  /** Whether replicas may answer the client's reads. They may answer with older values. */
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

  /** When the client last sent something or was last served, in ms of the monotonic clock. */
  get activeAt(): number {
    return this.#activeAt;
  }

  /** Bytes of memory that the client's names and settings take. */
  get bytes(): number {
    const queued = this.#transaction?.bytes ?? 0;
    const { name, version } = this.library;
    return (
      queued +
      this.#name.length +
      name.length +
      version.length +
      (this.#blocked?.bytes ?? 0) +
      (this.#subscriptions?.bytes ?? 0)
    );
  }

  /** The client's host, or the path of its Unix socket. Without a text of its own for an IPv4 address over IPv6. */
  get host(): string {
    return hostIn(this.socket.remoteAddress);
  }

  /** `host:port` as CLIENT LIST shows it: of the client, and of the listener that it connected to. */
  get address(): string {
    return addressOf(this.socket.remoteAddress, this.socket.remotePort);
  }

  get localAddress(): string {
    return addressOf(this.socket.localAddress, this.socket.localPort);
  }

  /** Whether the client has closed its sending side. It may still read replies. */
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

  /** Whether the client has sent READONLY. */
  get isReadOnly(): boolean {
    return this.#readOnly;
  }

  /** READONLY or READWRITE. */
  readOnly(readOnly: boolean): void {
    this.#readOnly = readOnly;
  }

  wants(replies: WantedReplies): void {
    this.#replies = replies;
  }

  begin(transaction: OpenTransaction): void {
    this.#transaction = transaction;
  }

  /** Ends the transaction, and with it WATCH, as EXEC and DISCARD do. */
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

  /** RESET: the client's state is as if it had just connected. */
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

/** A socket that is closed has no address. */
const UNKNOWN = '?';

/** Where a listener takes IPv4 and IPv6, the system shows an IPv4 address as `::ffff:10.1.2.3`. */
const hostIn = (address: string | undefined): string =>
  address?.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/, '') ?? UNKNOWN;

function addressOf(address: string | undefined, port: number | undefined): string {
  const host = hostIn(address);
  return `${isIP(host) === 6 ? `[${host}]` : host}:${port ?? 0}`;
}
