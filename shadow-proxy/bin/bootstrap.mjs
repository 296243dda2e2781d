/**
 * Makes a fresh clone ready and runs something of it; Node's own modules only, for nothing else may be installed yet.
 *
 *   node shadow-proxy/bin/bootstrap.mjs PROGRAM [options]           one of PROGRAMS
 *   node shadow-proxy/bin/bootstrap.mjs test [part of a path …]     the tests, or those whose file's path has one of the parts
 *   node shadow-proxy/bin/bootstrap.mjs schema                      writes the JSON Schemas of a plan and of the chart's values, and docs/plan.md
 *   node shadow-proxy/bin/bootstrap.mjs docs                        writes docs/commands.md
 *   node shadow-proxy/bin/bootstrap.mjs docs:metrics                writes docs/metrics.md
 *   node shadow-proxy/bin/bootstrap.mjs docs:cli                    writes docs/cli.md
 *   node shadow-proxy/bin/bootstrap.mjs build                       installs and compiles only
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const DIST = join(ROOT, 'dist');
/** The sources of the native module. */
const NATIVE = 'shadow-proxy/native';
/**
 * Written after a build that had no errors: when it began, and whether types were checked. What is newer is not in the
 * build.
 */
const STAMP = join(DIST, '.build.json');

/** What `npm run` starts, by script: the compiled file, and its first arguments. */
export const PROGRAMS = {
  demo: ['shadow-proxy/src/cli/shadow-compare.js', 'demo'],
  loadtest: ['loadtest/cli/main.js'],
  bench: ['loadtest/proxy/bench/main.js'],
  'bench:backfill': ['loadtest/proxy/backfill/main.js'],
  'bench:cluster': ['loadtest/proxy/cluster/main.js'],
  soak: ['loadtest/proxy/soak/main.js'],
  crashes: ['shadow-proxy/test/integration/faults/crashes/main.js'],
  'drill:counters': ['drills/counters/main.js'],
  'drill:failover': ['drills/failover/main.js'],
  'counters:cost': ['counters/cost/main.js'],
  adversary: ['drills/adversary/main.js'],
  'redis-suite': ['conformance/redis-suite.js'],
  'client-suites': ['conformance/client-suites.js'],
  'bullmq-suite': ['conformance/bullmq-suite.js'],
  matrix: ['matrix/main.js'],
  'terraform:schema': ['terraform/schema/extract.js'],
  rehearsal: ['rehearsal/main.js'],
  'pack:check': ['packaging/npm/main.js'],
  'release:check': ['packaging/release/main.js', 'check'],
  'release:version': ['packaging/release/main.js', 'version'],
  mutants: ['mutants/main.js'],
  dashboards: ['dashboards/src/build.js'],
  'dashboards:png': ['dashboards/preview/main.js'],
  'docs:picture': ['dashboards/preview/status-page.js'],
  'docs:figures': ['loadtest/proxy/pages/main.js'],
  'dashboards:metrics': ['dashboards/rig/capture.js'],
  'lint:words': ['words/main.js', 'lint'],
  'docs:glossary': ['words/main.js', 'page'],
};

/**
 * Installs the packages if they are not those of the lock file, and compiles if a source is newer than the build.
 * Whoever only runs the kit does not wait for its types to be checked.
 */
export async function prepare({ checked = false } = {}) {
  // Installed as a package, there are no sources: all is there already.
  if (!existsSync(join(ROOT, 'tsconfig.json'))) return;
  if (!isInstalled()) {
    note('Installing packages (npm ci) …');
    await must(
      npm(),
      ['ci', '--no-audit', '--no-fund', '--loglevel=error'],
      'npm ci failed: check the network and the registry, then try again',
    );
  }
  if (!isBuilt(checked)) {
    note('Compiling …');
    const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
    const startedAt = new Date();
    await must(
      process.execPath,
      [tsc, '--project', join(ROOT, 'tsconfig.json'), ...(checked ? [] : ['--noCheck'])],
      'the sources do not compile',
    );
    await buildNative();
    writeFileSync(STAMP, JSON.stringify({ startedAt, checked }));
  }
}

