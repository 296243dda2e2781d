/**
 * What every host is booted from: a Debian with systemd and ssh, and a repository with the packages that the playbooks
 * install, so that hosts need no network but their own. Made once, and kept outside the repository.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../run.js';

const SUITE = 'bookworm';
const MIRROR = process.env.DEBIAN_MIRROR ?? 'http://deb.debian.org/debian';
/** Of the bare host. Ansible needs Python, and its apt module python3-apt. */
const BASE = [
  'systemd',
  'systemd-sysv',
  'dbus',
  'openssh-server',
  'python3',
  'python3-apt',
  'iproute2',
  'procps',
  'ca-certificates',
];
/** What the playbooks install. */
const OFFERED = [
  ...['redis-server', 'redis-tools', 'haproxy', 'prometheus', 'prometheus-node-exporter', 'prometheus-redis-exporter'],
  ...['prometheus-alertmanager', 'libcurl4', 'libuuid1', 'libssl3', 'libatomic1', 'e2fsprogs'],
];

export interface Image {
  /** The lower layer of every host's file system. */
  readonly root: string;
  /** A flat apt repository. */
  readonly repository: string;
}

/** The cached image, or a new one: a minute or two, with the network. */
export async function prepareImage(cache: string, log: string, say: (text: string) => void): Promise<Image> {
  const key = createHash('sha256')
    .update(JSON.stringify([SUITE, MIRROR, BASE, OFFERED]))
    .digest('hex')
    .slice(0, 12);
  const made = join(cache, `hosts-${key}`);
  const image = { root: join(made, 'root'), repository: join(made, 'repository') };
  if (existsSync(made)) return image;
  say(`Making the hosts' image in ${cache}: once, with debootstrap and apt …`);
  const part = `${made}.part`;
  rmSync(part, { recursive: true, force: true });
  const [root, repository] = [join(part, 'root'), join(part, 'repository')];
  mkdirSync(repository, { recursive: true });
  await run(['debootstrap', '--variant=minbase', `--include=${BASE.join(',')}`, SUITE, root, MIRROR], { log });
  writeFileSync(
    join(root, 'etc/apt/sources.list'),
    ['', '-updates'].map((pocket) => `deb ${MIRROR} ${SUITE}${pocket} main\n`).join(''),
  );
  await run(['chroot', root, 'apt-get', 'clean'], { log });
  await run(['chroot', root, 'apt-get', 'update', '-qq'], { log });
  await run(
    ['chroot', root, 'apt-get', 'install', '-y', '-qq', '--no-install-recommends', '--download-only', ...OFFERED],
    { log },
  );
  await run(
    [
      'sh',
      '-c',
      'mv "$1"/var/cache/apt/archives/*.deb "$2" && cd "$2" && dpkg-scanpackages --multiversion . > Packages',
      'sh',
      root,
      repository,
    ],
    { log },
  );
  furnish(root);
  renameSync(part, made);
  return image;
}

/**
 * What differs from a Debian as it comes: its one repository, no keys and no machine ID of the image's, a quiet boot.
 */
function furnish(root: string): void {
  const put = (path: string, content: string): void => writeFileSync(join(root, path), content);
  put('etc/apt/sources.list', 'deb [trusted=yes] file:/srv/repository ./\n');
  put('etc/apt/apt.conf.d/90offline', 'Acquire::Languages "none";\nAPT::Install-Recommends "false";\n');
  put('etc/dpkg/dpkg.cfg.d/90quick', 'force-unsafe-io\npath-exclude=/usr/share/doc/*\npath-exclude=/usr/share/man/*\n');
  put('etc/machine-id', '');
  // The lists are of another repository: without them the first installation on a host reads those of ours.
  const lists = join(root, 'var/lib/apt/lists');
  rmSync(lists, { recursive: true });
  mkdirSync(lists);
  utimesSync(lists, 0, 0);
  mkdirSync(join(root, 'srv/repository'), { recursive: true });
  for (const unit of [
    'getty.target',
    'apt-daily.timer',
    'apt-daily-upgrade.timer',
    'fstrim.timer',
    'e2scrub_all.timer',
    'man-db.timer',
    'systemd-logind.service',
  ]) {
    rmSync(join(root, 'etc/systemd/system', unit), { force: true });
  }
}
