/**
 * What can be told of the Terraform part without a long run: its form, and that the schema it is checked by is the one
 * it needs.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { describe, test } from 'node:test';
import { serveSchema } from '../schema/provider.js';
import { CONDITIONS, type ForceNew } from '../schema/force-new.js';
import type { Block, Schemas } from '../schema/schema.js';
import { tableIn } from './changes/table.js';
import { FORCE_NEW_FILE, SCHEMA_FILE, TERRAFORM, terraformFiles } from './files.js';
import { guardsOf, runsOf } from './guards.js';
import { onPath, run, type Program } from './program.js';
import { Workspace } from './workspace.js';
import { missing } from '../../shadow-proxy/test/support/needs.js';

interface Part {
  readonly file: string;
  readonly name: string;
  readonly body: string;
}

/** Blocks at the beginning of a line, such as `variable "x" { … }`. */
const parts = (kind: string): Part[] =>
  terraformFiles('.tf').flatMap((file) =>
    [
      ...readFileSync(file, 'utf8').matchAll(
        new RegExp(`^${kind} "([^"]+)"(?: "[^"]+")? \\{\\n([\\s\\S]*?)^\\}`, 'gm'),
      ),
    ].map(([, name, body]) => ({ file: relative(TERRAFORM, file), name, body })),
  );

const wrong = (of: readonly Part[], holds: (part: Part) => boolean): string[] =>
  of.filter((part) => !holds(part)).map(({ file, name }) => `${file}: ${name}`);

/** What the tests of a directory expect to fail, once for each run. */
function refusals(directory: string): string[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory)
    .filter((name) => name.endsWith('.tftest.hcl'))
    .flatMap((name) => runsOf(readFileSync(join(directory, name), 'utf8')))
    .flatMap(({ expects }) => expects);
}

test("the supported systems are those of Ansible's preflight", () => {
  const [ours, theirs] = [
    join(TERRAFORM, 'environments', 'aws', 'systems.yml'),
    join(TERRAFORM, '..', 'ansible', 'playbooks', 'vars', 'systems.yml'),
  ].map((file) => readFileSync(file, 'utf8'));
  assert.equal(ours, theirs, 'copy ansible/playbooks/vars/systems.yml to terraform/environments/aws');
});

describe('form', () => {
  test('every variable has a type and says what it is; every output says what it is', () => {
    assert.deepEqual(
      wrong(parts('variable'), ({ body }) => /^ {2}type +=/m.test(body) && /^ {2}description +=/m.test(body)),
      [],
    );
    assert.deepEqual(
      wrong(parts('output'), ({ body }) => /^ {2}description +=/m.test(body)),
      [],
    );
  });

  test('a validation looks at its own variable alone: OpenTofu 1.8 knows no other', () => {
    const conditions = ({ body }: Part): string[] =>
      [...body.matchAll(/condition\s+= ([\s\S]*?)\n\s+error_message/g)].map(([, condition]) => condition);
    const strange = wrong(parts('variable'), (part) =>
      conditions(part).every(
        (condition) =>
          !/(?<![.\w])(local|data|module|each|self)\./.test(condition) &&
          [...condition.matchAll(/\bvar\.(\w+)/g)].every(([, name]) => name === part.name),
      ),
    );
    assert.deepEqual(strange, []);
    assert.ok(parts('variable').some((part) => conditions(part).length > 0));
  });

  test('every guardrail has as many runs that it stops as it has conditions; guards.long.test.ts says that each has its own', () => {
    const unproven = terraformFiles('.tf').flatMap((file) => {
      const stopped = refusals(join(dirname(file), 'tests'));
      return guardsOf(readFileSync(file, 'utf8'))
        .filter(({ address, conditions }) => stopped.filter((name) => name === address).length < conditions)
        .map(({ address }) => `${relative(TERRAFORM, file)}: ${address}`);
    });
    assert.deepEqual(unproven, []);
  });

  test('every module has its versions, its variables, its outputs and tests', () => {
    const modules = [...new Set(terraformFiles('.tf').map((file) => dirname(file)))].filter((directory) =>
      directory.includes('/modules/'),
    );
    const missing = modules.flatMap((directory) =>
      ['versions.tf', 'variables.tf', 'outputs.tf', 'tests']
        .filter((name) => !existsSync(join(directory, name)))
        .map((name) => `${relative(TERRAFORM, directory)}/${name}`),
    );
    assert.deepEqual(missing, []);
  });

  test('nothing of the old Redis is a resource', () => {
    assert.deepEqual(
      wrong(
        parts('resource'),
        ({ file, name }) => !file.startsWith('modules/source-lookup') && !name.startsWith('aws_elasticache'),
      ),
      [],
    );
  });
});

