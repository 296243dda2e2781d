/**
 * Makes a clone ready: installs the packages, compiles, and checks the types. Only what the caller needs, and what is
 * not done yet. Node's own modules only, for nothing else may be installed yet.
 *
 * esbuild compiles for everybody, so that what is tested is what runs; tsc only checks. esbuild and the headers of the
 * native module have a lock file of their own beside this file: no package that is published depends on them.
 */
import { spawn } from 'node:child_process';
import {
  accessSync,
  constants,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { bundlePrograms, loadEsbuild } from './bundle.mjs';
import { phase } from './phase.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TOOLS = fileURLToPath(new URL('.', import.meta.url));
const DIST = join(ROOT, 'dist');
/** The sources of the native module, and what they become. */
const NATIVE = 'shadow-proxy/native';
const MODULE = join(DIST, 'shadow-proxy', 'native', 'front.node');
/**
 * `builtAt` and `checkedAt`: when the last build without errors, and the last check of types, began. A source that is
 * newer is not in it.
 */
const STAMP = join(DIST, '.build.json');

/** What was tried and failed, as the operator reads it. */
export class Unprepared extends Error {}

/** Its process ID is in there: the process that makes the clone ready. Others wait, and then find that all is done. */
const LOCK = join(DIST, '.preparing');
const LOOK_MS = 200;

/**
 * @param development the packages of development, too
 * @param folders the sources that the caller runs; null: all
 * @param checked the types, too
 * @param module try once more to build a native module that is missing
 */
export async function build({ development = false, checked = false, module = false, folders = null }) {
  const steps = [
    [() => isInstalled(ROOT, development), () => install(ROOT, development)],
    [() => isBuilt('builtAt', folders) && !(module && isModuleMissing()), () => compileAll()],
    [() => !checked || isBuilt('checkedAt'), () => stamped('checkedAt', () => phase('Checking types', check))],
  ];
  if (steps.every(([isDone]) => isDone())) return;
  const release = await takeLock();
  try {
    for (const [isDone, step] of steps) if (!isDone()) await step();
  } finally {
    release();
  }
}

async function compileAll() {
  if (!isInstalled(TOOLS, true)) await install(TOOLS, true);
  await stamped('builtAt', async () => {
    await phase('Compiling', compile);
    if (process.platform === 'linux') await buildNative();
  });
}

/** Notes when the step began, once it has ended without errors. */
async function stamped(name, step) {
  const startedAt = new Date();
  await step();
  writeFileSync(STAMP, JSON.stringify({ ...readJson(STAMP), [name]: startedAt }));
}

/** Resolves with what releases the lock. */
async function takeLock() {
  mkdirSync(DIST, { recursive: true });
  // A link appears with its content: nobody finds a lock without a holder.
  const mine = `${LOCK}.${process.pid}`;
  writeFileSync(mine, String(process.pid));
  try {
    for (let waits = false; !tryLink(mine); await sleep(LOOK_MS)) {
      const holder = readJson(LOCK);
      if (holder === undefined) continue;
      if (!isRunning(holder)) rmSync(LOCK, { force: true });
      else if (!waits) process.stderr.write(`Waiting for process ${holder}, which installs or compiles here …\n`);
      waits = true;
    }
  } finally {
    rmSync(mine, { force: true });
  }
  return () => rmSync(LOCK, { force: true });
}

function tryLink(file) {
  try {
    linkSync(file, LOCK);
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    return false;
  }
}

function isRunning(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // EPERM: it runs as another user.
    return error.code === 'EPERM';
  }
}

/** The packages of a lock file, exactly; an integrity that differs is refused by npm. */
async function install(folder, development) {
  const what = folder === TOOLS ? 'the compiler' : development ? 'packages, those of development, too' : 'packages';
  const { command, first } = npm();
  const cache = writableCache();
  // A setting of the user, such as NODE_ENV=production, must not leave out what is needed.
  const parts = development ? ['--include=dev', '--include=optional'] : ['--omit=dev'];
  // esbuild's script only replaces a link by the binary that it finds anyway.
  const scripts = folder === TOOLS ? ['--ignore-scripts'] : [];
  try {
    await phase(`Installing ${what} (npm ci)`, async () => {
      await must(
        command,
        [...first, 'ci', ...parts, ...scripts, ...cache.args, '--no-audit', '--no-fund', '--loglevel=error'],
        'npm ci failed: check the network and the registry (npm config get registry), then try again',
        { cwd: folder },
      );
      return `Installed ${packagesOf(folder)} packages`;
    });
  } finally {
    cache.remove();
  }
}

