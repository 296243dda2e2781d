/**
 * What the users of a server may do, as its `ACL GETUSER` says. The mirror is written by the kit's own user, so some
 * shortcuts are for unrestricted users only (`+@all ~* &*`): to repeat a script, to pop in place of a blocking pop.
 *
 * Users that were asked about in the last minute are looked up again every second, so that changes are followed. Where
 * the server refuses `ACL GETUSER`, its `ACL LIST` is read: ElastiCache documents the latter only. A user that neither
 * shows is restricted.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { mayDoEverything } from '../command/users.js';
import { isError, text, type Reply } from '../resp/decode.js';
import type { Argument } from '../resp/encode.js';
import type { Credentials } from './dialer.js';

const LOOK_MS = 1_000;
/** An answer older than this is none. */
const STALE_MS = 3 * LOOK_MS;
/** How long a client waits for the first answer about its user. */
const PATIENCE_MS = 500;
/** Without a question, a user is looked up for so long, in ms. */
const KEPT_MS = 60_000;
/** Users beyond this many at a time are taken to be restricted. */
const MAX_USERS = 100;

interface User {
  unrestricted: boolean;
  /** When the server answered, in ms of the monotonic clock; -Infinity before. */
  answeredAt: number;
  /** When it was last asked for. */
  usedAt: number;
  looking: Promise<void> | null;
}

export class Privileges {
  readonly #users = new Map<string, User>();
  #timer: NodeJS.Timeout | undefined;

  /** @param ask asks the server as the kit's own user */
  constructor(private readonly ask: (...args: Argument[]) => Promise<Reply>) {}

  /** Whether the user is known to be allowed every command on every key and channel. */
  isUnrestricted(credentials: Credentials | undefined): boolean {
    const user = this.#users.get(nameOf(credentials));
    if (user === undefined) return false;
    const now = performance.now();
    user.usedAt = now;
    return user.unrestricted && now - user.answeredAt < STALE_MS;
  }

  /**
   * Has the user looked up from now on. Resolves when the server has answered, or has not for a while; null where it
   * was asked before. Never rejects.
   */
  learn(credentials: Credentials | undefined): Promise<unknown> | null {
    const name = nameOf(credentials);
    const now = performance.now();
    const known = this.#users.get(name);
    if (known !== undefined) known.usedAt = now;
    if (known !== undefined || this.#users.size >= MAX_USERS) return null;
    const user: User = { unrestricted: false, answeredAt: -Infinity, usedAt: now, looking: null };
    this.#users.set(name, user);
    this.#timer ??= setInterval(() => this.#lookAll(), LOOK_MS).unref();
    return Promise.race([this.#look(name, user), sleep(PATIENCE_MS, undefined, { ref: false })]);
  }

  #lookAll(): void {
    const now = performance.now();
    for (const [name, user] of this.#users) {
      if (now - user.usedAt > KEPT_MS) this.#users.delete(name);
      else void this.#look(name, user);
    }
  }

  #look(name: string, user: User): Promise<void> {
    const answered = (unrestricted: boolean): void => {
      user.unrestricted = unrestricted;
      user.answeredAt = performance.now();
      user.looking = null;
    };
    user.looking ??= this.#isUnrestricted(name).then(answered, () => answered(false));
    return user.looking;
  }

  async #isUnrestricted(name: string): Promise<boolean> {
    const reply = await this.ask('ACL', 'GETUSER', name);
    if (!isError(reply)) return isUnrestricted(reply);
    const { items } = await this.ask('ACL', 'LIST');
    return items?.some((line) => mayDoEverything(text(line), name)) ?? false;
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#users.clear();
  }
}

const nameOf = (credentials: Credentials | undefined): string => credentials?.username ?? 'default';

/**
 * Whether `ACL GETUSER` shows a user with `+@all ~* &*`: Redis 7 lists patterns in one text, servers before it in a
 * list.
 */
export function isUnrestricted(reply: Reply): boolean {
  if (isError(reply) || reply.items === null) return false;
  const field = (name: string): Reply | undefined => {
    const at = reply.items!.findIndex((item, i) => i % 2 === 0 && text(item) === name);
    return at === -1 ? undefined : reply.items![at + 1];
  };
  const [commands, keys, channels] = ['commands', 'keys', 'channels'].map(field);
  // Redis 6.0 has no rules for channels.
  return (
    commands !== undefined &&
    text(commands) === '+@all' &&
    hasAll(keys, '~*') &&
    (channels === undefined || hasAll(channels, '&*'))
  );
}

/** Whether one of the patterns, with or without its sign, is for everything. */
function hasAll(patterns: Reply | undefined, all: string): boolean {
  if (patterns === undefined) return false;
  const each = patterns.items === null ? text(patterns).split(' ') : patterns.items.map(text);
  return each.includes(all) || each.includes('*');
}
