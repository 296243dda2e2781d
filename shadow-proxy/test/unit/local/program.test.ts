/** Where servers for tests and demos are looked for, and in which order. */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { findKeydb, findRedis, findStandIn, findTarget, requireKeydb } from '../../../src/local/program.js';
import { cause, command, installCommand } from '../../../src/local/system.js';

const VARIABLES = ['PATH', 'HOME', 'SERVERS_FROM', 'XDG_CACHE_HOME', 'REDIS_SERVER', 'KEYDB_SERVER', 'VALKEY_SERVER'];

describe('the servers of a machine are found in an order', () => {
  const before = Object.fromEntries(VARIABLES.map((name) => [name, process.env[name]]));
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'find-'));
    mkdirSync(join(folder, 'bin'));
    for (const name of VARIABLES) delete process.env[name];
    Object.assign(process.env, { PATH: join(folder, 'bin'), HOME: folder, SERVERS_FROM: 'path,engine' });
  });
  afterEach(() => {
    for (const [name, value] of Object.entries(before))
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    rmSync(folder, { recursive: true });
  });

  /** A program that says its version as servers do. @returns its path */
  function put(file: string, says: string, where = 'bin'): string {
    const path = join(folder, where, file);
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, `#!/bin/sh\necho '${says} sha=0'\n`);
    chmodSync(path, 0o755);
    return path;
  }

  test('REDIS_SERVER comes before the PATH, and the PATH before a container engine', async () => {
    put('docker', 'Redis server v=7.0.1');
    const inContainer = await findRedis();
    assert.deepEqual([inContainer.container?.image, inContainer.version], ['redis:7.0', '7.0.1']);
    const onPath = put('redis-server', 'Redis server v=7.0.15');
    assert.equal((await findRedis()).path, onPath);
    process.env.REDIS_SERVER = put('other', 'Redis server v=7.2.6', 'elsewhere');
    assert.deepEqual(await findRedis(), { name: 'redis', path: process.env.REDIS_SERVER, version: '7.2.6', tls: true });
  });

  test('a Valkey on the PATH is the source where no Redis can be had', async () => {
    put('valkey-server', 'Valkey server v=9.1.2');
    assert.equal((await findRedis()).name, 'valkey');
    put('redis-server', 'Redis server v=7.0.15');
    assert.equal((await findRedis()).name, 'redis');
  });

  test('Redis 6.2 stands in for KeyDB before Valkey, and Valkey before another Redis', async () => {
    put('redis-server', 'Redis server v=7.0.15');
    assert.equal((await findStandIn()).version, '7.0.15');
    put('valkey-server', 'Valkey server v=9.1.2');
    assert.equal((await findStandIn()).version, '9.1.2');
    put('redis-server', 'Redis server v=6.2.14');
    assert.equal((await findStandIn()).version, '6.2.14');
    process.env.KEYDB_SERVER = put('mine', 'Redis server v=7.4.1', 'elsewhere');
    assert.equal((await findStandIn()).version, '7.4.1');
    assert.equal(await findKeydb(), null);
    process.env.KEYDB_SERVER = 'none';
    put('keydb-server', 'KeyDB server v=6.3.4');
    assert.equal((await findTarget()).version, '6.2.14');
    delete process.env.KEYDB_SERVER;
    assert.equal((await findTarget()).name, 'keydb');
  });

  test('a machine without servers learns what to do', async () => {
    await assert.rejects(findRedis(), {
      code: 'SERVER_MISSING',
      message: /^no redis-server: .*, or set REDIS_SERVER to its path\.$/,
    });
    await assert.rejects(requireKeydb(), { code: 'SERVER_MISSING', message: /docs\/install\.md#keydb.*KEYDB_SERVER/ });
    process.env.REDIS_SERVER = '/no/such/redis';
    await assert.rejects(findRedis(), { message: 'REDIS_SERVER=/no/such/redis is not an executable file' });
  });

  test('SERVERS_FROM leaves out the places that it does not list', async () => {
    put('redis-server', 'Redis server v=7.0.15');
    process.env.SERVERS_FROM = 'cache';
    await assert.rejects(findRedis(), { code: 'SERVER_MISSING' });
  });
});

test('each system has its own command', () => {
  const commands = {
    'ID=debian': 'apt-get update && apt-get install redis-server',
    'ID=linuxmint ID_LIKE=ubuntu debian': 'apt-get update && apt-get install redis-server',
    'ID=ubuntu ID_LIKE=debian': 'apt-get update && apt-get install redis-server',
    'ID=alpine': 'apk add redis',
    'ID=fedora': 'dnf install valkey',
    'ID=rocky ID_LIKE=rhel centos fedora': 'dnf install redis || dnf install valkey',
    'ID=arch': 'pacman -S valkey',
    'ID=opensuse-leap ID_LIKE=suse opensuse': 'zypper install redis',
    'ID=nixos': null,
  };
  for (const [release, line] of Object.entries(commands)) {
    const [, ID, ID_LIKE] = /^ID=(\S+)(?: ID_LIKE=(.*))?$/.exec(release)!;
    assert.equal(
      installCommand({ ID, ...(ID_LIKE && { ID_LIKE }) }, 'linux')?.replaceAll('sudo ', '') ?? null,
      line,
      release,
    );
  }
  assert.equal(installCommand({}, 'darwin'), 'brew install redis');
});

test('the reason of a failure is one line', () => {
  assert.equal(cause('W: a\nE: Unable to locate package redis-server\n'), 'Unable to locate package redis-server');
  assert.equal(
    cause("W: Failed to fetch http://x/InRelease  Could not resolve 'x'\nW: Some index files failed to download."),
    "Failed to fetch http://x/InRelease  Could not resolve 'x'",
  );
  const retry = `WARNING: Retrying (total=0) after connection broken by 'ReadTimeoutError("timed out")': /simple/`;
  assert.equal(
    cause(`${retry}\nERROR: No matching distribution found for x==1`),
    'the package index does not answer (ReadTimeoutError)',
  );
  assert.equal(cause('\n'), null);
});

test('a command that takes too long is ended, and one that fails says why', async () => {
  const sh = (script: string, timeout: number): Promise<unknown> =>
    command('the script', '/bin/sh', ['-c', script], { timeout });
  await assert.rejects(sh('sleep 10', 50), { message: 'the script did not end within 0.05 s' });
  await assert.rejects(sh('echo "E: no such thing." >&2; exit 100', 5_000), {
    message: 'the script failed: no such thing',
  });
});