test('the schema has what the modules use, and nothing else', () => {
  const schemas = JSON.parse(readFileSync(SCHEMA_FILE, 'utf8')) as Schemas;
  const texts = terraformFiles('.tf').map((file) => readFileSync(file, 'utf8'));
  const used = (kind: string): string[] =>
    [
      ...new Set(
        texts.flatMap((text) => [...text.matchAll(new RegExp(`^${kind} "(aws_\\w+)"`, 'gm'))].map(([, type]) => type)),
      ),
    ].sort();
  assert.deepEqual(Object.keys(schemas.resources), used('resource'));
  assert.deepEqual(Object.keys(schemas.data), used('data'));
});

/** Whether a block has that argument, or a block of it has: `root_block_device.encrypted`. */
function has(block: Block | undefined, [name, ...rest]: readonly string[]): boolean {
  if (block === undefined) return false;
  return rest.length > 0 ? has(block.blocks[name]?.block, rest) : name in block.attributes || name in block.blocks;
}

test('what forces a replacement is known of each resource, by arguments that the schema has', () => {
  const { resources } = JSON.parse(readFileSync(SCHEMA_FILE, 'utf8')) as Schemas;
  const facts = JSON.parse(readFileSync(FORCE_NEW_FILE, 'utf8')) as Readonly<Record<string, ForceNew>>;
  assert.deepEqual(Object.keys(facts), Object.keys(resources));
  const unknown = Object.entries(facts).flatMap(([type, { replaces, sometimes = [] }]) =>
    [...replaces, ...sometimes.map(({ argument }) => argument)]
      .filter((argument) => !has(resources[type], argument.split('.')))
      .map((argument) => `${type}: ${argument}`),
  );
  assert.deepEqual(unknown, []);
  for (const [type, { file, commit, replaces, sometimes = [] }] of Object.entries(facts)) {
    assert.match(file, /^internal\/service\/\w+\/\w+\.go$/, type);
    assert.match(commit, /^[0-9a-f]{40}$/, type);
    assert.ok(replaces.length > 0, `${type}: nothing forces a replacement?`);
    for (const { when } of sometimes) assert.ok(when in CONDITIONS, `${type}: ${when}`);
  }
});

test('the README says of each variable of environments/aws what its change replaces', () => {
  const table = tableIn(readFileSync(join(TERRAFORM, 'README.md'), 'utf8'));
  const missing = parts('variable')
    .filter(({ file }) => file.startsWith('environments/aws/'))
    .filter(({ name }) => !new RegExp(`^\\| \`${name}\\b`, 'm').test(table))
    .map(({ name }) => name);
  assert.deepEqual(missing, []);
});

const program = process.env.TERRAFORM ?? onPath('terraform') ?? onPath('tofu');

describe('terraform', { skip: await missing('terraform') }, () => {
  const terraform: Program = [program!];

  test('every file is formatted', async () => {
    const { code, output } = await run(terraform, ['fmt', '-check', '-recursive', '-diff', TERRAFORM]);
    assert.equal(code, 0, output);
  });

  test('the whole composition is valid by the schema', async (t) => {
    const provider = await serveSchema();
    t.after(() => provider.stop());
    const workspace = new Workspace(t, terraform, join(TERRAFORM, 'environments', 'aws'), provider.env);
    for (const step of [() => workspace.init(), () => workspace.run('validate', '-no-color')]) {
      const { code, output } = await step();
      assert.equal(code, 0, output);
    }
  });

  test('and by it a typo, a wrong type and an unknown block are found', async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'terraform-typo-'));
    t.after(() => rm(directory, { recursive: true, force: true }));
    const provider = await serveSchema();
    t.after(() => provider.stop());
    const workspace = new Workspace(t, terraform, directory, provider.env);
    const lines = [
      'terraform {\n  required_providers {\n    aws = { source = "hashicorp/aws" }\n  }\n}',
      'resource "aws_ebs_volume" "a" {\n  availability_zone = "a"\n  sizes = 1\n}',
      'resource "aws_ebs_volume" "b" {\n  availability_zone = "a"\n  size = "large"\n}',
      'resource "aws_ebs_volume" "c" {\n  availability_zone = "a"\n  disk {}\n}',
      'resource "aws_ebs_volume" "d" {}',
    ];
    writeFileSync(join(directory, 'main.tf'), lines.join('\n'));
    assert.equal((await workspace.init()).code, 0);
    const { code, output } = await workspace.run('validate', '-no-color');
    assert.equal(code, 1);
    for (const said of [
      'An argument named "sizes" is not expected here',
      'Inappropriate value for attribute "size"',
      'Blocks of type "disk" are not expected here',
      'The argument "availability_zone" is required',
    ])
      assert.match(output, new RegExp(said));
  });
});
