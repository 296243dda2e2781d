/**
 * A model of Redis 7.0.15 or of KeyDB 6.3.4: bytes in, bytes out, everything at once and nothing by itself but what
 * the surroundings' clock starts. See ../README.md for what it leaves out.
 */
import { RequestParser } from '../../../shadow-proxy/src/resp/request.js';
import { ProtocolError } from '../../../shadow-proxy/src/resp/frame-scanner.js';
import { ACL_COMMANDS, setUser } from './acl.js';
import { CLIENT_COMMANDS } from './clients.js';
import { CLUSTER_COMMANDS, Redirection, redirection, refusedToScript } from './cluster.js';
import { commandTable, keysOf } from './command-table.js';
import { HASH_COMMANDS } from './hashes.js';
import { infoCommands, SETTINGS, SETTINGS_OF_REDIS } from './info.js';
import { KEY_COMMANDS } from './keys.js';
import { LIST_COMMANDS } from './lists.js';
import { PUB_SUB_COMMANDS } from './pub-sub.js';
import { refusedByState } from './refusals.js';
import { apply, Feed, type Change } from './replication.js';
import { error, QUEUED, Refusal } from './reply.js';
import { KNOWN_SCRIPTS, SCRIPT_COMMANDS } from './scripts.js';
import { SET_COMMANDS } from './sets.js';
import { SORT_COMMANDS } from './sort.js';
import { SORTED_SET_COMMANDS } from './sorted-sets.js';
import { Client, State, type Command, type Database, type Engine, type Run, type Script } from './state.js';
import { STREAM_COMMANDS } from './streams.js';
import { STRING_COMMANDS } from './strings.js';
import type { Surroundings } from './surroundings.js';
import { TRANSACTION_COMMANDS } from './transactions.js';
import { User, type Ruled } from './users.js';
import type { Entry } from './values.js';

export interface ModelOptions {
  readonly port?: number;
  readonly databases?: number;
  readonly requirepass?: string;
  /** As in a configuration file. */
  readonly config?: Readonly<Record<string, string>>;
  /** Rules of further users, by name, as ACL SETUSER has them. */
  readonly users?: Readonly<Record<string, readonly string[]>>;
}

/** Commands that go on in a transaction instead of being queued. */
const NEVER_QUEUED = new Set(['exec', 'discard', 'multi', 'watch', 'quit', 'reset']);
/** Commands of RESP2 clients that listen to channels. */
const WHILE_SUBSCRIBED = new Set([
  ...['ping', 'subscribe', 'psubscribe', 'ssubscribe', 'unsubscribe', 'punsubscribe', 'sunsubscribe'],
  ...['quit', 'reset'],
]);

export class ModelServer extends State {
  /** Hears of each key that a write names: not all that changes a stream's groups counts as a change of the key. */
  onWrite: ((database: Database, key: string) => void) | null = null;
  readonly #options: ModelOptions;
  readonly #table: Map<string, Command>;
  readonly #feed = new Feed(this);
  #refuses: (client: Client, name: string, args: readonly string[]) => Refusal | null = () => null;
  #isDown = false;

