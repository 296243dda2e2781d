/**
 * The Debian package, installed in a Debian of debootstrap that is then booted: its systemd starts the unit, the proxy
 * serves, and drains when it is stopped.
 *
 * Needs real processes: a Debian that is booted with systemd.
 */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../shadow-proxy/src/local/port.js';
import { Redis } from 'ioredis';
import { run } from '../../verification/rehearsal/run.js';
import { startRedis, startTarget, stopServers } from '../../shadow-proxy/src/local/servers.js';
import { ROOT } from '../npm/pack.js';
import { makeDebian } from './debian.js';
import { Host } from './host.js';
import { missing } from '../../shadow-proxy/test/support/needs.js';

const ENVIRONMENT = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', NODE_ENV: 'production' };
const PLAN = 'etc/redis-to-keydb/migration.yaml';
const UNIT = 'shadow-proxy.service';

const skip = await missing('linux', 'root', 'debootstrap', 'dpkg-deb', 'systemd-nspawn', 'nsenter');

describe('the Debian package', { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'deb-'));
  const root = join(folder, 'root');
  const inRoot = async (...command: string[]): Promise<string> =>
    (await run(['chroot', root, ...command], { env: ENVIRONMENT })).stdout;
  let host: Host | null = null;

  before(async () => {
    await makeDebian(root, ['systemd', 'systemd-sysv']);
    await run(['sh', join(ROOT, 'packaging/deb/build.sh'), join(root, 'kit.deb')]);
  });
  after(async () => {
    await host?.off();
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
    await assert.rejects(inRoot('dpkg', '--install', '/kit.deb'), /depends on nodejs \(>= 20\.19\)/);
    await installNode();
    await inRoot('dpkg', '--install', '/kit.deb');
    assert.equal(
      (await inRoot('dpkg-query', '--show', '--showformat=${Conffiles}', 'redis-to-keydb')).trim().split(' ')[0],
      `/${PLAN}`,
    );
    assert.match(await inRoot('shadow-proxy', '--plan', `/${PLAN}`, '--check'), /the plan is valid/);
    assert.match(await inRoot('shadow-compare', '--version'), /^\d/);
  });

  /** The example with ports of this machine. */
  async function writePlan(): Promise<{ port: number; admin: number; target: number; plan: string }> {
    const [source, target, port, admin] = [await startRedis(), await startTarget(), await freePort(), await freePort()];
    const plan = readFileSync(join(root, PLAN), 'utf8')
      .replace('redis://127.0.0.1:6400', `redis://127.0.0.1:${port}`)
      .replace('redis://127.0.0.1:6379', source.url)
      .replace('redis://127.0.0.1:6390', target.url)
      .replace('127.0.0.1:9400', `127.0.0.1:${admin}`)
      .replace(/stage: "off"( +#)/, 'stage: shadow$1');
    writeFileSync(join(root, PLAN), plan);
    return { port, admin, target: target.port, plan };
  }

  test('systemd starts its unit on a booted host: it serves as its own user, and drains when it is stopped', async () => {
    const { port, admin, target, plan } = await writePlan();
    host = await Host.boot(root, `deb-${process.pid}`);
    assert.equal(
      (await host.run('sh', '-c', `systemctl is-active ${UNIT} || :`)).trim(),
      'inactive',
      'not started by itself',
    );
    await host.run('systemctl', 'enable', '--now', UNIT);
    const journal = (): Promise<string> => host!.run('journalctl', `--unit=${UNIT}`, '--output=cat', '--no-pager');
    const ready = (): Promise<boolean> =>
      fetch(`http://127.0.0.1:${admin}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
    for (const until = Date.now() + 30_000; !(await ready()); await sleep(100))
      assert.ok(Date.now() < until, await journal());
    assert.doesNotMatch(await journal(), /native module cannot be loaded/);
    const main = (await host.run('systemctl', 'show', '--value', '--property=MainPID', UNIT)).trim();
    assert.equal((await host.run('stat', '--format=%U', `/proc/${main}`)).trim(), 'shadow-proxy');
    assert.equal((await host.run('stat', '--format=%a %U', '/var/lib/redis-to-keydb')).trim(), '700 shadow-proxy');

    const client = new Redis(port);
    client.on('error', () => undefined);
    assert.equal(await client.set('session:1', 'value'), 'OK');
    await host.run('systemctl', 'stop', UNIT);
    client.disconnect();
    assert.match(await journal(), /"msg":"drained"/);
    assert.equal((await host.run('systemctl', 'show', '--value', '--property=Result', UNIT)).trim(), 'success');
    const mirror = new Redis(target);
    assert.equal(await mirror.get('session:1'), 'value');
    mirror.disconnect();

    // Its plan was changed: a newer package asks, and keeps it where it may not ask. It restarts nothing.
    await host.run('systemctl', 'start', UNIT);
    const running = await host.run('systemctl', 'show', '--value', '--property=MainPID', UNIT);
    await host.run('dpkg', '--install', '--force-confdef', '/kit.deb');
    assert.equal(readFileSync(join(root, PLAN), 'utf8'), plan);
    assert.equal(await host.run('systemctl', 'show', '--value', '--property=MainPID', UNIT), running);

    await host.run('dpkg', '--remove', 'redis-to-keydb');
    assert.ok(!(await ready()), 'a package that is removed serves no more');
    assert.match(await host.run('ls', '/var/lib/redis-to-keydb/cache-0'), /state\.json/);
  });
});
