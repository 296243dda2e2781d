/** What a client of the Sentinel has said of itself, and what it is subscribed to. */
import { compileGlob, type Matcher } from '../route/glob.js';
import { array, bulk, integer } from '../resp/encode.js';

const KINDS = { channel: 'subscribe', pattern: 'psubscribe' } as const;
export type Kind = keyof typeof KINDS;

export class SentinelClient {
  protocol: 2 | 3 = 2;
  name = '';
  readonly #channels = new Set<string>();
  /** By the pattern, in the order of subscription. */
  readonly #patterns = new Map<string, Matcher>();

  isLoggedIn = false;

  constructor(readonly id: number) {}

  get subscriptions(): number {
    return this.#channels.size + this.#patterns.size;
  }

  /** Names are in Latin-1: one character for each byte. @returns the replies */
  subscribe(kind: Kind, names: readonly string[]): Buffer {
    return Buffer.concat(
      names.map((name) => {
        if (kind === 'channel') this.#channels.add(name);
        else this.#patterns.set(name, this.#patterns.get(name) ?? compileGlob(name));
        return this.#changed(KINDS[kind], name);
      }),
    );
  }

  /** Without names: from all of that kind. @returns the replies */
  unsubscribe(kind: Kind, names: readonly string[]): Buffer {
    const from = kind === 'channel' ? this.#channels : this.#patterns;
    const left = names.length > 0 ? names : [...from.keys()];
    const verb = `${kind === 'pattern' ? 'p' : ''}unsubscribe`;
    if (left.length === 0) return this.#changed(verb, null);
    return Buffer.concat(
      left.map((name) => {
        from.delete(name);
        return this.#changed(verb, name);
      }),
    );
  }

  /** The messages that the client gets of an event; empty if it is not subscribed. */
  messages(channel: string, message: string): Buffer {
    const [name, content] = [Buffer.from(channel), bulk(message)];
    const found: Buffer[] = [];
    if (this.#channels.has(channel)) found.push(this.push([bulk('message'), bulk(name), content]));
    for (const [pattern, matches] of this.#patterns)
      if (matches(name, 0, name.length))
        found.push(this.push([bulk('pmessage'), bulk(Buffer.from(pattern, 'latin1')), bulk(name), content]));
    return Buffer.concat(found);
  }

  /** An array that the client did not ask for. */
  push(items: readonly Buffer[]): Buffer {
    const frame = array(items);
    if (this.protocol === 3) frame[0] = PUSH;
    return frame;
  }

  #changed(verb: string, name: string | null): Buffer {
    const changed = bulk(name === null ? null : Buffer.from(name, 'latin1'), this.protocol);
    return this.push([bulk(verb), changed, integer(this.subscriptions)]);
  }
}

const PUSH = '>'.charCodeAt(0);
