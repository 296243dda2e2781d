/**
 * A client that reads all keys with SCAN, again and again: those that are there all the time must be among them. Where
 * one server has all keys, so must one that it has just set.
 */
import { WORLD } from '../world/events.js';
import type { End, Network } from '../world/network.js';
import type { Random } from '../world/random.js';
import { isError, ReplyReader, type Reply } from './replies.js';

/** Keys that nobody else uses. */
const NAMES = Array.from('abcdefghijkl', (letter) => `p${letter}`);
/** The mirror has them by then. */
const BEGINS_AFTER_MS = 80;

export class Scanner {
  /** Whole iterations. */
  iterations = 0;
  #end: End | null = null;
  #found = new Set<string>();
  /** Its keys are there. */
  #isSet = false;
  #stopped = false;
  /** Replies to SET of a new key, SCAN and DEL; null where none is looked for. */
  #atOnce: Reply[] | null = null;
  #news = 0;

  constructor(
    private readonly network: Network,
    private readonly address: { readonly host: string; readonly port: number },
    private readonly random: Random,
    private readonly broken: (problem: string) => void,
    /** One server answers for all keys, all the time. */
    private readonly isOneServer: boolean,
  ) {}

  start(): void {
    this.#stopped = false;
    if (this.#end?.isClosed === false) return;
    this.#atOnce = null;
    const reader = new ReplyReader();
    const end = this.network.connect(WORLD, '10.0.1.2', this.address, () => {
      if (this.#isSet) this.#begin();
      else this.#set();
    });
    this.#end = end;
    end.received = (bytes) => {
      reader.feed(bytes);
      for (let reply = reader.next(); reply !== undefined; reply = reader.next()) this.#received(reply);
    };
    end.ended = () => {
      end.close();
      this.#cutOff();
    };
    end.closed = () => this.#cutOff();
  }

  stop(): void {
    this.#stopped = true;
    this.#end?.close();
  }

  #received(reply: Reply): void {
    if (this.#atOnce !== null) return this.#receivedAtOnce(this.#atOnce, reply);
    if (!Array.isArray(reply)) return this.#setOrBegin(reply);
    const [cursor, keys] = reply as unknown as readonly [string, readonly string[]];
    // The models give no key twice in one iteration.
    if (keys.length > 0 && keys.every((key) => this.#found.has(key.slice(1))))
      return this.broken(`SCAN begins again, with ${keys.join(' ')}, and its cursor was not 0`);
    for (const key of keys) this.#found.add(key.slice(1));
    if (cursor !== '$0') return this.#ask(cursor.slice(1));
    const missing = NAMES.find((name) => !this.#found.has(name));
    if (missing !== undefined) return this.broken(`SCAN never gave ${missing}`);
    this.iterations++;
    if (this.isOneServer && this.random.chance(0.3)) this.#lookAtOnce();
    else this.#begin();
  }

  #lookAtOnce(): void {
    this.#atOnce = [];
    const name = `pn${++this.#news}x`;
    for (const args of [
      ['SET', name, 'x'],
      ['SCAN', '0', 'COUNT', '100000'],
      ['DEL', name],
    ])
      this.#send(args);
  }

  #receivedAtOnce(replies: Reply[], reply: Reply): void {
    replies.push(reply);
    if (replies.length < 3) return;
    this.#atOnce = null;
    const [set, scanned] = replies;
    const name = `$pn${this.#news}x`;
    if (set === '+OK' && Array.isArray(scanned) && !(scanned[1] as readonly string[]).includes(name))
      return this.broken(`SCAN did not give ${name.slice(1)}, which was there`);
    this.#begin();
  }

  /** Its keys are set once; where that is refused, again. */
  #setOrBegin(reply: Reply): void {
    if (isError(reply)) return this.#isSet ? this.#begin(1) : this.#set();
    this.#begin(this.#isSet ? 0 : BEGINS_AFTER_MS);
    this.#isSet = true;
  }

  #set(): void {
    this.#send(['MSET', ...NAMES.flatMap((name) => [name, 'x'])]);
  }

  #begin(afterMs = 0): void {
    this.#found = new Set();
    this.#ask('0', afterMs);
  }

  #ask(cursor: string, afterMs = 0): void {
    const end = this.#end!;
    this.network.events.after(afterMs + this.random.between(0, 2), WORLD, () => {
      if (end === this.#end && !end.isClosed) this.#send(['SCAN', cursor, 'COUNT', '4']);
    });
  }

  #send(args: readonly string[]): void {
    this.#end!.send(Buffer.from(`${args.join(' ')}\r\n`));
  }

  #cutOff(): void {
    if (this.#stopped) return;
    this.network.events.after(this.random.between(1, 20), WORLD, () => {
      if (!this.#stopped) this.start();
    });
  }
}
