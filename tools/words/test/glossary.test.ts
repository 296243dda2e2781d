/** The check of words: which texts it reads, and what it refuses. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Finding } from '../finding.js';
import { errorsOf, GLOSSARY, shrunk } from '../findings.js';
import { lintNpx, programsOf } from '../npx.js';
import { namesRefusedBy, parseGlossary, readGlossary, refusedBy } from '../glossary.js';
import { lintFileName, lintIdentifiers, wordsOf } from '../identifiers.js';
import { LONGEST, lintMarkdown } from '../markdown.js';
import { lintComments, lintMessages, lintTitles } from '../messages.js';
import { renderGlossary } from '../page.js';

const ROOT = process.cwd();
const glossary = parseGlossary(`
terms:
  - term: repair
    meaning: To copy a suspect again.
    not: [{ words: [heal, heals], except: [heals by itself] }]
phrases:
  - { words: ["ends with #", past the proxy], use: other words }
names:
  - { words: [give up], use: release }
`);
const refused = refusedBy(glossary);
const refusedNames = namesRefusedBy(glossary);
const lines = (findings: readonly Finding[]): string[] => findings.map(({ check, line }) => `${check} ${line}`);

test('docs/glossary.md is made from docs/glossary.yaml', () => {
  const page = readFileSync(join(ROOT, 'docs', 'glossary.md'), 'utf8');
  assert.equal(page, renderGlossary(readGlossary(join(ROOT, GLOSSARY))), 'run: npm run docs:glossary');
});

test('a refused word is found as a whole word, in any case, over the end of a line, and not in an exception', () => {
  const words = (text: string): string[] => refused(text).map(({ index, word, use }) => `${index} ${word}: ${use}`);
  assert.deepEqual(words('Heal it: it ends with 1.'), ['0 Heal: repair', '12 ends with 1: other words']);
  assert.deepEqual(words('a write past\n  the proxy'), ['8 past the proxy: other words']);
  assert.deepEqual(words('health, self-heal, ends with a dot, it heals by itself'), []);
});

test('Markdown: prose is checked in paragraphs, lists, headings, tables and the changes of steps, code is not', async () => {
  const page = [
    '# heal', // 1
    '',
    'A **key**',
    'that `heal` and [heals](heal.md).', // 4
    '',
    '- heal', // 6
    '',
    '| a |',
    '| --- |',
    '| heal |', // 10
    '',
    '```yaml step',
    'run: heal',
    'changes: heals all', // 14
    '```',
  ].join('\n');
  assert.deepEqual(
    lines(await lintMarkdown('a.md', page, refused)),
    [1, 4, 6, 10, 14].map((line) => `terms ${line}`),
  );
});

test('Markdown: a sentence has at most thirty words, a piece of code is one of them', async () => {
  const words = (count: number): string => Array.from({ length: count }, (_, at) => `Word${at}`).join(' ');
  assert.deepEqual(lines(await lintMarkdown('a.md', `Short.\n${words(LONGEST)}. Short.`, refused)), []);
  assert.deepEqual(lines(await lintMarkdown('a.md', `Short.\n${words(LONGEST + 1)}. Short.`, refused)), [
    'sentences 2',
  ]);
  assert.deepEqual(lines(await lintMarkdown('a.md', `${words(LONGEST - 1)} \`a b c\`. \`d\` is new.`, refused)), []);
});

test('TypeScript: literals and the text of JSX are messages; paths, types, keys, compared values, comments are not', () => {
  const source = [
    "import a from './heal it.js';",
    "type A = 'heal it';",
    "const b = { 'heal it': x['heal it'] }; // heal it",
    "if (b === 'heal it') b = 'heal';",
    "say('I heal it');", // 5
    'say(`${a} I', // 6: where the literal begins, the word is a line below
    'heal ${b}`);', // 7
    'say(<p>to heal</p>);', // 8
  ].join('\n');
  assert.deepEqual(lines(lintMessages('a.tsx', source, refused)), ['terms 5', 'terms 7', 'terms 8']);
});

test('TypeScript: comments are checked, but for the code in them', () => {
  const source = [
    '/**',
    ' * To heal, or `heal it`: whoever',
    ' * asks.',
    ' */',
    "const a = 'https://heal'; // heal it", // 5
    '/* fine */ say(`// heal ${b /* heal */} heal`);', // 6
  ].join('\n');
  const found = lines(lintComments('a.ts', source, refused));
  assert.deepEqual(found, ['terms 2', 'terms 5', 'terms 6']);
});

test('TypeScript: titles of tests are checked, and no other text of them', () => {
  const lines = (source: string): string[] =>
    lintTitles('a.test.ts', source, refused).map(({ check, line }) => `${check} ${line}`);
  assert.deepEqual(lines("test('it heals', () => undefined);\ndescribe(`heals ${each}`, () => other('it heals'));\n"), [
    'terms 1',
    'terms 2',
  ]);
});

test('a name is read as words, at capitals, underscores, hyphens and the hash of a private field', () => {
  assert.deepEqual(['#healMs', 'HEAL_MS', 'toHealURLFirst', 'heal-all', 'hear_bell', '_'].map(wordsOf), [
    'heal ms',
    'heal ms',
    'to heal url first',
    'heal all',
    'hear bell',
    '',
  ]);
});

