/**
 * The users that a fence needs. A fence takes the writes from the users of the source, so that no client writes there
 * bypassing the proxy. Clients of the proxy go on: for each such user the kit makes a fence user with the rules that it
 * had, and the proxy's connections of that user's clients log in as it. A client's own password is checked first, as
 * ever.
 */
import { rulesIn, withRules, type UserRules } from '../command/users.js';
import { randomBytes } from '../io/random.js';
import type { Credentials } from './dialer.js';

/** A user without its writes, and its rules before that. */
export type FencedUser = Pick<UserRules, 'name' | 'commands' | 'selectors'>;

const PREFIX = 'shadow-proxy:';

/** The fence user of a user. */
export const fenceUserOf = (name: string): string => `${PREFIX}${name}`;
export const isFenceUser = (name: string): boolean => name.startsWith(PREFIX);

export class FenceUsers {
  /** Users that have lost their writes, or are about to, by name. */
  users: ReadonlyMap<string, FencedUser> = new Map();
  /** The run ID of the process at which clients' connections log in as fence users; null while there is no fence. */
  at: string | null = null;
  /** Makes the fence users at a process that is not `at`. It must not reject. */
  renew: () => Promise<void> = () => Promise.resolve();
  /** Only this process knows it: the next one sets another. */
  #password: string | undefined;

  get password(): string {
    return (this.#password ??= randomBytes(24).toString('hex'));
  }

  /** Resolves when connections to this process may log in as fence users. */
  async ready(runId: string): Promise<void> {
    if (this.at !== null && this.at !== runId) await this.renew();
  }

  /** The login of the fence user for a client with this login; null if the client keeps its own. */
  loginFor(credentials: Credentials | undefined): Credentials | null {
    const name = credentials?.username ?? 'default';
    if (this.at === null || !this.users.has(name)) return null;
    return { username: fenceUserOf(name), password: this.password };
  }

  /** The user whose rules hold for a client of this user at present. */
  actual(name: string): string {
    return this.at !== null && this.users.has(name) ? fenceUserOf(name) : name;
  }

  /** Lines of `ACL LIST` as they were without the fence. */
  unfenced(lines: readonly string[]): readonly string[] {
    return lines.flatMap((line) => {
      const { name } = rulesIn(line);
      if (isFenceUser(name)) return [];
      const before = this.users.get(name);
      return [before === undefined ? line : withRules(line, before)];
    });
  }
}
