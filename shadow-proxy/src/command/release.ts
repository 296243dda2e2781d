/** What a release of a server has beyond the table of Redis 7.0: the shape of the files in releases/. */
import type { GeneratedForm } from './generated-form.js';
import type { GeneratedCommand } from './table.generated.js';

/** Which software a server runs, and its own version: Valkey's is not that of Redis which it is compatible with. */
export interface Software {
  readonly name: 'redis' | 'keydb' | 'valkey';
  readonly version: string;
}

export interface Release extends Software {
  /** Commands that the table of Redis 7.0 and the releases before it do not have, as rows of the table. */
  readonly commands: readonly GeneratedCommand[];
  /** Commands of before that take another number of arguments: their arity. */
  readonly arities: readonly (readonly [name: string, arity: number])[];
  /** Forms of commands that it supports, and neither KeyDB nor a release before it does. */
  readonly forms: readonly GeneratedForm[];
}

/** @param server `INFO server` */
export function softwareOf(server: ReadonlyMap<string, string>, isKeydb: boolean): Software {
  const valkey = server.get('valkey_version');
  if (valkey !== undefined) return { name: 'valkey', version: valkey };
  return { name: isKeydb ? 'keydb' : 'redis', version: server.get('redis_version') ?? '' };
}

/** Negative where `a` is older than `b`. */
export function compareVersions(a: string, b: string): number {
  const [ours, theirs] = [a, b].map((version) => version.split('.').map(Number));
  return (ours[0] || 0) - (theirs[0] || 0) || (ours[1] || 0) - (theirs[1] || 0);
}

/** Whether a server of the software `later` has what the release has: Valkey began as Redis 7.2. */
export function continues(later: Software, release: Software): boolean {
  if (later.name === release.name) return compareVersions(later.version, release.version) >= 0;
  return later.name === 'valkey' && release.name === 'redis' && compareVersions(release.version, '7.2') <= 0;
}