/**
 * Compiles the native module. Without it, or where this fails, Node does its work: the proxy says so when it starts.
 */
async function buildNative() {
  if (process.platform !== 'linux') return;
  const directory = join(DIST, 'shadow-proxy', 'native');
  const module = join(directory, 'front.node');
  // A process may have the module that is there: its file is replaced, and not written to.
  const made = `${module}.${process.pid}`;
  mkdirSync(directory, { recursive: true });
  const { output, failure } = await outcome(process.env.CC ?? 'cc', [
    ...['-std=gnu11', '-O2', '-Wall', '-Wextra', '-Werror', '-fPIC', '-shared', '-pthread'],
    ...['-I', join(ROOT, 'node_modules', 'node-api-headers', 'include')],
    ...['-o', made, ...['front.c', 'binding.c'].map((file) => join(ROOT, NATIVE, file))],
  ]);
  if (failure === null) renameSync(made, module);
  else {
    rmSync(module, { force: true });
    note(`The native module was not built, and Node does its work: it needs a C compiler (${failure}).\n${output}`);
  }
}

/** Runs a compiled program inside this process, so that signals reach it as they would without us. */
export async function runProgram(script, args) {
  const file = join(DIST, script);
  process.argv = [process.execPath, file, ...args];
  await import(pathToFileURL(file).href);
}

function isInstalled() {
  const wanted = readJson(join(ROOT, 'package-lock.json'))?.packages;
  const installed = readJson(join(ROOT, 'node_modules', '.package-lock.json'))?.packages;
  if (!wanted || !installed) return wanted === undefined;
  return Object.entries(wanted).every(([path, { version, integrity, optional }]) => {
    if (path === '') return true;
    const found = installed[path];
    return found ? found.version === version && found.integrity === integrity : optional === true;
  });
}

function isBuilt(checked) {
  const stamp = readJson(STAMP);
  if (stamp === undefined || (checked && !stamp.checked)) return false;
  const builtAt = Date.parse(stamp.startedAt);
  const { include = [] } = readJson(join(ROOT, 'tsconfig.json')) ?? {};
  return [...include, NATIVE, 'tsconfig.json', 'package-lock.json'].every(
    (path) => newest(join(ROOT, path)) <= builtAt,
  );
}

/** The newest modification below a path; a directory's own tells of files that went away. */
function newest(path) {
  if (!existsSync(path)) return 0;
  const stat = statSync(path);
  if (!stat.isDirectory()) return stat.mtimeMs;
  return Math.max(stat.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))));
}

/**
 * The files of the tests whose path has one of the parts, relative to the root; without parts, those that are not long.
 */
