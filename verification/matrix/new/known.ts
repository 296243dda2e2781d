/** What the servers of the matrix have said: known-servers.json. What another one says beyond it is unknown. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { compareVersions, type Software } from '../../../shadow-proxy/src/command/release.js';
import type { Facts } from './probe.js';

/** By version, such as `redis-8.6.2`. */
export type Known = Readonly<Record<string, Facts>>;

const FILE = fileURLToPath(new URL('../../../../verification/matrix/new/known-servers.json', import.meta.url));

export const readKnown = (): Known => (existsSync(FILE) ? (JSON.parse(readFileSync(FILE, 'utf8')) as Known) : {});
export const writeKnown = (known: Known): void => writeFileSync(FILE, `${JSON.stringify(known, null, 1)}\n`);

export const nameOf = ({ name, version }: Software): string => `${name}-${version}`;

/** What is to be done about what a server says, a line each. */
export function unknownOf(
  software: Software,
  facts: Facts,
  known: Known,
  examples: ReadonlyMap<string, string>,
): string[] {
  const isNew = (kind: keyof Facts): string[] => {
    const before = new Set(Object.values(known).flatMap((each) => each[kind]));
    return facts[kind].filter((each) => !before.has(each));
  };
  const before = closestOf(software, known);
  const missing = (kind: 'info' | 'settings'): string[] => {
    const now = new Set(facts[kind]);
    return (before?.[kind] ?? []).filter((each) => !now.has(each));
  };
  return [
    ...isNew('info').map((name) => `INFO: ${name} is new`),
    ...missing('info').map((name) => `INFO: ${name} is missing: look for its readers`),
    ...isNew('settings').map((name) => `setting: ${name} is new`),
    ...missing('settings').map((name) => `setting: ${name} is missing: look for its readers`),
    ...isNew('choices').map((choice) => `setting: ${choice} is a new choice`),
    ...isNew('errors').map((said) => `error: ${said} (${examples.get(said)}): compare/wording.ts may have to know it`),
  ];
}

/** The newest of the same software that is no newer than it. */
function closestOf(software: Software, known: Known): Facts | undefined {
  const versions = Object.keys(known).flatMap((key) => {
    const [, name, version] = /^(\w+)-(.*)$/.exec(key)!;
    return name === software.name && compareVersions(version, software.version) <= 0 ? [version] : [];
  });
  return known[`${software.name}-${versions.sort(compareVersions).at(-1)}`];
}
