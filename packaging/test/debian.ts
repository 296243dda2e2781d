/** A Debian in a folder, with this Node: what the image is built on, and the package is installed in. */
import { copyFileSync, cpSync, existsSync, mkdirSync, realpathSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../../verification/rehearsal/run.js';

const MIRROR = process.env.DEBIAN_MIRROR ?? 'http://deb.debian.org/debian';
/** Of a Debian, too. */
export const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';

/** Makes a bare one in a minute, with the network. It trusts the certificates that this machine trusts. */
export async function debootstrap(root: string, suite: string, packages: readonly string[]): Promise<void> {
  const include = ['ca-certificates', ...packages].join(',');
  await run(['debootstrap', '--variant=minbase', `--include=${include}`, suite, root, MIRROR]);
  if (existsSync(CERTIFICATES)) copyFileSync(CERTIFICATES, join(root, CERTIFICATES));
}

/** Debian 12 with this Node. */
export async function makeDebian(root: string, packages: readonly string[] = []): Promise<void> {
  await debootstrap(root, 'bookworm', ['libatomic1', ...packages]);
  copyFileSync(process.execPath, join(root, 'usr/local/bin/node'));
}

/** Adds this machine's npm, with npx. */
export async function addNpm(root: string): Promise<void> {
  const npm = join((await run(['npm', 'root', '--global'])).stdout.trim(), 'npm');
  const modules = join(root, 'usr/local/lib/node_modules');
  mkdirSync(modules, { recursive: true });
  cpSync(realpathSync(npm), join(modules, 'npm'), { recursive: true });
  for (const name of ['npm', 'npx'])
    symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, join(root, 'usr/local/bin', name));
}
