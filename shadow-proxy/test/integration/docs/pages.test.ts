/**
 * The pages in docs/ tell of the program as it is.
 *
 * Needs real files: the pages of this repository, and what is generated for them.
 */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { RULES } from '../../../src/compare/compare.js';
import { operatorProgram } from '../../../src/cli/program.js';
import { proxyProgram } from '../../../src/cli/proxy-program.js';
import { renderCli } from '../../../src/docs/cli.js';
import { renderCommands } from '../../../src/docs/commands.js';
import { renderMetrics } from '../../../src/docs/metrics.js';
import { renderPlan } from '../../../src/docs/plan.js';
import { renderStages } from '../../../src/docs/stages.js';
import { pages, ROOT, textOf } from './documented.js';

const page = (name: string): string => textOf(`docs/${name}`);

test('docs/commands.md is what the tables say', () => {
  assert.equal(page('commands.md'), renderCommands(), 'run: npm run docs:commands');
});

test('docs/plan.md is what the schema says', () => {
  assert.equal(page('plan.md'), renderPlan(), 'run: npm run schema');
});

test('docs/metrics.md is what the table says', () => {
  assert.equal(page('metrics.md'), renderMetrics(), 'run: npm run docs:metrics');
});

test('docs/stages.md is what the tables say', () => {
  assert.equal(page('stages.md'), renderStages(), 'run: npm run docs:stages');
});

test('docs/cli.md is what commander knows of both programs', async () => {
  assert.equal(page('cli.md'), renderCli([proxyProgram(), await operatorProgram()]), 'run: npm run docs:cli');
});

