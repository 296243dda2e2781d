/**
 * The logins that clients have used in the last hour. They are kept in memory only, and for one purpose: before a
 * workload moves to the target, each login is tried there.
 */
import { monotonicMs } from '../io/clock.js';
import type { Credentials } from '../upstream/dialer.js';
import { digestOf } from '../upstream/login.js';
import { HandshakeRefused, type Server } from '../upstream/server.js';

const KEPT_MS = 3_600_000;
const MAX_LOGINS = 1_000;

const nameOf = ({ username }: Credentials): string => username ?? 'default';

export class SeenLogins {
  /** By digest; the login that was used last is at the end. */
  readonly #logins = new Map<string, { readonly credentials: Credentials; readonly at: number }>();

  saw(credentials: Credentials): void {
    const digest = digestOf(credentials);
    this.#logins.delete(digest);
    this.#logins.set(digest, { credentials, at: monotonicMs() });
    if (this.#logins.size > MAX_LOGINS) this.#logins.delete(this.#logins.keys().next().value!);
  }

  #recent(): Credentials[] {
    for (const [digest, { at }] of this.#logins) if (monotonicMs() - at > KEPT_MS) this.#logins.delete(digest);
    return [...this.#logins.values()].map(({ credentials }) => credentials);
  }

  names(): ReadonlySet<string> {
    return new Set(this.#recent().map(nameOf));
  }

  /**
   * Users whose login `server` refuses and `other` still accepts.
   * @param other null if that server is down; it counts as accepting them
   * @throws {Error} if a server cannot be reached
   */
  async refusedBy(server: Server, other: Server | null): Promise<string[]> {
    const refused = new Set<string>();
    for (const credentials of this.#recent()) {
      if (!(await takes(server, credentials)) && (other === null || (await takes(other, credentials))))
        refused.add(nameOf(credentials));
    }
    return [...refused];
  }
}

const takes = (server: Server, credentials: Credentials): Promise<boolean> =>
  server.verify(credentials).then(
    () => true,
    (problem: Error) => {
      if (problem instanceof HandshakeRefused) return false;
      throw problem;
    },
  );
