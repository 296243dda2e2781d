/**
 * Writes schema.json: what the AWS provider takes and gives, for the resources and data sources that the modules use.
 *
 *   npm install --no-save --ignore-scripts --legacy-peer-deps --prefix DIR @cdktn/provider-aws
 *   npm run terraform:schema -- DIR
 *
 * That package is generated from the real provider's schema; each attribute carries its flags in a comment, its type in
 * code.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { terraformFiles, SCHEMA_FILE } from '../test/files.js';
import type { Attribute, Block, NestedBlock, Schemas, Type } from './schema.js';

interface Input {
  readonly name: string;
  readonly value: string;
  readonly kind: string;
  readonly storage: string;
}

const SIMPLE: Readonly<Record<string, Type>> = {
  string: 'string',
  number: 'number',
  boolean: 'bool',
  stringList: ['list', 'string'],
  numberList: ['list', 'number'],
  booleanList: ['list', 'bool'],
  stringMap: ['map', 'string'],
  numberMap: ['map', 'number'],
  booleanMap: ['map', 'bool'],
};

/** One resource or data source: the generated code of its module. */
class Module {
  constructor(private readonly code: string) {}

  root(): Block {
    const [, name] = /class (\w+) extends cdktn\.Terraform(?:Resource|DataSource)/.exec(this.code) ?? [];
    if (name === undefined) throw new Error('holds no resource and no data source');
    const body = this.#classBody(name);
    return this.#block(body, inputs(body.slice(body.indexOf('synthesizeHclAttributes()'))));
  }

  #block(body: string, given: readonly Input[]): Block {
    const attributes: Record<string, Attribute> = {};
    const blocks: Record<string, NestedBlock> = {};
    const flags = flagsOf(body);
    for (const input of given) {
      const { computed, optional, required } = flags.get(input.name) ?? {
        computed: false,
        optional: true,
        required: false,
      };
      const simple = SIMPLE[input.storage];
      if (simple === undefined) blocks[input.name] = this.#nested(input, required);
      else
        attributes[input.name] = {
          type: setOf(simple, input.kind),
          ...flagged(computed, optional, required),
          // The code does not say it, and the provider names them all so.
          ...(input.name.endsWith('_wo') && { write_only: true }),
        };
    }
    for (const [name, { computed, optional, getter }] of flags) {
      if (computed && !optional && !(name in attributes) && !(name in blocks))
        attributes[name] = { type: this.#typeOf(getter, body), computed: true };
    }
    return { attributes, blocks };
  }

  #nested({ name, value, kind, storage }: Input, required: boolean): NestedBlock {
    const [, mapper] = /(\w+ToHclTerraform)\b/.exec(value) ?? [];
    const at = this.code.indexOf(`function ${mapper}(`);
    if (mapper === undefined || at < 0) throw new Error(`${name}: ${value} is no block`);
    const block = this.#block(
      this.#classBody(`${storage.replace(/List$/, '')}OutputReference`),
      inputs(this.code.slice(at)),
    );
    if (kind === 'struct') return { nesting: 'single', block };
    return {
      nesting: kind === 'set' ? 'set' : 'list',
      min: required ? 1 : 0,
      max: value.includes('listMapperHcl') ? 0 : 1,
      block,
    };
  }

  /** Of what the provider alone gives, from the code that reads it. */
  #typeOf(getter: string, body: string): Type {
    const [, method] = /\.get(\w+)Attribute\(/.exec(getter) ?? [];
    const plain = (
      {
        String: 'string',
        Number: 'number',
        Boolean: 'bool',
        List: ['list', 'string'],
        NumberList: ['list', 'number'],
      } as Record<string, Type>
    )[method ?? ''];
    if (plain !== undefined) return /tolist/i.test(getter) ? ['set', 'string'] : plain;
    const [, field] = /this\.(_\w+)/.exec(getter) ?? [];
    const [, made, wrapped] =
      new RegExp(`(?:this\\.)?${field} = new ([\\w.]+)\\(this, "\\w+"(?:, (true|false))?\\)`).exec(body) ?? [];
    if (made === undefined) throw new Error(`cannot tell the type of ${getter}`);
    if (made.startsWith('cdktn.')) return /List$/.test(made) ? ['list', ['map', 'string']] : ['map', 'string'];
    const of = this.#classBody(`${made.replace(/(List|OutputReference)$/, '')}OutputReference`);
    const members = [...flagsOf(of)].map(([name, flag]) => [name, this.#typeOf(flag.getter, of)] as const);
    return [wrapped === 'true' ? 'set' : 'list', ['object', Object.fromEntries(members)]];
  }

  #classBody(name: string): string {
    const start = this.code.search(new RegExp(`^class ${name} extends`, 'm'));
    if (start < 0) throw new Error(`class ${name} is not there`);
    const end = this.code.indexOf('\n}', start);
    return this.code.slice(start, end);
  }
}