test('docs/comparison-rules.md has a section for each rule, with its sentence', () => {
  const rules = page('comparison-rules.md');
  const sections = [...rules.matchAll(/^## `([a-z-]+)`$/gm)].map(([, name]) => name);
  assert.deepEqual(sections, [...RULES.map(({ name }) => name), 'expiry-edge', 'evicted', 'unsupported']);
  for (const { name, sentence } of RULES)
    assert.ok(rules.includes(`## \`${name}\`\n\n${sentence}\n`), `the sentence of ${name}: ${sentence}`);
});

/** The architecture page and the decisions, which name functions and tests. */
const decisions = (): string[] => pages().filter((each) => /^docs\/decisions\/\d{3}-/.test(each));

test('docs/architecture.md has at most 4,000 words', () => {
  const words = page('architecture.md')
    .match(/\S+/g)!
    .filter((word) => /[\p{L}\p{N}]/u.test(word));
  assert.ok(words.length <= 4_000, `${words.length} words: move evidence to docs/decisions/`);
});

test('every decision has its four parts, a line in the index, and a test that holds it', () => {
  assert.ok(decisions().length > 30, `${decisions().length}`);
  const index = page('decisions/README.md');
  for (const each of decisions()) {
    const text = textOf(each);
    const sections = [...text.matchAll(/^## (.*)$/gm)].map(([, title]) => title);
    assert.deepEqual(sections, ['Context', 'Decision', 'Consequence', 'Test'], each);
    const [, title] = /^# (\d{3}\. .*)$/m.exec(text) ?? [];
    const [number, ...rest] = title!.split('. ');
    assert.ok(each.includes(`/${number}-`), `${each}: its title has number ${number}`);
    assert.ok(index.includes(`[${rest.join('. ')}](${each.split('/').at(-1)})`), `${each} is not in the index`);
    const tests = [...text.slice(text.indexOf('## Test')).matchAll(/`([\w/-]+\.test\.tsx?)`/g)].map(
      ([, file]) => file!,
    );
    assert.ok(tests.length > 0, `${each} names no test`);
    for (const file of tests)
      assert.ok(
        ['integration', 'unit'].some((folder) => existsSync(join(ROOT, 'shadow-proxy/test', folder, file))),
        `${each}: there is no ${file}`,
      );
  }
});

test('every function and file that docs/architecture.md and the decisions name is there', () => {
  const source = join(ROOT, 'shadow-proxy', 'src');
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((file) => /\.tsx?$/.test(file));
  const text = new Map(files.map((file) => [file.replaceAll('\\', '/'), readFileSync(join(source, file), 'utf8')]));
  const pages = ['docs/architecture.md', ...decisions()].map(textOf).join('\n');
  const named = [...pages.matchAll(/`((?:[a-z]+\/)*[a-z-]+\.tsx?)(?: (#?[A-Za-z][A-Za-z.#_]*))?`/g)];
  assert.ok(named.filter(([, , name]) => name !== undefined).length > 40, `${named.length}`);
  // In the drawing: Session.#send, Lane.submit …
  const drawn = [...page('architecture.md').matchAll(/\b([A-Z][A-Za-z]+)\.(#?[a-z][A-Za-z]+)(?= |\n)/g)];
  assert.ok(drawn.length > 20, `${drawn.length}`);
  for (const [, owner, method] of drawn) {
    const found = [...text.values()].some(
      (code) => new RegExp(`class ${owner}\\b`).test(code) && new RegExp(`[^\\w#]${method}\\b`).test(code),
    );
    assert.ok(found, `there is no ${owner}.${method}`);
  }
  for (const [, file, name] of named) {
    const code = text.get(file);
    assert.ok(code !== undefined, `there is no ${file}`);
    for (const part of name?.split('.') ?? [])
      assert.match(code, new RegExp(`(^|[^\\w#])${part}\\b`), `${file} has no ${part}`);
  }
});

test('every test that the docs give as evidence is there, and docs/concepts.md gives some for each guarantee', () => {
  const named = pages().flatMap((each) =>
    [...textOf(each).matchAll(/`((?:[\w-]+\/)+[\w-]+\.test\.tsx?)`/g)].map(([, file]) => ({ where: each, file })),
  );
  assert.ok(named.filter(({ where }) => where === 'docs/concepts.md').length > 35, `${named.length}`);
  assert.deepEqual(
    named.filter(({ file, where }) =>
      ['shadow-proxy/test/integration', 'shadow-proxy/test/unit', '', join(where, '..')].every(
        (folder) => !existsSync(join(ROOT, folder, file)),
      ),
    ),
    [],
  );
  const [, table] = /^\| guarantee +\|.*\n.*\n((?:\|.*\n)+)/m.exec(page('concepts.md'))!;
  assert.deepEqual(
    table.split('\n').filter((row) => row !== '' && !/`[\w/-]+\.test\.ts`|`npm run [\w:]+`/.test(row)),
    [],
  );
});

test('every link of the docs leads somewhere', () => {
  const anchors = (file: string): Set<string> =>
    new Set(
      [...readFileSync(join(ROOT, file), 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, title]) =>
        title
          .toLowerCase()
          .replace(/[^\p{L}\p{N}_ -]/gu, '')
          .replaceAll(' ', '-'),
      ),
    );
  const broken = pages().flatMap((from) =>
    [...textOf(from).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)/g)]
      .map(([, to, anchor]) => ({ file: to === '' ? from : join(from, '..', to), anchor }))
      .filter(
        ({ file, anchor }) => !existsSync(join(ROOT, file)) || (anchor !== undefined && !anchors(file).has(anchor)),
      )
      .map(({ file, anchor }) => `${from}: ${file}#${anchor ?? ''}`),
  );
  assert.deepEqual(broken, []);
});

test('README.md has at most 100 lines of 100 columns, and answers five questions, each under its heading', () => {
  const lines = textOf('README.md').trimEnd().split('\n');
  assert.ok(lines.length <= 100, `${lines.length} lines`);
  assert.deepEqual(
    lines.filter((line) => [...line].length > 100),
    [],
  );
  const headings = lines.filter((line) => line.startsWith('## '));
  for (const question of [
    'What does it do?',
    'How do I try it?',
    'Does it stop my clients?',
    'How do I go back?',
    'What is it not for?',
  ])
    assert.equal(headings.filter((heading) => heading === `## ${question}`).length, 1, question);
});

test('README.md and docs/getting-started.md show the line that the demo ends with', () => {
  const source = readFileSync(join(ROOT, 'shadow-proxy/src/cli/demo.ts'), 'utf8');
  const [, next] = /`It works\. Next: \$\{typed\('([^']+)'\)\}`/.exec(source)!;
  const line = `It works. Next: npx --no-install ${next}`;
  for (const each of ['README.md', 'docs/getting-started.md']) assert.ok(textOf(each).includes(`\n${line}\n`), each);
});

test('docs/README.md leads to every page of docs/', () => {
  const index = page('README.md');
  const missing = pages()
    .flatMap((each) => /^docs\/([^/]+\.md)$/.exec(each)?.[1] ?? [])
    .filter((name) => name !== 'README.md' && !index.includes(`](${name})`));
  assert.deepEqual(missing, []);
});

test('docs/troubleshooting.md has every error code and gate of the programs, and messages that they print', () => {
  const source = join(ROOT, 'shadow-proxy', 'src');
  const code = readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => readFileSync(join(source, file), 'utf8'))
    .join('\n');
  const text = page('troubleshooting.md');
  const codes = new Set(
    [...code.matchAll(/new (?:Admin|Cli|Copy|Job|Launch|Lease|Stage|State|Trust)Error\(\s*'([a-z-]+)',/g)].map(
      ([, each]) => each!,
    ),
  );
  assert.ok(codes.size > 40, `${codes.size}`);
  assert.deepEqual(
    [...codes].filter((each) => !text.includes(`\`${each}\``)),
    [],
    'codes without a row',
  );
  const gates = [...page('decisions/022-gates.md').matchAll(/^\| `([a-z-]+)`/gm)].map(([, gate]) => gate!);
  assert.ok(gates.length > 14, `${gates.length}`);
  const [, table] = /^## A gate stays closed\n([^]*?)^## /m.exec(text)!;
  assert.deepEqual(
    gates.filter((gate) => !table!.includes(`\`${gate}\``)),
    [],
    'gates without a row',
  );
});
