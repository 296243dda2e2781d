/**
 * The image of the Dockerfile, built without a daemon on a Debian of debootstrap, and its entry point, run as the image
 * says: its user, its environment, on a read-only root.
 *
 * Needs real processes: the image's entry point, on a root file system that is read-only.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../shadow-proxy/src/local/port.js';
import { Redis } from 'ioredis';
import { run } from '../../verification/rehearsal/run.js';
import { startRedis, startTarget, stopServers } from '../../shadow-proxy/src/local/servers.js';
import { addNpm, makeDebian } from './debian.js';
import { missing } from '../../shadow-proxy/test/support/needs.js';

/** Of the repository; this file runs in `dist/packaging/test`. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const STATE = '/var/lib/shadow-proxy';
const MB = 1_000_000;

/** What of its configuration is run. */
interface Configured {
  readonly User: string;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly Healthcheck: { readonly Test: readonly string[] };
}

describe('the image', { skip: await missing('linux', 'root', 'buildah', 'debootstrap', 'unshare') }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'image-'));
  const store = ['--storage-driver', 'vfs', '--root', join(folder, 'store'), '--runroot', join(folder, 'run')];
  const buildah = async (...args: string[]): Promise<string> =>
    (await run(['buildah', ...store, ...args], { cwd: ROOT, env: { BUILDAH_ISOLATION: 'chroot' } })).stdout.trim();
  let root: string;
  let configured: Configured;
  let proxy: ChildProcess | null = null;

  before(async () => {
    const base = join(folder, 'base');
    await makeDebian(base);
    await addNpm(base);
    const made = await buildah('from', 'scratch');
    await buildah('copy', '--quiet', made, base, '/');
    await buildah('config', '--env', 'NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt', made);
    await buildah('commit', '--quiet', '--rm', made, 'base');
    rmSync(base, { recursive: true });
    await buildah('build', '--format', 'docker', '--build-arg', 'BASE=localhost/base', '--tag', 'kit', '.');
    root = await buildah('mount', await buildah('from', 'localhost/kit'));
    const { Docker } = JSON.parse(await buildah('inspect', '--type', 'image', 'localhost/kit')) as {
      Docker: { config: Configured };
    };
    configured = Docker.config;
  });

  after(async () => {
    proxy?.kill('SIGKILL');
    await stopServers();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Starts a command of the image in its place; its process is the command's own. */
  function inImage(command: readonly string[], binds: Readonly<Record<string, string>>, env: readonly string[]) {
    const script = [
      `mount --bind ${root} ${root}`,
      ...Object.entries(binds).map(([from, to]) => `mkdir -p ${root}${to} && mount --bind ${from} ${root}${to}`),
      `mount -t proc proc ${root}/proc && mount --bind /dev ${root}/dev`,
      `mount -o remount,bind,ro ${root}`,
      `exec chroot --userspec=${configured.User} ${root} "$@"`,
    ].join('\n');
    return spawn('unshare', ['--mount', 'sh', '-euc', script, 'sh', ...command], {
      env: Object.fromEntries([...configured.Env, ...env].map((line) => line.split(/=(.*)/, 2) as [string, string])),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  }

  test('has a release without sources or compiler, and adds less than 50 MB to its base', () => {
    const has = (path: string): boolean => {
      try {
        return readFileSync(join(root, path)).length > 0;
      } catch {
        return false;
      }
    };
    assert.ok(has('kit/dist/shadow-proxy/native/front.node'), 'the native module');
    for (const path of ['kit/tsconfig.json', 'kit/shadow-proxy/src/main.ts', 'usr/bin/gcc'])
      assert.ok(!has(path), `${path} is in the image`);
    const bytes = Number(execFileSync('du', ['-sb', join(root, 'kit')], { encoding: 'utf8' }).split('\t')[0]);
    assert.ok(bytes < 50 * MB, `${bytes} bytes besides the base`);
  });

  test('serves as its user on a read-only root, is healthy, and drains on SIGTERM', async () => {
    assert.match(configured.User, /^[1-9]\d*:[1-9]\d*$/, 'not root, and a number');
    const [source, target] = [await startRedis(), await startTarget()];
    const [port, admin] = [await freePort(), await freePort()];
    const [plan, state] = [join(folder, 'plan'), join(folder, 'state')];
    for (const path of [plan, state]) mkdirSync(path);
    chownSync(state, ...(configured.User.split(':').map(Number) as [number, number]));
    const shard = { name: 'cache-0', listen: `redis://127.0.0.1:${port}`, source: source.url, target: target.url };
    const written = {
      ...{ version: 1, name: 'image', shards: [shard], default: { stage: 'shadow' }, state: STATE },
      workloads: [{ name: 'sessions', keys: ['session:*'], class: 'general', stage: 'shadow' }],
      admin: { listen: `127.0.0.1:${admin}` },
    };
    writeFileSync(join(plan, 'migration.yaml'), JSON.stringify(written));
    const binds = { [plan]: '/etc/shadow-proxy', [state]: STATE };
    const env = [`HEALTH_URL=http://127.0.0.1:${admin}/healthz`];

    const command = [...configured.Entrypoint, '--plan', '/etc/shadow-proxy/migration.yaml'];
    const child = (proxy = inImage(command, binds, env));
    let log = '';
    for (const stream of [child.stdout, child.stderr]) stream!.on('data', (chunk: Buffer) => (log += chunk.toString()));
    for (const until = Date.now() + 30_000; !log.includes('"listening"'); await sleep(50))
      assert.ok(child.exitCode === null && Date.now() < until, log);
    assert.doesNotMatch(log, /native module cannot be loaded/);

    const client = new Redis(port);
    // Its connection is closed when the proxy has drained.
    client.on('error', () => undefined);
    assert.equal(await client.set('session:1', 'value'), 'OK');
    const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
    assert.match(status, new RegExp(`^Uid:\\t${configured.User.split(':')[0]}\\t`, 'm'));
    const [kind, ...check] = configured.Healthcheck.Test;
    assert.equal(kind, 'CMD');
    assert.deepEqual(await once(inImage(check, {}, env), 'close'), [0, null], 'healthy');
    assert.deepEqual(await once(inImage(['touch', '/kit/written'], {}, []), 'close'), [1, null], 'read-only');

    child.kill('SIGTERM');
    assert.deepEqual(await once(child, 'close'), [0, null], log);
    assert.match(log, /"draining"/);
    assert.deepEqual(await once(inImage(check, {}, env), 'close'), [1, null], 'a proxy that is down is not healthy');
    client.disconnect();
    const mirror = new Redis(target.port);
    assert.equal(await mirror.get('session:1'), 'value');
    mirror.disconnect();
  });
});
