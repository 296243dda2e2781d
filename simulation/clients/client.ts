/** A client of the proxy: it sends commands in pipelines, reads replies, and connects again where it was cut off. */
import type { End, Network } from '../world/network.js';
import { WORLD } from '../world/events.js';
import type { Random } from '../world/random.js';
import type { KeyName } from '../world/server-host.js';
import type { Command } from './draw.js';
import { ReplyReader, type Reply } from './replies.js';

export interface Operation {
  readonly id: number;
  readonly client: string;
  readonly args: readonly string[];
  readonly keys: readonly KeyName[];
  readonly invokedAt: number;
  /** Null while it waits, and where the connection ended before. */
  answeredAt: number | null;
  reply: Reply | undefined;
}

export interface ClientEvents {
  /** What the client sends now, in one write; empty: nothing more. */
  next(client: Client): readonly Command[];
  answered(operation: Operation): void;
  /** The connection ended: it is unknown whether the command was run. */
  lost(operation: Operation): void;
  /** A reply that no command waits for, or that is none. */
  broken(client: Client, problem: string): void;
}

export class Client {
  /** Commands that wait for their reply, the oldest first. */
  readonly waiting: Operation[] = [];
  /** Between MULTI and EXEC. */
  inTransaction = false;
  #end: End | null = null;
  #reader = new ReplyReader();
  #stopped = false;
  #connected = false;

  constructor(
    readonly name: string,
    private readonly network: Network,
    private readonly address: { readonly host: string; readonly port: number },
    private readonly random: Random,
    private readonly thinkMs: readonly [number, number],
    private readonly events: ClientEvents,
    private readonly newId: () => number,
  ) {}

  start(): void {
    this.#stopped = false;
    // It was stopped, or has started again, while it connects.
    if (this.#end?.isClosed === false) return;
    this.#reader = new ReplyReader();
    this.inTransaction = false;
    const end = this.network.connect(WORLD, '10.0.1.1', this.address, () => {
      this.#connected = true;
      this.#send();
    });
    this.#end = end;
    end.received = (bytes) => this.#received(bytes);
    end.ended = () => {
      end.close();
      this.#lost();
    };
    end.closed = () => this.#lost();
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

  #send(): void {
    if (this.#stopped) return this.#leave();
    const commands = this.events.next(this);
    if (commands.length === 0) return;
    let text = '';
    for (const { args, keys } of commands) {
      text += `*${args.length}\r\n`;
      for (const arg of args) text += `$${arg.length}\r\n${arg}\r\n`;
      const { now } = this.network.events;
      const operation = { id: this.newId(), client: this.name, args, keys, invokedAt: now };
      this.waiting.push({ ...operation, answeredAt: null, reply: undefined });
    }
    this.#end!.send(Buffer.from(text, 'latin1'));
  }

  #received(bytes: Buffer): void {
    this.#reader.feed(bytes);
    try {
      for (let reply = this.#reader.next(); reply !== undefined; reply = this.#reader.next()) {
        const operation = this.waiting.shift();
        if (operation === undefined) return this.events.broken(this, `a reply to no command: ${JSON.stringify(reply)}`);
        operation.reply = reply;
        operation.answeredAt = this.network.events.now;
        this.events.answered(operation);
      }
    } catch (problem) {
      return this.events.broken(this, (problem as Error).message);
    }
    if (this.waiting.length === 0)
      this.network.events.after(this.random.between(...this.thinkMs), WORLD, this.#again(this.#end!));
  }

  #again(end: End): () => void {
    return () => {
      if (!end.isClosed && this.waiting.length === 0) this.#send();
    };
  }

  #lost(): void {
    this.#connected = false;
    for (const operation of this.waiting.splice(0)) this.events.lost(operation);
    if (!this.#stopped)
      this.network.events.after(this.random.between(1, 20), WORLD, () => {
        if (!this.#stopped) this.start();
      });
  }
}