/** The members of the first `const attrs = { … }`. */
function inputs(code: string): Input[] {
  const start = code.indexOf('const attrs = {');
  const end = code.indexOf('};', start);
  const member =
    /\n\s+"?([a-z0-9_]+)"?: \{\n\s+value: (.*),\n\s+isBlock: \w+,\n\s+type: "(\w+)",\n\s+storageClassType: "(\w+)"/g;
  return [...code.slice(start, end).matchAll(member)].map(([, name, value, kind, storage]) => ({
    name,
    value,
    kind,
    storage,
  }));
}

function flagsOf(
  body: string,
): Map<string, { computed: boolean; optional: boolean; required: boolean; getter: string }> {
  const comment = /\/\/ (\w+) - computed: (\w+), optional: (\w+), required: (\w+)\n[\s\S]*?return (.*);/g;
  return new Map(
    [...body.matchAll(comment)].map(([, name, computed, optional, required, getter]) => [
      name,
      { computed: computed === 'true', optional: optional === 'true', required: required === 'true', getter },
    ]),
  );
}

const setOf = (type: Type, kind: string): Type =>
  kind === 'set' && Array.isArray(type) && type[0] === 'list' ? ['set', type[1]] : type;

const flagged = (computed: boolean, optional: boolean, required: boolean): Omit<Attribute, 'type'> => ({
  ...(required && { required }),
  ...(optional && { optional }),
  ...(computed && { computed }),
});

/** Types that the modules use, such as `aws_instance`. */
function used(kind: 'resource' | 'data'): string[] {
  const found = terraformFiles('.tf').flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(new RegExp(`^${kind} "(aws_\\w+)"`, 'gm'))].map(([, type]) => type),
  );
  return [...new Set(found)].sort();
}

const [directory] = process.argv.slice(2);
if (directory === undefined) throw new Error('name the directory that holds node_modules/@cdktn/provider-aws');
const home = join(directory, 'node_modules', '@cdktn', 'provider-aws');
const { cdktf } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8')) as {
  cdktf?: { provider: { version: string } };
};

function schemaOf(type: string, prefix: string): Block {
  const module = `${prefix}${type.slice('aws_'.length).replaceAll('_', '-')}`;
  try {
    return new Module(readFileSync(join(home, 'lib', module, 'index.js'), 'utf8')).root();
  } catch (error) {
    throw new Error(`${type}: ${(error as Error).message}`, { cause: error });
  }
}

const all = (kind: 'resource' | 'data', prefix: string): [string, Block][] =>
  used(kind).map((type) => [type, schemaOf(type, prefix)]);
const schemas: Schemas = {
  version: cdktf?.provider.version ?? '',
  resources: Object.fromEntries(all('resource', '')),
  data: Object.fromEntries(all('data', 'data-aws-')),
};
// One line for each, so that a change shows where it is.
const lines = (of: Readonly<Record<string, Block>>): string =>
  Object.entries(of)
    .map(([type, block]) => `    ${JSON.stringify(type)}: ${JSON.stringify(block)}`)
    .join(',\n');
writeFileSync(
  SCHEMA_FILE,
  `{\n  "version": ${JSON.stringify(schemas.version)},\n  "resources": {\n${lines(schemas.resources)}\n  },\n  "data": {\n${lines(schemas.data)}\n  }\n}\n`,
);