test('names that TypeScript declares are checked once, where they are declared; texts and health are not', () => {
  const source = [
    "import { heal, keep as heals } from './a.js';", // 1: the second name is given here
    'export class Healer { #healMs = 1; heals(health: number) { return this.#healMs + health; } }', // 2: two
    "const { healed, heal: kept } = heal('heal'); // heal", // 3: none
    'interface A { readonly toHeal: number }', // 4
    "const giveUp = (): A => ({ toHeal: 1, 'heal': 2 });", // 5: two
    'type HEAL = typeof x.heal;', // 6
  ].join('\n');
  const found = lintIdentifiers('a.ts', source, refusedNames);
  assert.deepEqual(
    lines(found),
    [1, 2, 2, 4, 5, 5, 6].map((line) => `terms ${line}`),
  );
  assert.equal(found[1].message, '"#healMs" has "heal", which is not a word of the glossary: write "repair"');
});

test('names in C are checked, each once, and neither comments nor strings', () => {
  const source =
    '#include <heal.h>\n/* heal */\nstatic void heal_all(void);\nint give_up = heal_all("heal"); // heal\n';
  assert.deepEqual(lines(lintIdentifiers('a.c', source, refusedNames)), ['terms 3', 'terms 4']);
});

test('the names of files are checked, without their folders and extensions', () => {
  assert.deepEqual(lines(lintFileName('src/what-heals.long.test.ts', refusedNames)), ['terms 1']);
  assert.deepEqual(lines(lintFileName('heal/health.heal.ts', refusedNames)), []);
});

test('each word that the glossary refuses in a text is refused in a name of one or more words, too', () => {
  const all = readGlossary(join(ROOT, GLOSSARY));
  const names = namesRefusedBy(all);
  const entries = [...all.terms.flatMap(({ not }) => not), ...all.phrases, ...all.names];
  const words = entries.flatMap((entry) => entry.words).filter((word) => /^[a-z ]+$/.test(word));
  assert.ok(words.length > 80, `${words.length} words`);
  for (const word of words) {
    const name = word.replaceAll(/ (.)/g, (_, letter: string) => letter.toUpperCase());
    assert.notDeepEqual(lintIdentifiers('a.ts', `const ${name} = 1;`, names), [], name);
    assert.notDeepEqual(lintIdentifiers('a.c', `int ${word.replaceAll(' ', '_')};`, names), [], word);
  }
});

test('rules of Prometheus and Terraform: summaries and descriptions are messages', () => {
  assert.deepEqual(lines(lintMessages('a.yml', '- expr: heal\n  summary: "to heal"\n', refused)), ['terms 2']);
  assert.deepEqual(lines(lintMessages('a.tf', 'name = "heal"\ndescription = "to heal"\n', refused)), ['terms 2']);
});

test('the list of what is not clean yet can only shrink', () => {
  const findings: Finding[] = [{ check: 'terms', file: 'a.md', line: 3, message: 'not good' }];
  assert.deepEqual(errorsOf(findings, { terms: ['a.md'], sentences: [] }), []);
  assert.deepEqual(errorsOf(findings, { terms: [], sentences: [] }), ['a.md:3: not good']);
  assert.match(errorsOf(findings, { terms: ['a.md', 'b.md'], sentences: [] }).join(), /b\.md is clean: remove it/);
  assert.match(errorsOf(findings, { terms: ['a.md'], sentences: ['a.md'] }).join(), /a\.md is clean: remove it/);
  assert.deepEqual(shrunk(findings, { terms: ['a.md', 'b.md'], sentences: ['a.md'] }), {
    terms: ['a.md'],
    sentences: [],
  });
});

test('npx is refused without --no-install, and with a program that no package of the lock file has', () => {
  const programs = programsOf(ROOT);
  for (const name of ['shadow-compare', 'shadow-proxy', 'changeset', 'tsc']) assert.ok(programs.has(name), name);
  const found = (text: string): string[] =>
    lintNpx('a.md', text, programs).map(({ line, message }) => `${line} ${message}`);
  for (const text of [
    'npx shadow-compare status',
    'The page says:\nnpx shadow-compare status',
    'run `npx --yes shadow-proxy --check`',
    '  $ npx tsc',
    'wrapped: npx\nshadow-compare',
    "run(['npx', 'shadow-compare'])",
    'npm exec shadow-compare',
  ])
    assert.match(found(text).join(), /^\d (npx )?.*write npx --no-install/, text);
  for (const text of [
    '`npx redis-to-keydb`',
    '  run: npx left-pad',
    '`npx --no-install left-pad`',
    "['npx', 'left-pad']",
  ])
    assert.match(found(text).join(), /no package of package-lock.json has this program/, text);
  assert.match(found('one\ntwo\n`npx tsc`').join(), /^3 /);
  assert.deepEqual(
    ['npx --no-install shadow-compare status', 'Here npx takes seconds.', "['npx', '--no-install', 'tsc']"].flatMap(
      found,
    ),
    [],
  );
});
