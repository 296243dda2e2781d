/** The real thing for tests: a Redis, a KeyDB, what is between them, and no leftovers. */
import type { TestContext } from 'node:test';
import { continues } from '../../src/command/release.js';
import { RELEASES } from '../../src/command/releases.js';
import { COMMANDS } from '../../src/command/table.generated.js';
import { findKeydb, findRedis, findValkey, type Program } from '../../src/local/program.js';
import { startKeydb, startRedis, startValkey, type LocalServer, type ServerOptions } from '../../src/local/servers.js';

export { makeCertificates, type Certificates } from '../../src/local/certificates.js';

export interface Pair {
  /** Redis. */
  readonly source: LocalServer;
  /** KeyDB. */
  readonly target: LocalServer;
}

/** What Ansible's role denies to everybody, so that nothing of the kit may need it. */
const DENIED = ['KEYDB.NHGET', 'KEYDB.NHSET', 'KEYDB.CRON'];

/** Options of a KeyDB that denies nothing. */
export const EVERY_COMMAND: ServerOptions = { config: { 'rename-command': [] } };

/** A KeyDB as Ansible's role sets it up; with `TEST_TARGET=valkey` what `VALKEY_SERVER` names, in its place. */
export const startTargetKeydb = (options: ServerOptions = {}): Promise<LocalServer> =>
  process.env.TEST_TARGET === 'valkey'
    ? startValkey(options)
    : startKeydb({
        ...options,
        config: { 'rename-command': DENIED.map((command) => `${command} ""`), ...options.config },
      });

/** Starts both servers, and stops them after `body`, however it ends. */
export async function withServers<T>(
  body: (servers: Pair) => Promise<T>,
  options: { readonly source?: ServerOptions; readonly target?: ServerOptions } = {},
): Promise<T> {
  const source = await startRedis(options.source);
  try {
    const target = await startTargetKeydb(options.target);
    try {
      return await body({ source, target });
    } finally {
      await target.stop();
    }
  } finally {
    await source.stop();
  }
}

/**
 * False, with the test skipped and a line on stderr that names it, where there is no KeyDB:
 * `if (!(await needsKeydb(t))) return;`
 */
export const needsKeydb = (t: TestContext): Promise<boolean> => needs(t, 'keydb', findKeydb);

/** Likewise for Valkey. */
export const needsValkey = (t: TestContext): Promise<boolean> => needs(t, 'valkey', findValkey);

async function needs(t: TestContext, name: string, find: () => Promise<Program | null>): Promise<boolean> {
  if ((await find()) !== null) return true;
  const reason = `NOT TESTED AGAINST ${name.toUpperCase()}: "${t.name}" needs a ${name}-server (set ${name.toUpperCase()}_SERVER, or put it on the PATH)`;
  process.stderr.write(`${reason}\n`);
  t.skip(reason);
  return false;
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

/** False, with the test skipped, where the source is older than Redis 7.0: the test uses commands that came then. */
export async function needsRedisSince70(t: TestContext): Promise<boolean> {
  if (await redisSince(7, 0)) return true;
  t.skip(`NOT TESTED WITH REDIS 6.2: "${t.name}" uses commands of Redis 7.0 (set REDIS_SERVER)`);
  return false;
}

/** Why a test is skipped where the source is older than Redis 7.0; false where it is not. */
export const skipBefore70 = async (why = 'the proxy says it in the words of 7.0'): Promise<string | false> =>
  (await redisSince(7, 0)) ? false : `NOT TESTED WITH REDIS 6.2: ${why} (set REDIS_SERVER)`;

/**
 * False, with the test skipped, where the Redis of the tests is not that which the tables were made from, 7.0.
 */
export async function needsRedis70(t: TestContext): Promise<boolean> {
  const { name, version } = await findRedis();
  if (version.startsWith('7.0.')) return true;
  t.skip(`for Redis 7.0, which the tables were made from: this is ${name} ${version}`);
  return false;
}
