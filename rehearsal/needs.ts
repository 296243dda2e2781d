/** What this machine has to have, and how to get it where it has not. */
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

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
export function missing(): string[] {
  if (process.platform !== 'linux') return [`Linux: this is ${process.platform}`];
  const lacks =
    process.getuid?.() === 0 ? [] : ['root: namespaces, mounts and booting hosts need it (sudo npm run rehearsal)'];
  for (const [program, remedy] of Object.entries(PROGRAMS))
    if (onPath(program) === null) lacks.push(`${program}: ${remedy}`);
  if (keydbServer() === null)
    lacks.push('keydb-server: build or install KeyDB 6.3.4 and put it on the PATH, or set KEYDB_SERVER');
  return lacks;
}

export const keydbServer = (): string | null =>
  process.env.KEYDB_SERVER && existsSync(process.env.KEYDB_SERVER) ? process.env.KEYDB_SERVER : onPath('keydb-server');

function onPath(program: string): string | null {
  for (const directory of (process.env.PATH ?? '').split(delimiter)) {
    try {
      accessSync(join(directory || '.', program), constants.X_OK);
      return join(directory || '.', program);
    } catch {
      // The next one.
    }
  }
  return null;
}
