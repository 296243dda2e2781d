/**
 * What a few keys hold, for the checkers: commands as Redis's documentation describes them. A command may have several
 * outcomes: a random member, a key that may have expired by then. `choose` takes one of them; `outcomes` tries all.
 */
import type { Reply } from '../../clients/replies.js';

export interface Values {
  string: string;
  list: string[];
  hash: Record<string, string>;
  set: string[];
  zset: Record<string, number>;
  stream: Stream;
}

export type Type = keyof Values;

export interface Stream {
  readonly entries: [id: string, ...fields: string[]][];
  last: string;
  /** By name: what was read last, and who has which entry. */
  readonly groups: Record<string, { last: string; readonly pending: Record<string, string> }>;
}

interface Entry<T extends Type = Type> {
  type: T;
  value: Values[T];
  /** It expires between these two moments, in Unix milliseconds. */
  expires?: [from: number, to: number];
}

/** What the keys hold, by name, and what clients watch: 1 for a key that may have changed, 2 for one that has. */
interface Held {
  readonly keys: Record<string, Entry>;
  readonly watched: Record<string, Record<string, 0 | 1 | 2>>;
}

export const EMPTY = JSON.stringify({ keys: {}, watched: {} } satisfies Held);

/** An error of a command, by its first word. */
export class Refused extends Error {}

/** Between which two moments the command is run, in Unix milliseconds. */
export interface Window {
  readonly from: number;
  readonly to: number;
}

/** As `Infinity`, in JSON. */
const NEVER = 1e15;

export class Space {
  readonly held: Held;
  #at = 0;

  constructor(
    state: string,
    readonly window: Window,
    /** By how much the clocks of servers, and the rounding of times, may differ. */
    private readonly slackMs: number,
    /** What was chosen, and of how many: it grows. */
    private readonly path: { choice: number; of: number }[],
    /** The reply that the client got to the command at hand; undefined: it is lost. */
    public observed: Reply | undefined,
  ) {
    this.held = JSON.parse(state) as Held;
  }

  choose(count: number): number {
    const at = this.#at++;
    if (at === this.path.length) this.path.push({ choice: 0, of: count });
    return this.path[at].choice;
  }

  /** The value that the client saw, where it is one of these; else any. */
  pick(from: readonly string[], seen: Reply | undefined): string {
    const text = typeof seen === 'string' ? seen.slice(1) : undefined;
    if (text !== undefined && from.includes(text)) return text;
    return from[this.choose(from.length)];
  }

  has(key: string): boolean {
    return this.#live(key) !== undefined;
  }

  /** @throws {Refused} where the key has another type */
  get<T extends Type>(key: string, type: T): Values[T] | null {
    const entry = this.#live(key);
    if (entry === undefined) return null;
    if (entry.type !== type) throw new Refused('WRONGTYPE');
    return entry.value as Values[T];
  }

  /** Puts a value in the place of what is there; a time to live stays only with `keep`. An empty one is no key. */
  put<T extends Type>(key: string, type: T, value: Values[T], keep = true): void {
    const { expires } = this.held.keys[key] ?? {};
    const size = typeof value === 'string' || type === 'stream' ? 1 : Object.keys(value).length;
    if (size === 0) delete this.held.keys[key];
    else this.held.keys[key] = { type, value, ...(keep && expires !== undefined ? { expires } : {}) };
  }

  remove(key: string): boolean {
    const has = this.has(key);
    delete this.held.keys[key];
    return has;
  }

  /** Gives what is at a key another name as well. */
  copy(from: string, to: string): void {
    this.held.keys[to] = JSON.parse(JSON.stringify(this.held.keys[from])) as Entry;
  }

  /** @param ms from now on */
  expireIn(key: string, ms: number): void {
    const { from, to } = this.window;
    this.expireBetween(key, from + ms, Math.min(NEVER, to + ms));
  }

  expireBetween(key: string, from: number, to: number): void {
    if (to < this.window.from) delete this.held.keys[key];
    else this.held.keys[key].expires = [from, to];
  }

  /** @returns whether it had a time to live */
  persist(key: string): boolean {
    const entry = this.#live(key);
    const had = entry?.expires !== undefined;
    if (entry !== undefined) delete entry.expires;
    return had;
  }

  /** What is left of the key's time to live, as milliseconds; null: it has none. */
  leftMs(key: string): readonly [least: number, most: number] | null {
    const { expires } = this.held.keys[key];
    if (expires === undefined) return null;
    const { from, to } = this.window;
    return [expires[0] - to - this.slackMs, expires[1] - from + this.slackMs];
  }

  #live(key: string): Entry | undefined {
    const entry = this.held.keys[key] as Entry | undefined;
    if (entry?.expires === undefined) return entry;
    const [from, to] = entry.expires;
    const mayLive = this.window.from <= to + this.slackMs;
    const mayBePast = this.window.to >= from - this.slackMs;
    if (mayLive && (!mayBePast || this.choose(2) === 0)) return entry;
    delete this.held.keys[key];
    return undefined;
  }
}

export type Run = (space: Space, args: readonly string[]) => Reply;

export const bulk = (text: string | null | undefined): Reply =>
  text === null || text === undefined ? null : `$${text}`;
export const bulks = (texts: readonly string[]): Reply => texts.map((text) => `$${text}`);

/** Items whose order no server promises: as the client saw them, where these are the same. */
export function unordered({ observed }: Space, items: readonly (readonly Reply[])[]): Reply {
  if (!Array.isArray(observed)) return items.flat();
  const seen = flat(observed);
  const size = items[0]?.length ?? 1;
  const chunks = Array.from({ length: seen.length / size }, (_, i) => seen.slice(i * size, (i + 1) * size));
  const plain = (of: readonly (readonly Reply[])[]): string =>
    JSON.stringify(of.map((each) => JSON.stringify(each)).sort());
  return plain(items) === plain(chunks) ? observed : items.flat();
}

export const flat = (reply: Reply): readonly Reply[] =>
  Array.isArray(reply) ? (reply as readonly Reply[]).flatMap(flat) : [reply];

/** Whether two replies say the same: RESP3 nests pairs that RESP2 has in a row, and floats are written differently. */
export function isSame(a: Reply, b: Reply): boolean {
  if (!Array.isArray(a) || !Array.isArray(b)) return a === b || isSameNumber(a, b);
  const [one, other] = [flat(a), flat(b)];
  return one.length === other.length && one.every((each, i) => each === other[i] || isSameNumber(each, other[i]));
}

const isSameNumber = (a: Reply, b: Reply): boolean =>
  typeof a === 'string' &&
  typeof b === 'string' &&
  a.length > 1 &&
  a[0] === '$' &&
  b[0] === '$' &&
  Number(a.slice(1)) === Number(b.slice(1));
