/** Describes databases to which a server does not let the proxy write. */
import type { ServerSnapshot } from './snapshot.js';

/** For example "databases 5, 20 (ERR DB index is out of range)". */
export function describeRefused(refused: ServerSnapshot['refusedDatabases']): string {
  const databases = refused.map(({ db }) => db).sort((a, b) => a - b);
  const reasons = [...new Set(refused.map(({ why }) => why))];
  return `${databases.length === 1 ? 'database' : 'databases'} ${databases.join(', ')} (${reasons.join('; ')})`;
}
