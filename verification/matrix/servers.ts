/** The server programs of a folder, one for each version: `redis-7.2.6`, `valkey-8.1.1`. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { compareVersions, type Software } from '../../shadow-proxy/src/command/release.js';

export interface ServerProgram extends Software {
  readonly path: string;
}

/** What a whole run has: a source of each of these, whichever patch release. */
export const WANTED: readonly Software[] = [
  ...['6.2', '7.0', '7.2', '7.4', '8.0', '8.2', '8.6'].map((version) => ({ name: 'redis' as const, version })),
  ...['8.1', '9.1'].map((version) => ({ name: 'valkey' as const, version })),
];

const TITLES: Readonly<Record<Software['name'], string>> = { redis: 'Redis', valkey: 'Valkey', keydb: 'KeyDB' };

/** Such as `Redis 7.2.6`. */
export const titleOf = ({ name, version }: Software): string => `${TITLES[name]} ${version}`;

/** The servers that may be a source. Redis before Valkey, older before newer. @throws {Error} as `programsIn` */
export const serversIn = (folder: string): ServerProgram[] => programsIn(folder).filter(({ name }) => name !== 'keydb');

/** All programs of a folder, by name and version. @throws {Error} where the folder cannot be read */
export function programsIn(folder: string): ServerProgram[] {
  return readdirSync(folder)
    .flatMap((file): ServerProgram[] => {
      const [, name, version] = /^(redis|valkey|keydb)-(\d+\.\d+(?:\.\d+)?)$/.exec(file) ?? [];
      return version === undefined ? [] : [{ name: name as Software['name'], version, path: join(folder, file) }];
    })
    .sort((a, b) => (a.name === b.name ? compareVersions(a.version, b.version) : a.name < b.name ? -1 : 1));
}

/** Which of the wanted ones are not among these. */
export const missingIn = (servers: readonly Software[]): Software[] =>
  WANTED.filter(
    (wanted) =>
      !servers.some(({ name, version }) => name === wanted.name && compareVersions(version, wanted.version) === 0),
  );
