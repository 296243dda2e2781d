/**
 * Writes dashboards/schema/datadog.json: what Datadog's own client knows of dashboards and monitors, as a JSON Schema.
 * The client has all of Datadog's API, 138 MB: it is fetched here only, and the tests need the schema alone.
 *
 *   npm run datadog:schema
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from '../../verification/rehearsal/run.js';

const CLIENT = '@datadog/datadog-api-client@1.64.0';
const MODELS = 'node_modules/@datadog/datadog-api-client/dist/packages/datadog-api-client-v1/models';
/** Of the repository; this file runs in `dist/dashboards/schema`. */
const FILE = fileURLToPath(new URL('../../../dashboards/schema/datadog.json', import.meta.url));
const ROOTS = ['Dashboard', 'Monitor'];

interface Attribute {
  readonly baseName: string;
  readonly type: string;
  readonly required?: boolean;
}
/** What the client's ObjectSerializer goes by. */
interface Types {
  readonly enumsMap: Record<string, readonly unknown[]>;
  readonly oneOfMap: Record<string, readonly string[]>;
  readonly typeMap: Record<string, { getAttributeTypeMap(): Record<string, Attribute> }>;
}

/** The tables are not exported: the module is read, and asked for them at its end. */
async function readTypes(folder: string): Promise<Types> {
  writeFileSync(join(folder, 'package.json'), '{}');
  await run(['npm', 'install', '--no-audit', '--no-fund', '--ignore-scripts', CLIENT], { cwd: folder });
  const file = join(folder, MODELS, 'ObjectSerializer.js');
  writeFileSync(file, `${readFileSync(file, 'utf8')}\nmodule.exports = { enumsMap, oneOfMap, typeMap };\n`);
  return createRequire(file)(file) as Types;
}

/** A type as the client writes it: `Array<Widget>`, `[number, number]`, `{ [key: string]: any; }`, `Widget`. */
function schemaOf(type: string, found: (name: string) => void): object {
  const [, item] = /^Array<(.*)>$/.exec(type) ?? /^\[(\w+)(?:, .*)?\]$/.exec(type) ?? [];
  if (item !== undefined) return { type: 'array', items: schemaOf(item, found) };
  const [, value] = /^\{ \[key: string\]: (.*); \}$/.exec(type) ?? [];
  if (value !== undefined) return { type: 'object', additionalProperties: schemaOf(value, found) };
  if (type === 'any') return {};
  if (type === 'Date') return { type: 'string' };
  if (['string', 'number', 'boolean'].includes(type)) return { type };
  found(type);
  return { $ref: `#/definitions/${type}` };
}

function definitionOf(name: string, { enumsMap, oneOfMap, typeMap }: Types, found: (name: string) => void): object {
  if (name in enumsMap) return { enum: enumsMap[name] };
  if (name in oneOfMap) return { anyOf: oneOfMap[name].map((type) => schemaOf(type, found)) };
  const attributes = Object.entries(typeMap[name].getAttributeTypeMap()).filter(
    ([attribute]) => attribute !== 'additionalProperties',
  );
  return {
    type: 'object',
    properties: Object.fromEntries(attributes.map(([, { baseName, type }]) => [baseName, schemaOf(type, found)])),
    required: attributes.filter(([, { required }]) => required).map(([, { baseName }]) => baseName),
    // The client keeps a field that it does not know; the server ignores it.
    additionalProperties: false,
  };
}

const folder = mkdtempSync(join(tmpdir(), 'datadog-client-'));
try {
  const types = await readTypes(folder);
  const definitions: Record<string, object> = {};
  const waiting = [...ROOTS];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop())
    definitions[name] ??= definitionOf(name, types, (other) => waiting.push(other));
  const sorted = Object.fromEntries(Object.entries(definitions).toSorted(([one], [other]) => (one < other ? -1 : 1)));
  const schema = { $comment: `From ${CLIENT} (Apache-2.0): npm run datadog:schema`, definitions: sorted };
  writeFileSync(FILE, `${JSON.stringify(schema)}\n`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
