/**
 * Writes the file of a release in releases/, from the answers of its server and a KeyDB:
 *
 *   node dist/shadow-proxy/src/command/generate-release.js redis://127.0.0.1:6379 redis://127.0.0.1:6390 \
 *     shadow-proxy/src/command/releases
 *
 * **All keys, scripts and functions of both are deleted.** It prints what the proxy does not know about the release
 * yet: commands that need a row or a rule. Add the file to releases.ts.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Redis } from 'ioredis';
import { FORMS } from './forms.generated.js';
import { probeForms } from './generate-forms.js';
import { sourceRows } from './generate.js';
import type { GeneratedForm } from './generated-rows.js';
import { handlingOf } from './policy.js';
import { continues, softwareOf, type Release, type Software } from './release.js';
import { RELEASES } from './releases.js';
import { rowOf } from './rows.js';
import { COMMANDS, type GeneratedCommand } from './table.generated.js';

export interface Generated extends Release {
  /** What the proxy does not know about the release, one line each. */
  readonly unknown: readonly string[];
}

/**
 * What a release adds to the earlier ones. This deletes the data of both servers.
 * @param withItself whether the release's own file, if there is one, counts as known, too
 */
export async function generateRelease(sourceUrl: string, targetUrl: string, withItself = false): Promise<Generated> {
  const source = new Redis(sourceUrl, { lazyConnect: true });
  try {
    const software = softwareOf(fieldsOf(await source.info('server')), false);
    const before = RELEASES.filter(
      (each) => (withItself || each.version !== software.version) && continues(software, each),
    );
    const known = new Map([...COMMANDS, ...before.flatMap(({ commands }) => commands)].map((row) => [row[0], row]));
    for (const [name, arity] of before.flatMap(({ arities }) => arities)) {
      const [, , ...rest] = known.get(name)!;
      known.set(name, [name, arity, ...rest]);
    }
    const rows = [...(await sourceRows(source)).values()].sort((a, b) => (a[0] < b[0] ? -1 : 1));
    const commands = rows.filter(([name]) => !known.has(name));
    const { forms } = await probeForms(sourceUrl, targetUrl);
    const listed = new Set([...FORMS, ...before.flatMap((each) => each.forms)].map(formId));
    const base = new Set(COMMANDS.map(([name]) => name));
    // A new command needs no further entry. Commands that the proxy answers itself reach no server.
    const mustBeListed = ([command, lacks]: GeneratedForm): boolean =>
      lacks === 'target' && base.has(command) && handlingOf(command, true, false) !== 'local';
    return {
      ...software,
      commands,
      arities: rows.flatMap(([name, arity]) => {
        const before = known.get(name)?.[1] ?? 0;
        return before === 0 || before === arity ? [] : [[name, arity] as const];
      }),
      forms: forms.filter((form) => mustBeListed(form) && !listed.has(formId(form))),
      unknown: [
        ...commands.filter(([name]) => !commands.some(([other]) => other.startsWith(`${name}|`))).flatMap(unknownOf),
        ...rows.flatMap((row) => changeOf(row, known.get(row[0]))),
      ],
    };
  } finally {
    source.disconnect();
  }
}

const fieldsOf = (info: string): Map<string, string> =>
  new Map([...info.matchAll(/^(\w+):(.*?)\r?$/gm)].map(([, name, value]) => [name, value]));

const formId = ([command, lacks, how, words]: GeneratedForm): string => [command, lacks, how, words].join(' ');

/** Whether a new command needs work by hand. */
function unknownOf([name, , , flags, ...keys]: GeneratedCommand): string[] {
  const row = rowOf(name);
  const specs = keys.filter((spec) => !spec.startsWith('not_key'));
  if (row?.readKeys === undefined && specs.some((spec) => !/^\S+ \d/.test(spec)))
    return [`${name}: its keys depend on its options (${specs.join('; ')}): it needs readKeys`];
  try {
    handlingOf(name, specs.length > 0, false);
  } catch (problem) {
    return [(problem as Error).message];
  }
  return flags.includes('write') && row?.effect === undefined
    ? [`${name}: a write without an effect: where the mirror does not have it, its keys are copied`]
    : [];
}

/** The difference between a command's entry and the table. */
function changeOf([name, , , , ...keys]: GeneratedCommand, known: GeneratedCommand | undefined): string[] {
  if (known === undefined || known[1] === 0) return [];
  const before = known.slice(4) as string[];
  const places = (specs: readonly string[]): string => specs.map((spec) => spec.replace(/^\S+/, '')).join(';');
  // It is harmless if a key is no longer read.
  const writesMore = keys.some((spec, i) => !spec.startsWith('RO') && before[i]?.startsWith('RO'));
  if (places(before) === places(keys) && !writesMore) return [];
  return [`${name}: keys "${before.join('; ')}" before, now "${keys.join('; ')}"`];
}

const quoted = (field: string | number): string =>
  typeof field === 'string' ? `'${field.replaceAll("'", "\\'")}'` : String(field);
const lines = (rows: readonly (readonly (string | number)[])[]): string =>
  rows.map((row) => `    [${row.map(quoted).join(', ')}],\n`).join('');

const titles: Readonly<Record<Software['name'], string>> = { redis: 'Redis', valkey: 'Valkey', keydb: 'KeyDB' };

const render = ({ name, version, commands, arities, forms }: Release): string => `/**
 * Generated by generate-release.ts from ${titles[name]} ${version}. Do not edit. The rows are as in table.generated.ts
 * and forms.generated.ts.
 */
import type { Release } from '../release.js';

export const RELEASE: Release = {
  name: '${name}',
  version: '${version}',
  commands: [
${lines(commands)}  ],
  arities: [
${lines(arities)}  ],
  forms: [
${lines(forms)}  ],
};
`;

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [sourceUrl, targetUrl, folder] = process.argv.slice(2);
  if (folder === undefined) throw new Error('usage: node generate-release.js SOURCE_URL TARGET_URL FOLDER');
  const release = await generateRelease(sourceUrl, targetUrl);
  const [major, minor] = release.version.split('.');
  writeFileSync(join(folder, `${release.name}-${major}.${minor}.generated.ts`), render(release));
  process.stdout.write(release.unknown.map((line) => `${line}\n`).join(''));
}
