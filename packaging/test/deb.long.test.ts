/** The Debian package, installed in a Debian of debootstrap, and its proxy, started there as its unit says. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import getPort from 'get-port';
import { Redis } from 'ioredis';
import { run } from '../../rehearsal/run.js';
import { startRedis, startTarget, stopServers } from '../../shadow-proxy/src/local/servers.js';
import { ROOT } from '../npm/pack.js';
import { lacks, makeDebian } from './debian.js';

const ENVIRONMENT = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', NODE_ENV: 'production' };
const PLAN = 'etc/redis-to-keydb/migration.yaml';

describe('the Debian package', { skip: lacks('debootstrap', 'dpkg-deb', 'unshare') }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'deb-'));
  const root = join(folder, 'root');
  const inRoot = async (...command: string[]): Promise<string> =>
    (await run(['chroot', root, ...command], { env: ENVIRONMENT })).stdout;

  before(async () => {
    await makeDebian(root);
    await run(['sh', join(ROOT, 'packaging/deb/build.sh'), join(root, 'kit.deb')]);
  });
  after(async () => {
    await stopServers();
    rmSync(folder, { recursive: true, force: true });
  });

  /** A package of this Node: Debian 12 has an older one. */
  async function installNode(): Promise<void> {
    const made = join(folder, 'nodejs');
    mkdirSync(join(made, 'DEBIAN'), { recursive: true });
    mkdirSync(join(made, 'usr/bin'), { recursive: true });
    const control = {
      ...{ Package: 'nodejs', Version: process.versions.node, Architecture: 'all' },
      ...{ Maintainer: 'test <root@localhost>', Description: 'the Node of this test' },
    };
    const lines = Object.entries(control).map(([name, value]) => `${name}: ${value}\n`);
    writeFileSync(join(made, 'DEBIAN/control'), lines.join(''));
    await run(['mv', join(root, 'usr/local/bin/node'), join(made, 'usr/bin/node')]);
    await run(['dpkg-deb', '--build', '-Znone', made, join(root, 'nodejs.deb')]);
    await inRoot('dpkg', '--install', '/nodejs.deb');
  }

  test('wants a Node that is new enough; with it, it is installed, and its example plan is valid', async () => {
    await assert.rejects(inRoot('dpkg', '--install', '/kit.deb'), /depends on nodejs \(>= 20\.11\)/);
    await installNode();
    await inRoot('dpkg', '--install', '/kit.deb');
    assert.equal(
      (await inRoot('dpkg-query', '--show', '--showformat=${Conffiles}', 'redis-to-keydb')).trim().split(' ')[0],
      `/${PLAN}`,
    );
    assert.match(await inRoot('shadow-proxy', '--plan', `/${PLAN}`, '--check'), /the plan is valid/);
    assert.match(await inRoot('shadow-compare', '--version'), /^\d/);
  });

  test('its proxy serves as its own user, with the command of its unit, and drains on SIGTERM', async () => {
    const unit = readFileSync(join(root, 'usr/lib/systemd/system/shadow-proxy.service'), 'utf8');
    const value = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)![1];
    assert.equal(value('ReadWritePaths'), '/var/lib/redis-to-keydb');
    const [source, target, port, admin] = [await startRedis(), await startTarget(), await getPort(), await getPort()];
    const example = readFileSync(join(root, PLAN), 'utf8');
    const plan = example
      .replace('redis://127.0.0.1:6400', `redis://127.0.0.1:${port}`)
      .replace('redis://127.0.0.1:6379', source.url)
      .replace('redis://127.0.0.1:6390', target.url)
      .replace('127.0.0.1:9400', `127.0.0.1:${admin}`);
    writeFileSync(join(root, PLAN), plan);
    // Its mounts end with it.
    const script =
      'mount -t proc proc "$1/proc" && user=$2 && root=$1 && shift 2 && exec chroot "--userspec=$user" "$root" "$@"';
    const command = [root, `${value('User')}:${value('Group')}`, ...value('ExecStart').split(' ')];
    const child = spawn('unshare', ['--mount', 'sh', '-euc', script, 'sh', ...command], { env: ENVIRONMENT });
    try {
      let log = '';
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk: Buffer) => (log += chunk.toString()));
      for (const until = Date.now() + 30_000; !log.includes('"listening"'); await sleep(50))
        assert.ok(child.exitCode === null && Date.now() < until, log);
      assert.doesNotMatch(log, /native module cannot be loaded/);
      const client = new Redis(port);
      assert.equal(await client.set('session:1', 'value'), 'OK');
      client.disconnect();
      child.kill('SIGTERM');
      assert.deepEqual(await once(child, 'close'), [0, null], log);
    } finally {
      child.kill('SIGKILL');
    }
    // Its plan was changed: a newer package asks, and keeps it where it may not ask.
    await inRoot('dpkg', '--install', '--force-confdef', '/kit.deb');
    assert.equal(readFileSync(join(root, PLAN), 'utf8'), plan);
  });
});
