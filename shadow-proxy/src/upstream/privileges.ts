/**
 * What the users of a server may do, by its `ACL GETUSER`. The kit's own user writes to the mirror, so two shortcuts
 * are for unrestricted users only (`+@all ~* &*`): to replicate a script, and to try a pop in place of a blocking pop.
 *
 * Users that mattered in the last minute are looked up again every second, so that changes are seen. If the server
 * refuses `ACL GETUSER`, its `ACL LIST` is read: ElastiCache documents only that. A user that neither shows counts as
 * restricted.
 */
import { mayDoEverything, mayUseAllKeys } from '../command/users.js';
import { monotonicMs } from '../io/clock.js';
import { clearTimer, every, sleep, type Timer } from '../io/timers.js';
import { isError, text, type Reply } from '../resp/decode.js';
import type { Argument } from '../resp/encode.js';
import type { Credentials } from './dialer.js';

const LOOKUP_MS = 1_000;
/** An older answer does not count. */
const STALE_MS = 3 * LOOKUP_MS;
/** How long a client waits for the first answer about its user, in ms. */
const PATIENCE_MS = 500;
/** How long a user is looked up after the last question about it, in ms. */
const KEPT_MS = 60_000;
/** The most users at a time; further ones count as restricted. */
const MAX_USERS = 100;

/** What a user may do, as far as the proxy needs it. */
export interface Rights {
  /** The user may run every command on every key and channel. */
  readonly unrestricted: boolean;
  /** The user may run its commands on every key. */
  readonly allKeys: boolean;
}

const NO_RIGHTS: Rights = { unrestricted: false, allKeys: false };

interface User {
  rights: Rights;
  /** When the server answered, in ms of the monotonic clock; -Infinity before. */
  answeredAt: number;
  /** When a question about the user last came. */
  usedAt: number;
  lookup: Promise<void> | null;
}

export class Privileges {
  readonly #users = new Map<string, User>();
  #timer: Timer | undefined;

  /**
   * @param ask asks the server as the kit's own user
   * @param actual the user whose rules hold for a user's clients
   */
  constructor(
    private readonly ask: (...args: Argument[]) => Promise<Reply>,
    private readonly actual: (name: string) => string = (name) => name,
  ) {}

  /** Whether the user is known to be allowed every command on every key and channel. */
  isUnrestricted(credentials: Credentials | undefined): boolean {
    return this.#rightsOf(credentials).unrestricted;
  }

  /** Whether the user is known to have no key patterns: its commands may use every key. */
  mayUseAllKeys(credentials: Credentials | undefined): boolean {
    return this.#rightsOf(credentials).allKeys;
  }

  #rightsOf(credentials: Credentials | undefined): Rights {
    const user = this.#users.get(nameOf(credentials));
    if (user === undefined) return NO_RIGHTS;
    const now = monotonicMs();
    user.usedAt = now;
    return now - user.answeredAt < STALE_MS ? user.rights : NO_RIGHTS;
  }

  /**
   * Looks the user up from now on. Resolves when the server has answered, or after `PATIENCE_MS`; null if it was asked
   * before. Never rejects.
   */
  learn(credentials: Credentials | undefined): Promise<unknown> | null {
    const name = nameOf(credentials);
    const now = monotonicMs();
    const known = this.#users.get(name);
    if (known !== undefined) known.usedAt = now;
    if (known !== undefined || this.#users.size >= MAX_USERS) return null;
    const user: User = { rights: NO_RIGHTS, answeredAt: -Infinity, usedAt: now, lookup: null };
    this.#users.set(name, user);
    this.#timer ??= every(LOOKUP_MS, () => this.#lookUpAll()).unref();
    return Promise.race([this.#lookUp(name, user), sleep(PATIENCE_MS, undefined, { ref: false })]);
  }

  #lookUpAll(): void {
    const now = monotonicMs();
    for (const [name, user] of this.#users) {
      if (now - user.usedAt > KEPT_MS) this.#users.delete(name);
      else void this.#lookUp(name, user);
    }
  }

  #lookUp(name: string, user: User): Promise<void> {
    const answered = (rights: Rights): void => {
      user.rights = rights;
      user.answeredAt = monotonicMs();
      user.lookup = null;
    };
    user.lookup ??= this.#ask(name).then(answered, () => answered(NO_RIGHTS));
    return user.lookup;
  }

  async #ask(user: string): Promise<Rights> {
    const name = this.actual(user);
    const reply = await this.ask('ACL', 'GETUSER', name);
    if (!isError(reply)) return rightsIn(reply);
    const { items } = await this.ask('ACL', 'LIST');
    const lines = items?.map(text) ?? [];
    return {
      unrestricted: lines.some((line) => mayDoEverything(line, name)),
      allKeys: lines.some((line) => mayUseAllKeys(line, name)),
    };
  }

  close(): void {
    clearTimer(this.#timer);
    this.#timer = undefined;
    this.#users.clear();
  }
}

const nameOf = (credentials: Credentials | undefined): string => credentials?.username ?? 'default';

/** What `ACL GETUSER` shows of a user: Redis 7 lists patterns in one text, servers before it in a list. */
export function rightsIn(reply: Reply): Rights {
  if (isError(reply) || reply.items === null) return NO_RIGHTS;
  const field = (name: string): Reply | undefined => {
    const at = reply.items!.findIndex((item, i) => i % 2 === 0 && text(item) === name);
    return at === -1 ? undefined : reply.items![at + 1];
  };
  const [commands, keys, channels] = ['commands', 'keys', 'channels'].map(field);
  const allKeys = hasAll(keys, '~*');
  // Redis 6.0 has no rules for channels.
  const allChannels = channels === undefined || hasAll(channels, '&*');
  return { unrestricted: commands !== undefined && text(commands) === '+@all' && allKeys && allChannels, allKeys };
}

/** Whether one of the patterns, with or without its sign, allows everything. */
function hasAll(patterns: Reply | undefined, all: string): boolean {
  if (patterns === undefined) return false;
  const each = patterns.items === null ? text(patterns).split(' ') : patterns.items.map(text);
  return each.includes(all) || each.includes('*');
}
