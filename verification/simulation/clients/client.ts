/** A client of the proxy: it sends commands in pipelines, reads replies, and connects again where it was cut off. */
import type { End, Network } from '../world/network.js';
import { WORLD } from '../world/events.js';
import type { Random } from '../world/random.js';
import type { KeyName } from '../world/server-host.js';
import type { Command } from './draw.js';
import { isError, ReplyReader, type Reply } from './replies.js';

export interface Operation {
  readonly id: number;
  readonly client: string;
  readonly args: readonly string[];
  readonly keys: readonly KeyName[];
  readonly invokedAt: number;
  /** Null while it waits, and where the connection ended before. */
  answeredAt: number | null;
  reply: Reply | undefined;
  /** When its client closed the connection, where it did. */
  leftAt?: number;
  readonly command: Command;
}

/** How a client begins a connection. */
export interface Session {
  readonly protocol: 2 | 3;
  readonly database: number;
  readonly user: { readonly name: string; readonly password: string } | null;
}

export interface ClientEvents {
  /** What the client sends now, in one write; empty: nothing more. */
  next(client: Client): readonly Command[];
  /** What the client sends at the beginning of a connection. */
  sends(client: Client, commands: readonly Command[]): void;
  answered(operation: Operation): void;
  /** The connection ended: it is unknown whether the command was run. */
  lost(operation: Operation): void;
  /** The other side has ended the connection, or does not accept it. */
  cutOff(client: Client): void;
  /** A reply that no command waits for, or that is none. */
  broken(client: Client, problem: string): void;
}

export class Client {
  /** Commands that wait for their reply, the oldest first. */
  readonly waiting: Operation[] = [];
  database = 0;
  /** How many it has begun. */
  connections = 0;
  #end: End | null = null;
  #reader = new ReplyReader();
  #stopped = false;
  #connected = false;
  /** Attempts to connect since the last that succeeded. */
  #failures = 0;
  /** It has closed its side of the connection. */
  #finished = false;

  constructor(
    readonly name: string,
    private readonly network: Network,
    private readonly address: { readonly host: string; readonly port: number },
    private readonly random: Random,
    private readonly thinkMs: readonly [number, number],
    readonly session: Session,
    private readonly events: ClientEvents,
    private readonly newId: () => number,
  ) {}

