/** What a release of a server adds to the table of Redis 7.0: the shape of the files in releases/. */
import type { GeneratedForm } from './generated-rows.js';
import type { GeneratedCommand } from './table.generated.js';

/** A server's software and its own version: Valkey's version is not that of the Redis with which it is compatible. */
export interface Software {
  readonly name: 'redis' | 'keydb' | 'valkey';
  readonly version: string;
}

export interface Release extends Software {
  /** Commands that neither the table of Redis 7.0 nor earlier releases have, as rows of the table. */
  readonly commands: readonly GeneratedCommand[];
  /** Earlier commands with another arity. */
  readonly arities: readonly (readonly [name: string, arity: number])[];
  /** Forms of commands that it supports, and that neither KeyDB nor an earlier release does. */
  readonly forms: readonly GeneratedForm[];
}

/** @param server `INFO server` */
export function softwareOf(server: ReadonlyMap<string, string>, isKeydb: boolean): Software {
  const valkey = server.get('valkey_version');
  if (valkey !== undefined) return { name: 'valkey', version: valkey };
  return { name: isKeydb ? 'keydb' : 'redis', version: server.get('redis_version') ?? '' };
}

/** Negative if `a` is older than `b`. */
export function compareVersions(a: string, b: string): number {
  const [ours, theirs] = [a, b].map((version) => version.split('.').map(Number));
  return (ours[0] || 0) - (theirs[0] || 0) || (ours[1] || 0) - (theirs[1] || 0);
}

/** Whether a server of the software `later` includes the release: Valkey began as Redis 7.2. */
export function continues(later: Software, release: Software): boolean {
  if (later.name === release.name) return compareVersions(later.version, release.version) >= 0;
  return later.name === 'valkey' && release.name === 'redis' && compareVersions(release.version, '7.2') <= 0;
}
