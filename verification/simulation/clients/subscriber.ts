/** A client that listens to channels, and connects again where it was cut off. */
import { WORLD } from '../world/events.js';
import type { End, Network } from '../world/network.js';
import type { Random } from '../world/random.js';
import { ReplyReader, type Reply } from './replies.js';

export interface SubscriberEvents {
  /** Its server sends all messages from now on. */
  subscribed(): void;
  message(channel: string, text: string): void;
  cutOff(): void;
  broken(problem: string): void;
}

export class Subscriber {
  #end: End | null = null;

  constructor(
    readonly name: string,
    private readonly network: Network,
    private readonly address: { readonly host: string; readonly port: number },
    private readonly random: Random,
    /** Commands that are sent at once, such as `PSUBSCRIBE ch*`. */
    private readonly commands: readonly string[],
    private readonly events: SubscriberEvents,
  ) {}

  start(): void {
    const reader = new ReplyReader();
    const { host, port } = this.address;
    const end = this.network.connect(WORLD, '10.0.1.1', { host, port }, () =>
      end.send(Buffer.from(`${this.commands.join('\r\n')}\r\n`)),
    );
    this.#end = end;
    end.received = (bytes) => {
      reader.feed(bytes);
      try {
        for (let reply = reader.next(); reply !== undefined; reply = reader.next()) this.#received(reply);
      } catch (problem) {
        this.events.broken((problem as Error).message);
      }
    };
    end.ended = () => {
      end.close();
      this.#cutOff();
    };
    end.closed = () => this.#cutOff();
  }

  leave(): void {
    if (this.#end === null || this.#end.isClosed) return;
    this.#end.close();
    this.#cutOff();
  }

  #received(reply: Reply): void {
    // A proxy that cannot subscribe now says so.
    if (typeof reply === 'string' && reply[0] === '-') return this.leave();
    if (!Array.isArray(reply)) return this.events.broken(`a subscriber got ${JSON.stringify(reply)}`);
    const words = (reply as readonly Reply[]).map((word) => (typeof word === 'string' ? word.slice(1) : ''));
    switch (words[0]) {
      case 'message':
        return this.events.message(words[1], words[2]);
      case 'pmessage':
        return this.events.message(words[2], words[3]);
      case 'subscribe':
      case 'psubscribe':
        return this.events.subscribed();
      case 'server':
        return;
      default:
        this.events.broken(`a subscriber got ${JSON.stringify(reply)}`);
    }
  }

  #cutOff(): void {
    this.events.cutOff();
    this.network.events.after(this.random.between(1, 50), WORLD, () => this.start());
  }
}