  start(): void {
    this.#stopped = false;
    // It was stopped, or has started again, while it connects.
    if (this.#end?.isClosed === false) return;
    this.#reader = new ReplyReader();
    this.connections++;
    this.database = 0;
    this.#finished = false;
    const { host, port } = this.address;
    const end = this.network.connect(WORLD, '10.0.1.1', { host, port }, () => {
      this.#connected = true;
      this.#failures = 0;
      this.#begin();
    });
    this.#end = end;
    const ended = (): void => {
      end.close();
      if (!this.#stopped) this.events.cutOff(this);
      this.#lost();
    };
    end.received = (bytes) => this.#received(bytes);
    end.ended = ended;
    end.closed = ended;
  }

  /** Sends nothing more; what waits may still be answered. */
  stop(): void {
    this.#stopped = true;
    if (this.waiting.length === 0) this.#leave();
  }

  /** Closes its connection, whatever waits. */
  leave(reset: boolean): void {
    if (this.#end === null || this.#end.isClosed) return;
    this.#end.close(reset);
    for (const operation of this.waiting) operation.leftAt = this.network.events.now;
    this.#lost();
  }

  /** Reads nothing for so long. */
  readLate(ms: number): void {
    const end = this.#end;
    if (end === null) return;
    end.pause();
    this.network.events.after(ms, WORLD, () => end.resume());
  }

  /** Sends what there is by now, unless it waits for replies. */
  go(): void {
    if (this.#connected && !this.#stopped && this.waiting.length === 0) this.#send();
  }

  #leave(): void {
    if (this.#connected) this.#end?.close();
  }

  /** Logs in and selects its database; a client without either sends commands at once. */
  #begin(): void {
    const { protocol, user, database } = this.session;
    const commands: Command[] = [];
    const login = user === null ? [] : ['AUTH', user.name, user.password];
    if (protocol === 3 || user !== null) commands.push({ args: ['HELLO', String(protocol), ...login], keys: [] });
    if (database !== 0) commands.push({ args: ['SELECT', String(database)], keys: [], selects: database });
    if (commands.length === 0 || this.#stopped) return this.#send();
    this.events.sends(this, commands);
    this.#write(commands);
  }

  #send(): void {
    if (this.#stopped) return this.#leave();
    if (this.#finished) return;
    const commands = this.events.next(this);
    if (commands.length > 0) this.#write(commands);
  }

  #write(commands: readonly Command[]): void {
    const end = this.#end!;
    let text = '';
    for (const command of commands) {
      const { args, keys } = command;
      text += `*${args.length}\r\n`;
      for (const arg of args) text += `$${arg.length}\r\n${arg}\r\n`;
      const { now } = this.network.events;
      const [id, client] = [this.newId(), this.name];
      this.waiting.push({ id, client, args, keys, invokedAt: now, answeredAt: null, reply: undefined, command });
    }
    end.send(Buffer.from(text, 'latin1'));
    for (const { unreadMs } of commands) if (unreadMs !== undefined) this.readLate(unreadMs);
    for (const { patienceMs } of commands) if (patienceMs !== undefined) this.#leaveAfter(end, patienceMs);
    if (commands[commands.length - 1].finishes !== true) return;
    this.#finished = true;
    end.finish();
  }

  /** Leaves where it still waits for a command that it has no more patience with. */
  #leaveAfter(end: End, ms: number): void {
    this.network.events.after(ms, WORLD, () => {
      if (end === this.#end && this.waiting.some(({ command }) => command.patienceMs === ms)) this.leave(false);
    });
  }

  #received(bytes: Buffer): void {
    this.#reader.feed(bytes);
    try {
      for (let reply = this.#reader.next(); reply !== undefined; reply = this.#reader.next()) {
        if (this.#reader.isPush) continue;
        // CLIENT REPLY itself may have been refused: nobody knows which commands get replies.
        if (this.waiting[0]?.command.silent === true && isError(reply)) return this.leave(false);
        // Replies of one connection come in order: what gets none has run.
        while (this.waiting[0]?.command.silent === true) this.events.lost(this.waiting.shift()!);
        const operation = this.waiting.shift();
        if (operation === undefined) return this.events.broken(this, `a reply to no command: ${JSON.stringify(reply)}`);
        operation.reply = reply;
        operation.answeredAt = this.network.events.now;
        const { selects } = operation.command;
        if (selects !== undefined && (reply === '+OK' || reply === '+RESET')) this.database = selects;
        this.events.answered(operation);
        // Without its database or its user, the client's commands would be others.
        if ((selects !== undefined || operation.args[0] === 'HELLO') && isError(reply)) return this.leave(false);
      }
    } catch (problem) {
      return this.events.broken(this, (problem as Error).message);
    }
    if (this.waiting.length === 0)
      this.network.events.after(this.random.between(...this.thinkMs), WORLD, this.#sendIfIdle(this.#end!));
  }

  #sendIfIdle(end: End): () => void {
    return () => {
      if (!end.isClosed && this.waiting.length === 0) this.#send();
    };
  }

  #lost(): void {
    this.#connected = false;
    for (const operation of this.waiting.splice(0)) this.events.lost(operation);
    if (this.#stopped) return;
    // As clients do, the longer the more attempts have failed.
    const ms = this.random.between(1, 20 * 2 ** Math.min(this.#failures++, 4));
    this.network.events.after(ms, WORLD, () => {
      if (!this.#stopped) this.start();
    });
  }
}