export function testFiles(parts) {
  const sources = [
    'shadow-proxy/test',
    'loadtest',
    'conformance',
    'matrix',
    'counters',
    'drills',
    'terraform/test',
    'rehearsal',
    'packaging',
    'dashboards',
    'mutants',
    'words',
  ].flatMap((directory) => filesBelow(join(ROOT, directory)));
  return sources
    .map((file) => relative(ROOT, file).replaceAll('\\', '/'))
    .filter((file) => /\.test\.tsx?$/.test(file) && (parts.length > 0 || !/\.long\.test\.tsx?$/.test(file)))
    .filter(
      (file) =>
        parts.length === 0 || parts.some((part) => file.includes(part.replace(/^dist\//, '').replace(/\.js$/, '.ts'))),
    )
    .sort();
}

async function runTests(parts) {
  const { run } = await import('node:test');
  const { spec } = await import('node:test/reporters');
  const files = testFiles(parts);
  if (files.length === 0) fail(`no test file has ${parts.join(' or ')} in its path`);

  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, () => {
      process.exitCode = 130;
      controller.abort();
    });
  }
  const compiled = files.map((file) => join(DIST, file.replace(/\.tsx?$/, '.js')));
  // Many tests wait most of the time.
  const concurrency = Math.min(3, availableParallelism() + 1);
  run({ files: compiled, concurrency, signal: controller.signal })
    .on('test:fail', ({ todo }) => {
      if (todo === undefined || todo === false) process.exitCode ??= 1;
    })
    .compose(nameSkipped)
    .compose(new spec())
    .pipe(process.stdout);
}

/** Names every skipped test once more just before the summary: a skipped test has shown nothing. */
async function* nameSkipped(events) {
  const skipped = [];
  let told = false;
  for await (const event of events) {
    const { type, data } = event;
    if (type === 'test:pass' && data.skip !== undefined && data.skip !== false)
      skipped.push(`${data.name} (${data.skip})`);
    if (!told && type === 'test:diagnostic' && data.nesting === 0 && /^tests \d+$/.test(data.message)) {
      told = true;
      for (const line of skipped) yield { type, data: { ...data, message: `skipped: ${line}` } };
    }
    yield event;
  }
}

async function writeSchema() {
  const { planJsonSchema } = await import(pathToFileURL(join(DIST, 'shadow-proxy/src/plan/schema.js')).href);
  const { valuesSchema } = await import(pathToFileURL(join(DIST, 'packaging/chart/schema.js')).href);
  const write = (path, schema) => writeFileSync(join(ROOT, path), `${JSON.stringify(schema, null, 2)}\n`);
  write('shadow-proxy/migration.schema.json', planJsonSchema());
  write('charts/shadow-proxy/values.schema.json', valuesSchema());
  const { renderPlan } = await import(pathToFileURL(join(DIST, 'shadow-proxy/src/docs/plan.js')).href);
  writeFileSync(join(ROOT, 'docs', 'plan.md'), renderPlan());
}

async function writeDocs() {
  const { renderCommands } = await import(pathToFileURL(join(DIST, 'shadow-proxy/src/docs/commands.js')).href);
  writeFileSync(join(ROOT, 'docs', 'commands.md'), renderCommands());
}

async function writeMetrics() {
  const { renderMetrics } = await import(pathToFileURL(join(DIST, 'shadow-proxy/src/docs/metrics.js')).href);
  writeFileSync(join(ROOT, 'docs', 'metrics.md'), renderMetrics());
}

async function writeCli() {
  const load = (file) => import(pathToFileURL(join(DIST, 'shadow-proxy/src', file)).href);
  const [{ renderCli }, { proxyProgram }, { operatorProgram }] = await Promise.all(
    ['docs/cli.js', 'cli/proxy-program.js', 'cli/program.js'].map(load),
  );
  writeFileSync(join(ROOT, 'docs', 'cli.md'), renderCli([proxyProgram(), await operatorProgram()]));
}

/** Runs a command in silence; where it fails, prints what it said and ends. */
async function must(command, args, message) {
  const { output, failure } = await outcome(command, args);
  if (failure === 'SIGINT' || failure === 'SIGTERM') process.exit(130);
  if (failure !== null) fail(`${output}\n${message} (${failure})`);
}

/** Runs a command: what it said, and why it failed; null where it did not. */
async function outcome(command, args) {
  const child = spawn(command, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
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

const npm = () => (process.platform === 'win32' ? 'npm.cmd' : 'npm');
const note = (text) => process.stderr.write(`${text}\n`);

function fail(message) {
  note(message);
  process.exit(2);
}

function filesBelow(directory) {
  if (!existsSync(directory)) return [];
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    return entry.isDirectory() ? filesBelow(path) : [path];
  });
}

function readText(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

function readJson(path) {
  const text = readText(path);
  return text === null ? undefined : JSON.parse(text);
}

if (process.argv[1] && fileURLToPath(import.meta.url) === process.argv[1]) {
  const [what, ...args] = process.argv.slice(2);
  const jobs = {
    ...PROGRAMS,
    test: runTests,
    schema: writeSchema,
    docs: writeDocs,
    'docs:metrics': writeMetrics,
    'docs:cli': writeCli,
    build: () => undefined,
  };
  if (!Object.hasOwn(jobs, what ?? '')) fail(`${what ?? 'nothing'} cannot be run: ${Object.keys(jobs).join(', ')} can`);
  await prepare({ checked: !Object.hasOwn(PROGRAMS, what) });
  if (Object.hasOwn(PROGRAMS, what)) {
    const [script, ...first] = PROGRAMS[what];
    await runProgram(script, [...first, ...args]);
  } else {
    await jobs[what](args);
  }
}
