/**
 * Failed logins of the last minute, by client address and user: a client that guesses passwords is answered late. A
 * user that logs in has as many attempts again; all users of an address still count together.
 */
import { monotonicMs } from '../io/clock.js';

/** How many failed logins a minute are answered at once: of one user at an address, and of all its users. */
const FREE = { ofUser: 10, ofAddress: 50 };
const MEMORY_MS = 60_000;
/** The delay of the answer to each further failed login in that time. */
const LATE_MS = 1_000;
/** How many counts of a kind are kept: of more, the oldest is forgotten. */
const MAX_COUNTS = 10_000;
/** Longer names of users share a count. */
const MAX_NAME = 64;

type Counts = Map<string, { count: number; readonly since: number }>;

export class FailedLogins {
  readonly #ofUser: Counts = new Map();
  readonly #ofAddress: Counts = new Map();

  /** Counts a failed login. @returns how long to delay the answer, in ms */
  failed(address: string, user: string, now = monotonicMs()): number {
    const ofUser = increment(this.#ofUser, nameOf(address, user), now);
    const ofAddress = increment(this.#ofAddress, address, now);
    return ofUser > FREE.ofUser || ofAddress > FREE.ofAddress ? LATE_MS : 0;
  }

  succeeded(address: string, user: string): void {
    if (this.#ofUser.size > 0) this.#ofUser.delete(nameOf(address, user));
  }
}

const nameOf = (address: string, user: string): string => `${address} ${user.slice(0, MAX_NAME)}`;

function increment(counts: Counts, name: string, now: number): number {
  let known = counts.get(name);
  if (known === undefined || now - known.since > MEMORY_MS) {
    counts.delete(name);
    // The first entry is the oldest.
    for (const oldest of counts.keys()) if (counts.size >= MAX_COUNTS) counts.delete(oldest);
    counts.set(name, (known = { count: 0, since: now }));
  }
  return ++known.count;
}
