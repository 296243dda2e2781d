// @ts-check
/**
 * Redis from the packages of Debian or Ubuntu, as any user and without a change of the system: apt's state, lists and
 * cache are in a folder of ours. Sources, keys and proxies are those of the system, and apt checks the signatures.
 */
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cause, command, CommandFailed, onPath, osRelease } from './system.js';

const UPDATE_MS = 90_000;
const STEP_MS = 60_000;

/** Redis as apt has it: its place in the cache, and its name in messages. Null on a system without apt. */
export function aptPackage() {
  if (process.platform !== 'linux' || onPath('apt-get') === null || onPath('dpkg-deb') === null) return null;
  const { ID = 'linux', VERSION_ID = 'rolling', NAME = 'Linux' } = osRelease();
  const system = ID === 'debian' ? 'Debian' : NAME;
  return { id: `redis-${ID}-${VERSION_ID}-${process.arch}`, from: `${system}'s package`, tls: true };
}

/**
 * Puts the server into `folder`, with the shared libraries that the machine lacks.
 *
 * @param {string} folder
 * @param {string} work for files that are not kept
 * @returns {Promise<{ readonly server: string, readonly libraries: readonly string[], readonly bytes: number }>} paths
 *   below the folder, and the size of the packages
 * @throws {CommandFailed}
 */
export async function bringByApt(folder, work) {
  const [root, debs, bin, lib] = [join(work, 'root'), join(work, 'debs'), join(folder, 'bin'), join(folder, 'lib')];
  const partial = [join(work, 'state/lists/partial'), join(work, 'cache/archives/partial')];
  for (const made of [...partial, root, debs, bin, lib]) mkdirSync(made, { recursive: true });
  const config = join(work, 'apt.conf');
  writeFileSync(config, configuration(work));
  const apt = (/** @type {string[]} */ ...args) =>
    command(`apt-get ${args[0]}`, 'apt-get', ['-c', config, '-qq', ...args], {
      cwd: debs,
      timeout: args[0] === 'update' ? UPDATE_MS : STEP_MS,
    });
  // A source that has nothing to do with Redis may be broken: the download tells.
  const complaint = await apt('update').then(
    ({ stderr }) => (cause(stderr) === null ? null : `apt-get update: ${cause(stderr)}`),
    (error) => error.message,
  );
  const download = async (/** @type {string[]} */ ...names) => {
    await apt('download', ...names).catch((error) => {
      throw complaint === null ? error : new CommandFailed(complaint);
    });
    for (const file of readdirSync(debs))
      await command('dpkg-deb', 'dpkg-deb', ['-x', join(debs, file), root], { timeout: STEP_MS });
  };
  await download('redis-server', 'redis-tools');
  copyFileSync(join(root, 'usr/bin/redis-server'), join(bin, 'redis-server'));

  const libraries = [];
  let downloaded = false;
  for (;;) {
    const missing = await missingLibraries(join(bin, 'redis-server'), lib);
    if (missing.length === 0) break;
    if (!downloaded) {
      const { stdout } = await apt('install', '--simulate', '--no-install-recommends', 'redis-server');
      const names = [...stdout.matchAll(/^Inst (\S+)/gm)].map(([, name]) => name);
      await download(...names.filter((name) => /^lib|^lua-/.test(name)));
      downloaded = true;
    }
    const files = readdirSync(root, { recursive: true, encoding: 'utf8' });
    for (const name of missing) {
      const file = files.find((path) => path.endsWith(`/${name}`));
      if (file === undefined) throw new CommandFailed(`no package has the library ${name}`);
      copyFileSync(join(root, file), join(lib, name));
      libraries.push(`lib/${name}`);
    }
  }
  const bytes = readdirSync(debs).reduce((sum, file) => sum + statSync(join(debs, file)).size, 0);
  return { server: 'bin/redis-server', libraries, bytes };
}

/** Nothing outside of `work` is written, and none of the system's hooks runs. */
const configuration = (/** @type {string} */ work) => `
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Dir::State "${work}/state";
Dir::State::status "/var/lib/dpkg/status";
Dir::Cache "${work}/cache";
Debug::NoLocking "true";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::PDiffs "false";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::CNF::DefaultEnabled "false";
Acquire::Retries "0";
Acquire::http::Timeout "10";
Acquire::https::Timeout "10";
`;

/**
 * The libraries that the loader does not find, by their names.
 *
 * @param {string} server
 * @param {string} lib where to look, besides the system
 */
async function missingLibraries(server, lib) {
  const env = { ...process.env, LD_TRACE_LOADED_OBJECTS: '1', LD_LIBRARY_PATH: lib };
  const { stdout } = await promisify(execFile)(server, [], { env });
  return [...stdout.matchAll(/^\s*(\S+) => not found/gm)].map(([, name]) => name);
}