  constructor(engine: Engine, surroundings: Surroundings, options: ModelOptions = {}) {
    super({ engine, surroundings, databases: options.databases ?? 16, port: options.port ?? 6379 });
    this.#options = options;
    const lacking =
      (name: string): Run =>
      () => {
        this.lacking.add(name);
        throw new Refusal(`ERR the model lacks ${name}`);
      };
    const runs: Record<string, Run> = {
      ...KEY_COMMANDS,
      ...STRING_COMMANDS,
      ...LIST_COMMANDS,
      ...HASH_COMMANDS,
      ...SET_COMMANDS,
      ...SORTED_SET_COMMANDS,
      ...SORT_COMMANDS,
      ...STREAM_COMMANDS,
      ...PUB_SUB_COMMANDS,
      ...SCRIPT_COMMANDS,
      ...TRANSACTION_COMMANDS,
      ...ACL_COMMANDS,
      ...CLIENT_COMMANDS,
      ...CLUSTER_COMMANDS,
      ...infoCommands(() => this.#table),
    };
    this.#table = commandTable(engine, (name) => {
      const run = runs[name] ?? runs[name.split('|', 1)[0]];
      return run ?? lacking(name);
    });
    for (const [text, script] of Object.entries(KNOWN_SCRIPTS)) this.addScript(text, script);
    this.#configure();
    this.#begin();
  }

  /** Lets the model run a script. */
  addScript(text: string, script: Script): void {
    this.knownScripts.set(text, script);
  }

  /** A connection from a client. `onBytes` gets replies, `onClose` hears that the server ends the connection. */
  connect(
    onBytes: (bytes: Buffer) => void,
    onClose: () => void,
    from: { readonly host: string; readonly port: number },
  ): ModelClient {
    this.readClock();
    const user = this.users.get('default')!;
    const client = new Client(
      this,
      this.newClientId(),
      `${from.host}:${from.port}`,
      user.on && user.nopass ? user : null,
    );
    this.clients.set(client.id, client);
    this.connections++;
    return new ModelClient(client, (args) => this.process(client, args), onBytes, onClose);
  }

  /** It has crashed, and answers nothing until `restart`. */
  get isDown(): boolean {
    return this.#isDown;
  }

  override crash(): void {
    this.#isDown = true;
    for (const client of [...this.clients.values()]) {
      // Replies that were not written yet are lost.
      client.out = '';
      client.close();
    }
  }

  /** The server stops and starts again: no connection survives; keys do where they were saved. */
  restart(keepData: boolean): void {
    for (const client of [...this.clients.values()]) client.close();
    this.#isDown = false;
    this.readClock();
    if (!keepData)
      for (const database of this.databases) {
        database.keys = new Map();
        database.expiring = new Set();
      }
    for (const database of this.databases) {
      database.blocked.clear();
      database.watchers.clear();
    }
    this.scripts.clear();
    this.expired = this.evicted = this.commands = this.connections = 0;
    this.calls.clear();
    this.replicaOf = null;
    Object.assign(this.troubles, { loading: false, busy: false, outOfMemory: false, cannotSave: false });
    this.#configure();
    this.#begin();
  }

  /** All keys that are there, by database. */
  keyspace(): Map<number, Map<string, Entry>> {
    this.readClock();
    const found = new Map<number, Map<string, Entry>>();
    for (const { id, keys } of this.databases) {
      const shown = [...keys].filter(([, { expireAt }]) => expireAt === -1 || !this.isPast(expireAt));
      if (shown.length > 0) found.set(id, new Map(shown));
    }
    return found;
  }

  /** Sets what refuses a command with an error of the caller's choice; it returns null for those that may run. */
  refuse(decide: (client: Client, name: string, args: readonly string[]) => string | null): void {
    this.#refuses = (client, name, args) => {
      const text = decide(client, name, args);
      return text === null ? null : new Refusal(text);
    };
  }

  /** Makes it a replica whose link is down, until `replicate`. Its keys stay. */
  becomeReplica(host: string, port: number): void {
    this.replicaOf = { host, port, up: false };
    for (const client of [...this.clients.values()]) {
      if (client.blocked === null) continue;
      client.closing = true;
      client.unblock(DEMOTED);
    }
    this.resumeClients();
  }

  /** What a replica gets from its primary: first everything, then each change. @returns what ends it */
  feed(listener: (change: Change) => void): () => void {
    return this.#feed.follow(listener);
  }

  /** Takes over what `feed` of the primary has given, in its order. */
  replicate(change: Change): void {
    if (this.replicaOf === null) return;
    this.readClock();
    this.replicaOf.up = true;
    this.replId = change.replId;
    apply(this, change);
    this.serveBlocked();
    this.resumeClients();
    this.flushChanges();
  }

  /** The link to the primary has ended. */
  loseLink(): void {
    if (this.replicaOf !== null) this.replicaOf.up = false;
  }

  /** Makes a replica a primary, with another replication ID. */
  promote(): void {
    if (this.replicaOf === null) return;
    this.replicaOf = null;
    this.replId = this.newId();
    this.startCycle();
  }

  override noteTouched(database: Database, key: string): void {
    if (this.#feed.isActive) this.#feed.touched(database, key);
    this.tracking.changed(key);
  }

  override noteChangedAll(_databases: readonly Database[]): void {
    if (this.#feed.isActive) this.#feed.changedAll();
  }

  override flushChanges(): void {
    if (this.#feed.isActive) this.#feed.flush();
    this.tracking.broadcast();
  }

  /** Removes the key as eviction does. */
  evict(database: number, key: string): boolean {
    const from = this.databases[database];
    if (!from.delete(key)) return false;
    this.evicted++;
    from.touch(key);
    this.flushChanges();
    return true;
  }

  process(client: Client, args: readonly string[]): void {
    this.readClock();
    client.lastSeen = this.now;
    this.commands++;
    const queues = client.multi !== null;
    let reply: string;
    try {
      reply = this.#answer(client, args, queues);
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      reply = error(refusal.text.replace(/[\r\n]/g, ' '));
    }
    client.reply(reply);
    if (client.replies === 'skip next') client.replies = 'skip';
    else if (client.replies === 'skip') client.replies = 'on';
    this.serveBlocked();
    this.flushChanges();
  }

  override call(client: Client, args: readonly string[], isScripted = false): string {
    const command = this.#find(args);
    try {
      if (command instanceof Refusal) throw command;
      const lacked = this.lackingRight(client, command, args);
      if (lacked !== null) throw refusedInScript(this.engine, lacked);
      const remote = isScripted ? refusedToScript(client, command, args) : null;
      if (remote !== null) throw remote;
      this.#noteKeys(client, command, args);
      return this.#run(command, client, args);
    } catch (refusal) {
      if (refusal instanceof Refusal) return error(refusal.text.replace(/[\r\n]/g, ' '));
      throw refusal;
    }
  }

  #answer(client: Client, args: readonly string[], queues: boolean): string {
    const command = this.#find(args);
    const refused = command instanceof Refusal ? command : this.#refusal(client, command, args);
    if (refused !== null) {
      if (queues) client.spoilt = true;
      if (!(command instanceof Refusal) && command.name === 'exec') {
        client.endTransaction();
        if (refused instanceof Redirection) throw refused;
        throw new Refusal(`EXECABORT Transaction discarded because of: ${refused.text}`);
      }
      throw refused;
    }
    const { name } = command as Command;
    client.lastCommand = name;
    if (queues && !NEVER_QUEUED.has(name)) {
      // A transaction that fails anyway keeps nothing more.
      if (!client.spoilt && !client.dirty) client.multi!.push({ command: command as Command, args });
      return QUEUED;
    }
    this.#noteKeys(client, command as Command, args);
    return this.#run(command as Command, client, args);
  }

  #run({ name, run }: Command, client: Client, args: readonly string[]): string {
    try {
      return run(client, args);
    } finally {
      // One that fails counts, too.
      this.calls.set(name, (this.calls.get(name) ?? 0) + 1);
    }
  }

  #noteKeys({ database }: Client, command: Command, args: readonly string[]): void {
    if (!command.isWrite || (!this.#feed.isActive && this.onWrite === null)) return;
    for (const { index } of keysOf(command, args)) {
      if (this.#feed.isActive) this.#feed.touched(database, args[index]);
      this.onWrite?.(database, args[index]);
    }
  }

  /** The command, or why there is none of that name and number of arguments. */
  #find(args: readonly string[]): Command | Refusal {
    const command = this.#table.get(args[0]) ?? this.#table.get(args[0].toLowerCase());
    if (command === undefined) return this.#unknown(args);
    const { arity, subcommands } = command;
    if (this.engine === 'redis' && subcommands !== null && args.length > 1) {
      const subcommand = subcommands.get(args[1].toLowerCase());
      if (subcommand === undefined)
        return new Refusal(`ERR unknown subcommand '${args[1].slice(0, 128)}'. Try ${args[0].toUpperCase()} HELP.`);
      return holds(subcommand.arity, args) ? subcommand : wrongArity(subcommand.name);
    }
    if (!holds(arity, args)) return wrongArity(command.name);
    if (subcommands !== null && args.length > 1) {
      const subcommand = subcommands.get(args[1].toLowerCase());
      // KeyDB refuses them only when it runs the command.
      if (subcommand === undefined || !holds(subcommand.arity, args))
        return {
          ...command,
          run: () => {
            throw unknownOfKeydb(args);
          },
        };
      return { ...subcommand, name: subcommand.name };
    }
    return command;
  }

  #unknown(args: readonly string[]): Refusal {
    let shown = '';
    const [open, close] = this.engine === 'redis' ? ["'", "' "] : ['`', '`, '];
    for (let i = 1; i < args.length && shown.length < 128; i++)
      shown += `${open}${args[i].slice(0, 128 - shown.length)}${close}`;
    const [name, quote] = this.engine === 'redis' ? [args[0].slice(0, 128), "'"] : [args[0], '`'];
    const quoted = this.engine === 'redis' ? `'${name}'` : `${quote}${name}${quote}`;
    return new Refusal(`ERR unknown command ${quoted}, with args beginning with: ${shown}`);
  }

  /** Why a client may not run the command now; null where it may. */
  #refusal(client: Client, command: Command, args: readonly string[]): Refusal | null {
    const { flags, name } = command;
    if (client.user === null && !flags.has('no_auth')) return NO_AUTH;
    if (client.user !== null) {
      const denied = this.#denied(client, command, args);
      if (denied !== null) return denied;
    }
    const refused =
      this.#refuses(client, command.name, args) ??
      redirection(client, command, args) ??
      refusedByState(client, command);
    if (refused !== null) return refused;
    if (client.subscribed > 0 && client.protocol === 2 && !WHILE_SUBSCRIBED.has(name))
      return new Refusal(
        this.engine === 'redis'
          ? `ERR Can't execute '${name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context`
          : `ERR Can't execute '${name}': only (P)SUBSCRIBE / (P)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context`,
      );
    if (client.multi !== null && flags.has('no_multi'))
      return new Refusal('ERR Command not allowed inside a transaction');
    return null;
  }

  override knows(name: string): boolean {
    return this.#table.has(name);
  }

  override lackingRight({ user }: Client, command: Command, args: readonly string[]): 'command' | 'keys' | null {
    if (user === null) return null;
    if (!user.allCommands && !command.flags.has('no_auth') && !user.mayRun(command as Command & Ruled))
      return 'command';
    if (user.allKeys) return null;
    const mayUse = keysOf(command, args).every(({ index, reads, writes }) => user.mayUse(args[index], reads, writes));
    return mayUse ? null : 'keys';
  }

  #denied(client: Client, command: Command, args: readonly string[]): Refusal | null {
    const lacks = this.lackingRight(client, command, args);
    if (lacks === null) return null;
    if (lacks === 'keys')
      return new Refusal('NOPERM this user has no permissions to access one of the keys used as arguments');
    return new Refusal(
      this.engine === 'redis'
        ? `NOPERM this user has no permissions to run the '${command.name}' command`
        : `NOPERM this user has no permissions to run the '${command.name.split('|', 1)[0]}' command or its subcommand`,
    );
  }

  /** Settings and users as a start reads them. */
  #configure(): void {
    const { requirepass = '', port = 6379, users = {}, config = {} } = this.#options;
    const defaults = { ...SETTINGS, ...(this.engine === 'redis' ? SETTINGS_OF_REDIS : {}) };
    this.config.clear();
    for (const [name, value] of Object.entries({ ...defaults, ...config })) this.config.set(name, value);
    this.config.set('databases', String(this.databases.length));
    this.config.set('requirepass', requirepass);
    this.config.set('port', String(port));
    this.config.set('address', `127.0.0.1:${port}`);
    this.users.clear();
    const first = new User('default');
    for (const rule of ['on', 'nopass', '~*', '&*', '+@all']) first.apply(rule);
    if (requirepass !== '') first.apply(`>${requirepass}`);
    this.users.set('default', first);
    for (const [name, rules] of Object.entries(users)) setUser(this, name, rules);
  }

  #begin(): void {
    this.startedAt = this.now;
    this.runId = this.newId();
    this.replId = this.newId();
  }
}

