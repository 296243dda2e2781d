/** The real thing for tests: a Redis, a KeyDB, what is between them, and no leftovers. */
import { continues } from '../../src/command/release.js';
import { RELEASES } from '../../src/command/releases.js';
import { COMMANDS } from '../../src/command/table.generated.js';
import { findRedis, findTarget } from '../../src/local/program.js';
import { startRedis, startTarget, type LocalServer, type ServerOptions } from '../../src/local/servers.js';

export { makeCertificates, type Certificates } from '../../src/local/certificates.js';

export interface Pair {
  /** Redis. */
  readonly source: LocalServer;
  /** KeyDB, or what stands in for it. */
  readonly target: LocalServer;
}

/** What Ansible's role denies to everybody, so that nothing of the kit may need it. */
const DENIED = ['KEYDB.NHGET', 'KEYDB.NHSET', 'KEYDB.CRON'];

/** Options of a target that denies nothing. */
export const EVERY_COMMAND: ServerOptions = { config: { 'rename-command': [] } };

/**
 * The target of the tests: KeyDB as Ansible's role sets it up; on a machine without KeyDB what stands in for it, which
 * `KEYDB_SERVER` may name.
 */
export const startTestTarget = async (options: ServerOptions = {}): Promise<LocalServer> =>
  startTarget(
    (await targetIsKeydb())
      ? {
          ...options,
          config: { 'rename-command': DENIED.map((command) => `${command} ""`), ...options.config },
        }
      : options,
  );

/** False where something stands in for KeyDB: what a test expects of the target may depend on it. */
export const targetIsKeydb = async (): Promise<boolean> => (await findTarget()).name === 'keydb';

/** Whether the target of the tests has what this release has. */
export const targetHas = async (name: 'redis' | 'valkey', version: string): Promise<boolean> =>
  (await targetIsKeydb()) ? false : continues(await findTarget(), { name, version });

/** Starts both servers, and stops them after `body`, however it ends. */
export async function withServers<T>(
  body: (servers: Pair) => Promise<T>,
  options: { readonly source?: ServerOptions; readonly target?: ServerOptions } = {},
): Promise<T> {
  const source = await startRedis(options.source);
  try {
    const target = await startTestTarget(options.target);
    try {
      return await body({ source, target });
    } finally {
      await target.stop();
    }
  } finally {
    await source.stop();
  }
}

/** Whether the source of the tests has what this release has: what a test expects may depend on it. */
export const sourceHas = async (name: 'redis' | 'valkey', version: string): Promise<boolean> =>
  continues(await findRedis(), { name, version });

/** Likewise for a release of Redis; a Valkey has what Redis 7.2 has. */
export const redisSince = (major: number, minor: number): Promise<boolean> => sourceHas('redis', `${major}.${minor}`);

/** The commands and subcommands that the tables say the source has; before Redis 7.0 it has some of them. */
export async function commandsOfSource(): Promise<ReadonlySet<string>> {
  const software = await findRedis();
  const newer = RELEASES.filter((release) => continues(software, release)).flatMap(({ commands }) => commands);
  const listsAsKeydb = !(await redisSince(7, 0));
  const known = COMMANDS.filter(([, sourceArity]) => listsAsKeydb || sourceArity !== 0);
  return new Set([...known, ...newer].map(([name]) => name));
}

/** Runs `body` with so many pairs of servers at once. */
export async function withPairs(
  count: number,
  body: (pairs: readonly Pair[]) => Promise<void>,
  pairs: readonly Pair[] = [],
): Promise<void> {
  if (pairs.length === count) return body(pairs);
  await withServers((pair) => withPairs(count, body, [...pairs, pair]));
}
