/** What this machine has to have, and how to get it where it has not. */
import { findKeydb, onPath } from '../../shadow-proxy/src/local/program.js';

const PROGRAMS: Readonly<Record<string, string>> = {
  debootstrap: 'apt-get install debootstrap',
  'dpkg-scanpackages': 'apt-get install dpkg-dev',
  'systemd-nspawn': 'apt-get install systemd-container',
  ip: 'apt-get install iproute2',
  mount: 'apt-get install mount',
  ssh: 'apt-get install openssh-client',
  'ssh-keygen': 'apt-get install openssh-client',
  python3: 'apt-get install python3 python3-venv',
  tar: 'apt-get install tar',
};

/** Empty where nothing is missing. */
export async function missing(): Promise<string[]> {
  if (process.platform !== 'linux') return [`Linux: this is ${process.platform}`];
  const lacks =
    process.getuid?.() === 0 ? [] : ['root: namespaces, mounts and booting hosts need it (sudo npm run rehearsal)'];
  for (const [program, remedy] of Object.entries(PROGRAMS))
    if (onPath(program) === null) lacks.push(`${program}: ${remedy}`);
  try {
    if ((await keydbServer()) === null)
      lacks.push(
        'keydb-server: install KeyDB 6.3.4 (docs/install.md#keydb) and put it on the PATH, or set KEYDB_SERVER',
      );
  } catch (error) {
    lacks.push((error as Error).message);
  }
  return lacks;
}

/** The hosts get a program of this machine: one in a container will not do. */
export async function keydbServer(): Promise<string | null> {
  const found = await findKeydb();
  return found === null || found.container ? null : found.path;
}
