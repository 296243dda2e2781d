/**
 * A client's login, from the moment when it connected, logged in, or sent RESET. As in Redis, the server's decision at
 * that moment counts: a client keeps its rights, whatever happens to passwords and users later.
 */
import { createHash } from 'node:crypto';
import { monotonicMs } from '../io/clock.js';
import type { Side } from '../route/stage.js';
import type { Credentials } from './dialer.js';

/**
 * - `unknown`: the server has not been asked yet.
 * - `admitted`: the server let it in.
 * - `unauthenticated`: it has not logged in, and the server demanded a password when it connected.
 */
export type LoginState = 'unknown' | 'admitted' | 'unauthenticated';

export class Login {
  /** In ms of the monotonic clock. */
  readonly at = monotonicMs();
  readonly states: Record<Side, LoginState> = { source: 'unknown', target: 'unknown' };

  /**
   * @param credentials undefined for a client that has not logged in: it is the user `default` if no password is
   * demanded
   */
  constructor(readonly credentials: Credentials | undefined) {}
}

const digests = new WeakMap<Credentials, string>();

/** Distinguishes logins without showing their passwords. */
export function digestOf(credentials: Credentials): string {
  let digest = digests.get(credentials);
  if (digest === undefined) {
    digest = createHash('sha256')
      .update(`${credentials.username ?? 'default'}\0${credentials.password}`)
      .digest('base64');
    digests.set(credentials, digest);
  }
  return digest;
}
