// @ts-check
/** This machine: programs on its PATH, its kind of system, and how to run a command without a silence. */
import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { clearInterval, setInterval } from 'node:timers';
import { promisify } from 'node:util';

const PATIENCE_MS = 4_000;

/**
 * The full path of a program on the PATH, or null.
 *
 * @param {string} file
 * @returns {string | null}
 */
export function onPath(file) {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(folder || '.', file);
    if (executable(path)) return path;
  }
  return null;
}

/**
 * @param {string} path
 * @returns {boolean}
 */
export function executable(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/**
 * What the server program at a path says about itself. Redis, KeyDB and Valkey use the same form: `Redis server v=7.0.15
 * sha=…`.
 *
 * @param {string} line
 * @returns {string}
 */
export const parseVersion = (line) => /\bv=(\S+)/.exec(line)?.[1] ?? 'of unknown version';

/** @param {string} text */
export const say = (text) => void process.stderr.write(`${text}\n`);

/**
 * Waits, with a line on stderr every four seconds.
 *
 * @template T
 * @param {string} what such as `apt-get update`
 * @param {Promise<T>} promise
 * @returns {Promise<T>}
 */
export async function patiently(what, promise) {
  let seconds = 0;
  const timer = setInterval(() => {
    seconds += PATIENCE_MS / 1000;
    say(`Waiting for ${what} (${seconds} s) …`);
  }, PATIENCE_MS);
  try {
    return await promise;
  } finally {
    clearInterval(timer);
  }
}

/** A command that failed; the message is the line of its output that says why. */
export class CommandFailed extends Error {
  /** @override */
  name = 'CommandFailed';
}

/**
 * Runs a command that takes a while.
 *
 * @param {string} what its name in messages
 * @param {string} file
 * @param {readonly string[]} args
 * @param {{ readonly cwd?: string, readonly env?: NodeJS.ProcessEnv, readonly timeout: number }} options
 * @returns {Promise<{ readonly stdout: string, readonly stderr: string }>}
 * @throws {CommandFailed}
 */
export async function command(what, file, args, { cwd, env, timeout }) {
  const options = { cwd, env: { ...process.env, LC_ALL: 'C', ...env }, timeout, maxBuffer: 64 * 2 ** 20 };
  try {
    return await patiently(what, promisify(execFile)(file, [...args], options));
  } catch (error) {
    const { killed, stderr = '', message } = /** @type {Error & { killed?: boolean, stderr?: string }} */ (error);
    if (killed) throw new CommandFailed(`${what} did not end within ${timeout / 1000} s`);
    throw new CommandFailed(`${what} failed: ${cause(stderr) ?? message.split('\n')[0]}`);
  }
}

/**
 * The line that says why: what did not answer, else the last error, without its mark.
 *
 * @param {string} output of apt-get or pip
 * @returns {string | null}
 */
export function cause(output) {
  const lines = output
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const broken = /after connection broken by '(\w+)/.exec(output);
  if (broken !== null) return `the package index does not answer (${broken[1]})`;
  const line =
    lines.find((each) => /^[EW]: Failed to fetch/.test(each)) ??
    lines.filter((each) => /^(E|ERROR|error|dpkg-deb: error|tar):/.test(each)).at(-1) ??
    lines.at(-1);
  return line === undefined ? null : line.replace(/^(E|W|ERROR|WARNING|error): */, '').replace(/\.$/, '');
}

/**
 * `ID` and its like of /etc/os-release; empty on other systems.
 *
 * @param {string} [file]
 * @returns {Readonly<Record<string, string>>}
 */
export function osRelease(file = '/etc/os-release') {
  if (process.platform !== 'linux' || !existsSync(file)) return {};
  const lines = readFileSync(file, 'utf8').matchAll(/^([A-Z_]+)="?([^"\n]*)"?$/gm);
  return Object.fromEntries([...lines].map(([, name, value]) => [name, value]));
}

/** What installs a Redis, or a Valkey where newer releases have no Redis, by the system's ID. */
const INSTALL = /** @type {const} */ ({
  debian: 'apt-get update && apt-get install redis-server',
  alpine: 'apk add redis',
  arch: 'pacman -S valkey',
  fedora: 'dnf install valkey',
  rhel: 'dnf install redis || dnf install valkey',
  suse: 'zypper install redis',
});

/**
 * The command that installs a server on this system.
 *
 * @param {Readonly<Record<string, string>>} [release]
 * @param {NodeJS.Platform} [platform]
 * @returns {string | null} null where the system is unknown
 */
export function installCommand(release = osRelease(), platform = process.platform) {
  if (platform === 'darwin') return 'brew install redis';
  const names = `${release.ID ?? ''} ${release.ID_LIKE ?? ''}`.split(/\s+/);
  const known = names.map((name) => (name === 'ubuntu' ? 'debian' : name.startsWith('opensuse') ? 'suse' : name));
  for (const [name, line] of Object.entries(INSTALL)) {
    if (!known.includes(name) || (name === 'fedora' && known.includes('rhel'))) continue;
    return process.getuid?.() === 0 ? line : line.replace(/(^|&& |\|\| )/g, '$1sudo ');
  }
  return null;
}