/** npm as it was started, or the one of the PATH: npm.cmd cannot be spawned on Windows. */
function npm() {
  const started = process.env.npm_execpath;
  return started !== undefined && basename(started) === 'npm-cli.js'
    ? { command: process.execPath, first: [started] }
    : { command: 'npm', first: [] };
}

/** npm fails where it cannot write its cache, as with a home that is read-only: then it gets a folder for a while. */
function writableCache() {
  const cache = process.env.npm_config_cache ?? join(homedir(), '.npm');
  if (isWritable(cache)) return { args: [], remove: () => undefined };
  const folder = mkdtempSync(join(tmpdir(), 'redis-to-keydb-npm-'));
  return { args: ['--cache', folder], remove: () => rmSync(folder, { recursive: true, force: true }) };
}

function isWritable(path) {
  if (!existsSync(path)) return dirname(path) !== path && isWritable(dirname(path));
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function isInstalled(folder, development) {
  const wanted = readJson(join(folder, 'package-lock.json'))?.packages;
  const installed = readJson(join(folder, 'node_modules', '.package-lock.json'))?.packages;
  if (!wanted || !installed) return wanted === undefined;
  return Object.entries(wanted).every(([path, { version, integrity, optional, devOptional, dev, os, cpu, libc }]) => {
    if (path === '' || (dev && !development)) return true;
    const found = installed[path];
    if (found) return found.version === version && found.integrity === integrity;
    // npm leaves out the binaries of other systems, and without an error one of this system that it could not download.
    const isForThis = os?.includes(process.platform) && cpu?.includes(process.arch) && libc === undefined;
    return (optional ?? devOptional) === true && !isForThis;
  });
}

const packagesOf = (folder) =>
  Object.keys(readJson(join(folder, 'node_modules', '.package-lock.json'))?.packages ?? {}).length;

/**
 * Every source becomes a module of its own. A module without a source is removed, also from a folder that the list of
 * sources no longer has: a test or a program must not run what an older commit compiled. The commands are bundled.
 */
async function compile() {
  const folders = readJson(join(ROOT, 'tsconfig.json')).include;
  const sources = folders.flatMap((folder) =>
    filesBelow(folder).filter((file) => /\.(tsx?|js)$/.test(file) && !file.endsWith('.d.ts')),
  );
  const esbuild = await loadEsbuild();
  try {
    await esbuild.build({
      absWorkingDir: ROOT,
      entryPoints: sources,
      outbase: ROOT,
      outdir: DIST,
      tsconfig: join(ROOT, 'tsconfig.json'),
      format: 'esm',
      platform: 'node',
      sourcemap: true,
      sourcesContent: false,
      logLevel: 'silent',
    });
  } catch (error) {
    const errors = await esbuild.formatMessages(error.errors ?? [{ text: String(error) }], { kind: 'error' });
    throw new Unprepared(`${errors.join('')}the sources do not compile`);
  } finally {
    await esbuild.stop();
  }
  const made = new Set(sources.map((file) => file.replace(/\.tsx?$/, '.js')));
  const stale = filesBelow('.', DIST)
    .map((file) => file.slice('./'.length))
    .filter((file) => !made.has(file) && isModule(file));
  for (const file of stale) removeModule(file);
  await bundlePrograms();
  return `Compiled ${sources.length} files`;
}

/** Whether the file below `dist` was compiled from a source of its name, in any commit; a bundle names other sources. */
function isModule(file) {
  const sources = file.endsWith('.js') ? readJson(join(DIST, `${file}.map`))?.sources : undefined;
  const base = join(ROOT, file.slice(0, -'.js'.length));
  const own = ['.ts', '.tsx', '.js'].map((ending) => relative(join(DIST, dirname(file)), base + ending));
  // A module of types only names no source.
  return sources?.every((source) => own.includes(source)) === true;
}

/** With its source map, and the folders that are empty then. */
function removeModule(file) {
  for (const path of [file, `${file}.map`]) rmSync(join(DIST, path), { force: true });
  let folder = dirname(file);
  for (; folder !== '.' && readdirSync(join(DIST, folder)).length === 0; folder = dirname(folder))
    rmdirSync(join(DIST, folder));
}

/**
 * Incremental: a second check takes the time of what has changed. TypeScript 7 is compiled, and takes less than half of the
 * time on both cores; ESLint, and what changes sources, need the API of version 6.
 */
async function check() {
  const tsc = join(ROOT, 'node_modules', 'typescript-7', 'bin', 'tsc');
  await must(process.execPath, [tsc, '--project', join(ROOT, 'tsconfig.json')], 'the types do not hold');
  return 'Checked types';
}

/** Without it, or where this fails, Node's own sockets do its work: the proxy says so when it starts. */
async function buildNative() {
  if (!isModuleMissing() && newest(join(ROOT, NATIVE)) <= statSync(MODULE).mtimeMs) return;
  // A process may have the module that is there: its file is replaced, and not written to.
  const made = `${MODULE}.${process.pid}`;
  mkdirSync(dirname(MODULE), { recursive: true });
  const compiler = process.env.CC ?? 'cc';
  await phase('Building the native module', async () => {
    const { output, failure } = await compileNative(compiler, made);
    if (failure === null) {
      renameSync(made, MODULE);
      return 'Built the native module';
    }
    rmSync(made, { force: true });
    rmSync(MODULE, { force: true });
    // EACCES: a folder of the PATH is not for this user.
    if (/ENOENT|EACCES/.test(failure))
      return `No C compiler (${compiler}): Node's own sockets do the native module's work, more slowly`;
    return `${output}\nThe native module was not built (${compiler}: ${failure}): Node's own sockets do its work, more slowly`;
  });
}

/** @returns what the compiler printed, and why it failed; null where it did not */
export const compileNative = (compiler, made) =>
  outcome(compiler, [
    ...['-std=gnu11', '-O2', '-Wall', '-Wextra', '-Werror', '-fPIC', '-shared', '-pthread'],
    ...['-I', join(TOOLS, 'node_modules', 'node-api-headers', 'include')],
    ...['-o', made, ...['front.c', 'binding.c'].map((file) => join(ROOT, NATIVE, file))],
  ]);

const isModuleMissing = () => process.platform === 'linux' && !existsSync(MODULE);

function isBuilt(what, folders = null) {
  const at = readJson(STAMP)?.[what];
  if (at === undefined) return false;
  const { include } = readJson(join(ROOT, 'tsconfig.json'));
  return [...(folders ?? include), NATIVE, 'tsconfig.json', 'package-lock.json', 'shadow-proxy/build'].every(
    (path) => newest(join(ROOT, path)) <= Date.parse(at),
  );
}

/** The newest modification below a path; a directory's own tells of files that went away. */
function newest(path) {
  if (!existsSync(path)) return 0;
  const stat = statSync(path);
  if (!stat.isDirectory()) return stat.mtimeMs;
  const names = readdirSync(path).filter((name) => name !== 'node_modules');
  return Math.max(stat.mtimeMs, ...names.map((name) => newest(join(path, name))));
}

/** Runs a command in silence. @throws {Unprepared} with what it printed, where it fails */
async function must(command, args, message, options = {}) {
  const { output, failure } = await outcome(command, args, options);
  if (failure === 'SIGINT' || failure === 'SIGTERM') process.exit(130);
  if (failure !== null) throw new Unprepared(`${output}\n${message} (${failure})`);
}

/** Runs a command: what it printed, and why it failed; null where it did not. */
async function outcome(command, args, { cwd = ROOT } = {}) {
  const child = spawn(command, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  const output = [];
  child.stdout.on('data', (chunk) => output.push(chunk));
  child.stderr.on('data', (chunk) => output.push(chunk));
  const forward = (signal) => child.kill(signal);
  process.on('SIGINT', forward).on('SIGTERM', forward);
  const failure = await new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, signal) => resolve(code === 0 ? null : (signal ?? `exit code ${code}`)));
  });
  process.off('SIGINT', forward).off('SIGTERM', forward);
  return { output: Buffer.concat(output).toString('utf8'), failure };
}

/** Relative to `from`, with slashes. */
function filesBelow(folder, from = ROOT) {
  if (!existsSync(join(from, folder))) return [];
  return readdirSync(join(from, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    return entry.isDirectory() ? filesBelow(path, from) : [path];
  });
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}