const holds = (arity: number, args: readonly string[]): boolean =>
  arity < 0 ? args.length >= -arity : args.length === arity;

const wrongArity = (name: string): Refusal => new Refusal(`ERR wrong number of arguments for '${name}' command`);

const unknownOfKeydb = (args: readonly string[]): Refusal =>
  new Refusal(
    `ERR Unknown subcommand or wrong number of arguments for '${args[1]}'. Try ${args[0].toUpperCase()} HELP.`,
  );

const DEMOTED = '-UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)\r\n';
const NO_AUTH = new Refusal('NOAUTH Authentication required.');

/** The arguments of the command that was parsed last. */
export function argumentsIn({ frame, argc, argStart, argEnd }: RequestParser): string[] {
  const args = new Array<string>(argc);
  for (let i = 0; i < argc; i++) args[i] = frame.toString('latin1', argStart[i], argEnd[i]);
  return args;
}

/** One client's connection, from the side of the network. */
export class ModelClient {
  readonly #parser = new RequestParser();
  /** Chunks that came while the client was blocked. */
  readonly #waiting: Buffer[] = [];
  #ended = false;
  #busy = false;

  constructor(
    readonly client: Client,
    private readonly process: (args: readonly string[]) => void,
    private readonly onBytes: (bytes: Buffer) => void,
    private readonly onClose: () => void,
  ) {
    client.flush = () => this.#flush();
    client.resume = () => this.#read();
    client.close = () => this.#close(true);
  }

