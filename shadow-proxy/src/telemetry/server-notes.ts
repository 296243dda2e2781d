/** Sentences about the condition of one server, for people. */
import type { ServerSnapshot } from './snapshot.js';
import { otherSide, type Side } from '../route/stage.js';
import { count, duration } from '../text/figures.js';

/**
 * What evictions of one server mean for the other server, and for a verification.
 * @param now in ms since 1970 @returns empty if the server has evicted nothing
 */
export function evictionNote(
  side: Side,
  { evicted, evictedAt, evicting }: Pick<ServerSnapshot, 'evicted' | 'evictedAt' | 'evicting'>,
  now: number,
): string {
  if (evicted === 0 || evictedAt === null) return '';
  const ago = duration(Math.max(0, now - Date.parse(evictedAt)) / 1000);
  const state = evicting ? `the ${side} is evicting keys` : `the ${side} has evicted keys`;
  return `${state}: ${count(evicted, 'key')} since the proxy started, the last ${ago} ago; the ${otherSide(side)} keeps them. verify reports them as differences, verify --repair makes the mirror equal, and asks before it deletes them`;
}

/**
 * The databases to which a server does not let the proxy write, for example
 * "databases 5, 20 (ERR DB index is out of range)".
 */
export function describeRefused(refused: ServerSnapshot['refusedDatabases']): string {
  const databases = refused.map(({ db }) => db).sort((a, b) => a - b);
  const reasons = [...new Set(refused.map(({ why }) => why))];
  return `${databases.length === 1 ? 'database' : 'databases'} ${databases.join(', ')} (${reasons.join('; ')})`;
}
