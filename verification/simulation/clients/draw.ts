/** What random commands are made of: keys of a kind, values that are used once, numbers. */
import type { Random } from '../world/random.js';
import { keyName, type KeyName } from '../world/key-name.js';
import type { Reply } from './replies.js';

export interface Command {
  readonly args: readonly string[];
  /** Keys that it names. */
  readonly keys: readonly KeyName[];
  /** It gets no reply. */
  readonly silent?: boolean;
  /** It is queued by a MULTI before it. */
  readonly inTransaction?: boolean;
  /** Of EXEC: what it runs. */
  readonly queued?: readonly (readonly string[])[];
  /** Of EXEC: the WATCH before it in its pipeline holds. */
  readonly watches?: boolean;
  /** The client closes its sending side behind it. */
  readonly finishes?: boolean;
  /** Where it succeeds, later commands are for this database. */
  readonly selects?: number;
  /** The client reads nothing for so long from now on. */
  readonly unreadMs?: number;
  /** The client leaves where it has waited for so long. */
  readonly patienceMs?: number;
}

/** One command on one key. */
export type Form = (draw: Draw, key: string) => readonly string[];

/** What DUMP gave is kept for RESTORE: so many payloads. */
const PAYLOADS = 16;
/** What CLIENT ID gave is kept for other clients: so many. */
const CLIENT_IDS = 8;

/** So many databases commands choose from that name another one. */
export const DATABASES = 4;

export class Draw {
  /** The database of the client that the commands are for. */
  database = 0;
  failedLogins = 0;
  readonly #payloads: string[] = [];
  readonly #clientIds: string[] = [];
  #group: string | null = null;
  #value = 0;
  #names = 0;

  constructor(
    readonly random: Random,
    /** How many keys of each kind. */
    private readonly keys: number,
    /** Hash tags of their names, by turns; empty: none. */
    private readonly tags: readonly string[] = [],
  ) {}

  /** Draws a command whose keys are all in one group: two of each kind. */
  within<T>(group: string, run: () => T): T {
    this.#group = group;
    const drawn = run();
    this.#group = null;
    return drawn;
  }

  /** A name of the kind. */
  key(kind: string): string {
    if (this.#group !== null) return `${this.#group}:${kind}${this.random.below(2)}`;
    const number = this.random.below(this.keys);
    return `${kind}${number}${this.tags[number % this.tags.length] ?? ''}`;
  }

  /** A name that no command has had; with `ago`, that of so many calls before. */
  fresh(ago = 0): string {
    // A user that may use the keys `b…` may use them.
    if (ago > 0) return `bk${Math.max(0, this.#names - ago)}`;
    return `bk${this.#names++}`;
  }

  /** A value that no other command has. */
  value(): string {
    return `v${(this.#value++).toString(36)}`;
  }

  /** A whole number from 0 up to, not including, `limit`, as text. */
  below(limit: number): string {
    return String(this.random.below(limit));
  }

  pick<T>(...from: readonly T[]): T {
    return this.random.pick(from);
  }

  /** A time to live: many end within the run. */
  ms(): string {
    return String(1 + this.random.below(this.random.pick([5, 80, 400, 2_000])));
  }

  /** How long a command blocks, in seconds. */
  seconds(): string {
    return (0.001 + this.random.share() * this.random.pick([0.01, 0.2])).toFixed(3);
  }

  form(forms: readonly Form[], key: string): Command {
    return this.of(this.random.pick(forms)(this, key), key);
  }

  of(args: readonly string[], ...keys: readonly string[]): Command {
    return { args, keys: keys.map((key) => keyName(this.database, key)) };
  }

  /** A value in a server's own format; null before the first DUMP. */
  payload(): string | null {
    return this.#payloads.length === 0 ? null : this.random.pick(this.#payloads);
  }

  dumped(reply: Reply): void {
    if (typeof reply !== 'string' || reply[0] !== '$') return;
    if (this.#payloads.push(reply.slice(1)) > PAYLOADS) this.#payloads.shift();
  }

  /** What CLIENT ID gave a client; null before the first. */
  clientId(): string | null {
    return this.#clientIds.length === 0 ? null : this.random.pick(this.#clientIds);
  }

  identified(reply: Reply): void {
    if (typeof reply !== 'number') return;
    if (this.#clientIds.push(String(reply)) > CLIENT_IDS) this.#clientIds.shift();
  }
}