  /** Bytes from the client. */
  receive(bytes: Buffer): void {
    if (this.client.closed) return;
    this.#waiting.push(bytes);
    this.#read();
    this.client.server.resumeClients();
  }

  /** The client has closed its side, or the connection has ended: a server treats both alike. */
  end(): void {
    this.#ended = true;
    this.#close(false);
  }

  reset(): void {
    this.end();
  }

  #read(): void {
    const { client } = this;
    if (this.#busy) return;
    this.#busy = true;
    try {
      while (client.blocked === null && !client.closed && !client.closing) {
        if (this.#parser.next()) this.process(argumentsIn(this.#parser));
        else if (this.#waiting.length > 0) this.#parser.feed(this.#waiting.shift()!);
        else break;
      }
    } catch (problem) {
      if (!(problem instanceof ProtocolError)) throw problem;
      client.push(problem.toReply().toString('latin1'));
      client.closing = true;
    } finally {
      this.#busy = false;
    }
    this.#flush();
    if (client.closing) this.#close(true);
  }

  #flush(): void {
    const { client } = this;
    if (client.out === '' || this.#ended) return;
    const bytes = Buffer.from(client.out, 'latin1');
    client.out = '';
    this.onBytes(bytes);
  }

  /** @param byServer whether the server ends the connection */
  #close(byServer: boolean): void {
    const { client } = this;
    if (client.closed) return;
    this.#flush();
    client.closed = true;
    client.unblock(null);
    client.endTransaction();
    client.server.clients.delete(client.id);
    client.server.tracking.stop(client);
    if (byServer) this.onClose();
  }
}

/** Of a command that a script calls for a user without the right. */
function refusedInScript(engine: Engine, lacked: 'command' | 'keys'): Refusal {
  const what =
    lacked === 'command'
      ? 'run this command or subcommand'
      : 'access at least one of the keys mentioned in the command arguments';
  const where = engine === 'redis' ? 'ERR' : '@user_script: 1:';
  return new Refusal(`${where} The user executing the script can't ${what}`);
}
