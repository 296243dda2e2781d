/**
 * The three ways to install, as docs/install.md has them, each in a fresh Debian 13 of debootstrap: the npm package in
 * an empty folder, the Debian package with Debian's own Node, and the image. The demo passes in each; how long each
 * took is printed.
 *
 * Needs real processes: npm, dpkg and the image in a Debian where nothing else is installed.
 */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test, type TestContext } from 'node:test';
import { run } from '../../verification/rehearsal/run.js';
import { ROOT } from '../npm/pack.js';
import { addNpm, CERTIFICATES, debootstrap } from './debian.js';
import { missing } from '../../shadow-proxy/test/support/needs.js';

const ENVIRONMENT = {
  ...{ PATH: '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root', NODE_EXTRA_CA_CERTS: CERTIFICATES },
  // The package of redis-server starts no server of its own.
  ...{ DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' },
};
const APT = ['apt-get', 'install', '--yes', '--quiet', '--no-install-recommends'];

describe(
  'installed in a fresh Debian',
  { skip: await missing('linux', 'root', 'debootstrap', 'buildah', 'unshare', 'npm') },
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'fresh-'));
    const fresh = join(folder, 'fresh');

    before(async () => {
      await debootstrap(fresh, 'trixie', []);
      // The demo's source, and what stands in for KeyDB.
      await inside(fresh, `apt-get update --quiet && ${APT.join(' ')} redis-server`);
    });
    after(() => rmSync(folder, { recursive: true, force: true }));

    async function copyOf(name: string): Promise<string> {
      const root = join(folder, name);
      await run(['cp', '--archive', fresh, root]);
      return root;
    }

    /** Runs a script of sh in it, with a /proc, a /dev and a /tmp that end with it. */
    async function inside(root: string, script: string, user = '0:0'): Promise<string> {
      const mounts = 'mount -t proc proc "$1/proc" && mount --bind /dev "$1/dev" && mount -t tmpfs tmpfs "$1/tmp"';
      const command = [
        'unshare',
        '--mount',
        'sh',
        '-euc',
        `${mounts} && exec chroot --userspec="$2" "$1" sh -euc "$3"`,
      ];
      return (await run([...command, 'sh', root, user, script], { env: ENVIRONMENT })).stdout;
    }

    /** Runs both steps, and prints how long they took. */
    async function timed(t: TestContext, install: () => Promise<unknown>, demo: () => Promise<string>): Promise<void> {
      const times: number[] = [];
      const time = async <T>(work: () => Promise<T>): Promise<T> => {
        const began = performance.now();
        const result = await work();
        times.push((performance.now() - began) / 1000);
        return result;
      };
      await time(install);
      assert.match(await time(demo), /^It works\./m);
      t.diagnostic(`installed in ${times[0].toFixed(0)} s, the demo passed in ${times[1].toFixed(0)} s`);
    }

    test('the npm package: its demo passes', async (t) => {
      const root = await copyOf('npm');
      await inside(root, `${APT.join(' ')} nodejs`);
      await addNpm(root);
      mkdirSync(join(root, 'packed'));
      await run(['npm', 'pack', '.', '--pack-destination', join(root, 'packed')], { cwd: ROOT });
      const [file] = readdirSync(join(root, 'packed'));
      const install = `mkdir /empty && cd /empty && npm install --no-audit --no-fund /packed/${file}`;
      const demo = 'cd /empty && npx --no-install shadow-compare demo --for 5s';
      await timed(
        t,
        () => inside(root, install),
        () => inside(root, demo),
      );
    });

    test("the Debian package, with Debian's own Node: its demo passes", async (t) => {
      const root = await copyOf('deb');
      await run(['sh', join(ROOT, 'packaging/deb/build.sh'), join(root, 'kit.deb')]);
      const install = `${APT.join(' ')} /kit.deb`;
      await timed(
        t,
        () => inside(root, install),
        () => inside(root, 'shadow-compare demo --for 5s'),
      );
    });

    test('the image: its demo passes as its user', async (t) => {
      const root = await copyOf('base');
      await inside(root, `${APT.join(' ')} nodejs`);
      await addNpm(root);
      const store = ['--storage-driver', 'vfs', '--root', join(folder, 'store'), '--runroot', join(folder, 'run')];
      const buildah = async (...args: string[]): Promise<string> =>
        (await run(['buildah', ...store, ...args], { cwd: ROOT, env: { BUILDAH_ISOLATION: 'chroot' } })).stdout.trim();
      const made = await buildah('from', 'scratch');
      await buildah('copy', '--quiet', made, root, '/');
      await buildah('config', '--env', 'NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt', made);
      await buildah('commit', '--quiet', '--rm', made, 'base');
      let image = '';
      const build = async (): Promise<void> => {
        await buildah('build', '--format', 'docker', '--build-arg', 'BASE=localhost/base', '--tag', 'kit', '.');
        image = await buildah('mount', await buildah('from', 'localhost/kit'));
      };
      await timed(t, build, () => inside(image, 'HOME=/tmp shadow-compare demo --for 5s', '1000:1000'));
    });
  },
);
