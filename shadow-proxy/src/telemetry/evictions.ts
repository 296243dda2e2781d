/** What evictions of one server mean for the other server, and for a verification. */
import type { ServerSnapshot } from './snapshot.js';
import { otherSide, type Side } from '../route/stage.js';
import { count, duration } from '../text/figures.js';

/** @param now in ms since 1970 @returns empty if the server has evicted nothing */
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
