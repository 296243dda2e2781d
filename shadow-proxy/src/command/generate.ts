/**
 * Writes `table.generated.ts` from the answers of two running servers:
 *
 *   node dist/shadow-proxy/src/command/generate.js redis://127.0.0.1:6379 redis://127.0.0.1:6390 \
 *     shadow-proxy/src/command/table.generated.ts
 *
 * The first is a Redis 7, whose `COMMAND` lists subcommands and key specifications; the second is a KeyDB, whose
 * `COMMAND` lists neither: its subcommands are read from each container's `HELP`. The same two servers always give the
 * same file.
 */
import { writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { Redis } from 'ioredis';
import type { GeneratedCommand } from './table.generated.js';

/**
 * One entry of `COMMAND`: name, arity, flags, first key, last key, step; since Redis 7 three more fields and the
 * subcommands.
 */
type Entry = readonly [
  string,
  number,
  readonly string[],
  number,
  number,
  number,
  unknown?,
  unknown?,
  (readonly FlatSpec[])?,
  (readonly Entry[])?,
];

/** A key specification as RESP2 has it: `flags, […], begin_search, [type, …, spec, […]], find_keys, […]`. */
type FlatSpec = readonly unknown[];

interface Row {
  sourceArity: number;
  targetArity: number;
  flags: readonly string[];
  keys: readonly string[];
}

/** The text of the generated file. */
export async function generateTable(sourceUrl: string, targetUrl: string): Promise<string> {
  const source = new Redis(sourceUrl, { lazyConnect: true });
  const target = new Redis(targetUrl, { lazyConnect: true });
  try {
    const rows = new Map<string, Row>();
    const containers: string[] = [];
    for (const entry of await entries(source)) addSource(entry, rows, containers);
    for (const [name, arity, flags, first, last, step] of await entries(target)) {
      const row = rows.get(name.toLowerCase());
      if (row !== undefined) row.targetArity = arity;
      else
        rows.set(name.toLowerCase(), {
          sourceArity: 0,
          targetArity: arity,
          flags,
          keys: legacyKeys(flags, first, last, step),
        });
    }
    for (const container of containers.filter((name) => rows.get(name)!.targetArity !== 0)) {
      for (const sub of await subcommands(target, container)) {
        const row = rows.get(`${container}|${sub}`);
        // Only the existence on the target is recorded; the container checks its arguments itself.
        if (row !== undefined) row.targetArity = row.sourceArity;
      }
    }
    return render(rows, await versionOf(source), await versionOf(target));
  } finally {
    source.disconnect();
    target.disconnect();
  }
}

const entries = async (server: Redis): Promise<readonly Entry[]> => (await server.call('COMMAND')) as readonly Entry[];

async function versionOf(server: Redis): Promise<string> {
  return /^redis_version:(\S+)/m.exec(await server.info('server'))![1];
}

/** The rows of a server of Redis 7 or later, by name; the target's arity is 0. */
export async function sourceRows(server: Redis): Promise<Map<string, GeneratedCommand>> {
  const rows = new Map<string, Row>();
  for (const entry of await entries(server)) addSource(entry, rows, []);
  return new Map(
    [...rows].map(([name, { sourceArity, flags, keys }]) => [
      name,
      [name, sourceArity, 0, [...flags].sort().join(' '), ...keys],
    ]),
  );
}

function addSource(entry: Entry, rows: Map<string, Row>, containers: string[]): void {
  const [name, arity, flags, , , , , , specs = [], subs = []] = entry;
  rows.set(name.toLowerCase(), { sourceArity: arity, targetArity: 0, flags, keys: specs.map(keySpecText) });
  if (subs.length > 0) containers.push(name.toLowerCase());
  for (const sub of subs) addSource(sub, rows, containers);
}

/** The first words of `HELP`'s lines that start with a capital; the first line names the container itself. */
async function subcommands(server: Redis, container: string): Promise<readonly string[]> {
  const help = (await server.call(container, 'HELP').catch(() => [])) as readonly string[];
  return help.slice(1).flatMap((line) => /^[A-Z][A-Z-]+/.exec(line)?.[0].toLowerCase() ?? []);
}

/** `flags begin find`, such as `RW,access 1` and `RO,access 2 -1/1/0`; the file's head explains it. */
function keySpecText(flat: FlatSpec): string {
  const spec = asObject(flat);
  const begin = asObject(spec.begin_search as FlatSpec);
  const find = asObject(spec.find_keys as FlatSpec);
  return [(spec.flags as string[]).join(','), beginText(begin), findText(find)].filter((part) => part !== '').join(' ');
}

function beginText({ type, spec }: Record<string, unknown>): string {
  const of = asObject(spec as FlatSpec);
  return type === 'index'
    ? String(of.index)
    : type === 'keyword'
      ? `${of.keyword as string}@${of.startfrom as number}`
      : '?';
}

function findText({ type, spec }: Record<string, unknown>): string {
  const of = asObject(spec as FlatSpec);
  if (type === 'unknown') return '';
  if (type === 'keynum') return `#${of.keynumidx as number}/${of.firstkey as number}/${of.keystep as number}`;
  const range = `${of.lastkey as number}/${of.keystep as number}/${of.limit as number}`;
  return range === '0/1/0' ? '' : range;
}

/** The keys of a command as a server before Redis 7 lists them, in the same form. */
function legacyKeys(flags: readonly string[], first: number, last: number, step: number): string[] {
  if (first === 0) return [];
  const access = flags.includes('write') ? 'RW' : 'RO';
  const relative = last < 0 ? last : last - first;
  return [relative === 0 ? `${access} ${first}` : `${access} ${first} ${relative}/${step}/0`];
}

function asObject(flat: FlatSpec): Record<string, unknown> {
  const object: Record<string, unknown> = {};
  for (let i = 0; i < flat.length; i += 2) object[flat[i] as string] = flat[i + 1];
  return object;
}

function render(rows: ReadonlyMap<string, Row>, source: string, target: string): string {
  const names = [...rows.keys()].sort();
  const lines = names.map((name) => {
    const { sourceArity, targetArity, flags, keys } = rows.get(name)!;
    const fields = [name, sourceArity, targetArity, [...flags].sort().join(' '), ...keys];
    return `  [${fields.map((field) => (typeof field === 'string' ? `'${field}'` : field)).join(', ')}],\n`;
  });
  return `${head(source, target)}export const COMMANDS: readonly GeneratedCommand[] = [\n${lines.join('')}];\n`;
}

const head = (source: string, target: string): string => `/**
 * Generated by generate.ts from the COMMAND of Redis ${source} (the source) and KeyDB ${target} (the target). Do not
 * edit.
 *
 * A row: name (\`container|subcommand\`), arity at the source and at the target (0: it has no such command), flags,
 * key specifications. One of these is \`flags begin find\`. Begin: an argument's index, \`KEYWORD@from\`, or \`?\`.
 * Find: \`last/step/limit\`, or \`#numkeys/first/step\` for a count of keys; absent: just the one key.
 */
export type GeneratedCommand = readonly [name: string, sourceArity: number, targetArity: number, flags: string, ...keys: string[]];

`;

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [sourceUrl, targetUrl, output] = process.argv.slice(2);
  if (output === undefined) throw new Error('usage: node generate.js SOURCE_URL TARGET_URL OUTPUT_FILE');
  writeFileSync(output, await generateTable(sourceUrl, targetUrl));
}
