/** What is wrong with the YAML of a plan is named with its place. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import fc from 'fast-check';
import { stringify } from 'yaml';
import { PlanError } from '../../../src/plan/errors.js';
import { loadPlan } from '../../../src/plan/load.js';
import { scratch } from '../../support/plans.js';

const EXAMPLE = readFileSync(new URL('../../../../../migration.example.yaml', import.meta.url), 'utf8');

/** The error of a plan with this text; undefined where it is a plan. */
function refusalOf(file: string, text: string | Buffer): PlanError | undefined {
  writeFileSync(file, text);
  try {
    loadPlan(file, {});
    return undefined;
  } catch (error) {
    if (error instanceof PlanError) return error;
    throw error;
  }
}

const fileOf = (t: TestContext): string => join(scratch(t), 'plan.yaml');
const withKeys = (keys: string): string => EXAMPLE.replace('keys: ["session:*", "cache:*"]', keys);

describe('a slip in the YAML is named with its line and column:', () => {
  const ALIAS = 'which YAML reads as an alias: quote a pattern that begins with \\*, such as';
  const slips: readonly (readonly [name: string, text: string, expected: RegExp])[] = [
    [
      'a pattern in a list',
      withKeys('keys: [*:cart]'),
      new RegExp(`^37:12 has \\*:cart without quotes, ${ALIAS} "\\*:cart"$`),
    ],
    [
      'a pattern in an item',
      withKeys('keys:\n      - *cart'),
      new RegExp(`^38:9 has \\*cart without quotes, ${ALIAS} "\\*cart"$`),
    ],
    ['a pattern alone', withKeys('keys: *cart'), /^37:11 has \*cart without quotes/],
    ['a bare *', withKeys('keys: [*]'), /^37:12 has \* without quotes/],
    ['a bare * as an item', withKeys('keys:\n      - *'), /^38:9 has \* without quotes/],
    ['every pattern', withKeys('keys: [*a, *b]'), /^37:12 has \*a without .*\n37:16 has \*b without/],
    [
      'a class of characters',
      withKeys('keys: [[a-z]*]'),
      /^37:17 is not valid YAML: Unexpected alias at node end: quote a value/,
    ],
    [
      'a class of characters alone',
      withKeys('keys: [[a-z]]'),
      /^37:12 is a list: a string is allowed; write the pattern in quotes$/,
    ],
    ['a pattern that begins with !', withKeys('keys: [!foo]'), /^37:12 has a tag.*quote a pattern that begins with !$/],
    ['a pattern that begins with @', withKeys('keys: [@foo]'), /^37:12 is not valid YAML: .*: quote a value/],
    [
      'a number for a pattern',
      withKeys('keys: [12]'),
      /^37:12 is 12: a string is allowed; write the pattern in quotes$/,
    ],
    ['one pattern for a list', withKeys('keys: session:*'), /^37:11 is "session:\*": a list is allowed$/],
    ['a second document', `version: 1\n---\nversion: 1\n`, /^2:1 has a second document here/],
    ['a list', '- version: 1\n', /^1:1 is a list: a plan is a mapping that begins with "version: 1"$/],
    ['nothing', '', /^1:1 is empty: a plan is a mapping/],
    ['a word', 'plan', /^1:1 is "plan": a plan is a mapping/],
    ['aliases that multiply', multiplying(), /^1:1 has aliases that multiply/],
    ['brackets that are not closed', '['.repeat(100_000), /is nested too deeply/],
    ['brackets', `a: ${'['.repeat(100)}${']'.repeat(100)}\n`, /is nested too deeply/],
    [
      'a word for a number or a word',
      `${EXAMPLE}\nthreads: many\n`,
      /is "many": auto or a whole number from 0 to 16 is allowed/,
    ],
    ['a number beyond', `${EXAMPLE}\nthreads: 17\n`, /is 17: a number up to 16 is allowed/],
  ];
  for (const [name, text, expected] of slips)
    test(name, (t) => {
      const { problems } = refusalOf(fileOf(t), text)!;
      assert.match(problems.map(({ line, column, message }) => `${line}:${column} ${message}`).join('\n'), expected);
    });
});

/** Ten lists, each of ten aliases of the one before it. */
function multiplying(): string {
  const lines = Array.from({ length: 10 }, (_, i) => `l${i + 1}: &l${i + 1} [${`*l${i},`.repeat(9)}]`);
  return ['l0: &l0 [x]', ...lines, ''].join('\n');
}

test('an anchor may stand for values of a plan', (t) => {
  const keys = 'keys: &keys ["session:*"]\n    channels: *keys';
  assert.equal(refusalOf(fileOf(t), withKeys(keys)), undefined);
});

test('a file without an end is refused', () => {
  assert.throws(() => loadPlan('/dev/zero'), /^PlanError: \/dev\/zero: cannot be read \(TOO_LARGE: over 4 MiB\)/);
});

/** What YAML gives a meaning, and what JavaScript does. */
const WORDS = [
  ...[
    '*',
    '*a',
    '&a ',
    '&a [*a]',
    '!!binary aGk=',
    '!x ',
    '? ',
    '- ',
    ': ',
    '{',
    '}',
    '[',
    ']',
    '|\n',
    '>-\n',
    '---\n',
  ],
  ...[
    '...\n',
    '%YAML 1.1\n---\n',
    '<<: {a: b}',
    '"',
    "'",
    '\t',
    '\0',
    '\uFEFF',
    '\r',
    '#',
    '@',
    '`',
    '${A}',
    '${',
    '\\',
  ],
  ...[
    '__proto__: 1\n',
    'constructor',
    '{a: {b: {c: d}}}',
    'null',
    '~',
    '.nan',
    '1e400',
    '-1',
    '0x1F',
    '2020-01-01',
    'off',
  ],
];

/** The example with a few changes, each at a random place: bytes, words of YAML, whole lines, values of any kind. */
const mutated: fc.Arbitrary<Buffer> = fc
  .array(
    fc.record({
      at: fc.double({ min: 0, max: 1, noNaN: true }),
      cut: fc.nat({ max: 40 }),
      put: fc.oneof(
        fc.constantFrom(...WORDS).map((word) => Buffer.from(word)),
        fc.uint8Array({ maxLength: 4 }).map((bytes) => Buffer.from(bytes)),
        fc.anything({ maxDepth: 3 }).map((value) => Buffer.from(yamlOf(value))),
        fc.nat({ max: 100 }).map((line) => Buffer.from(`${EXAMPLE.split('\n')[line]}\n`)),
      ),
    }),
    { minLength: 1, maxLength: 6 },
  )
  .map((changes) =>
    changes.reduce((text, { at, cut, put }) => {
      const from = Math.floor(at * text.length);
      return Buffer.concat([text.subarray(0, from), put, text.subarray(from + cut)]);
    }, Buffer.from(EXAMPLE)),
  );

/** Empty for what has no YAML, such as a symbol. */
function yamlOf(value: unknown): string {
  try {
    return String(stringify(value, { collectionStyle: 'flow' }));
  } catch {
    return '';
  }
}

test('whatever happens to a plan, it is a plan, or its errors have a place and a sentence', (t) => {
  const file = fileOf(t);
  let refused = 0;
  fc.assert(
    fc.property(mutated, (text) => {
      const error = refusalOf(file, text);
      if (error === undefined) return;
      refused++;
      for (const { message, line, column } of error.problems) {
        assert.ok(line! >= 1 && column! >= 1, `${line}:${column} ${message}`);
        assert.doesNotMatch(message, /undefined|\[object|Cannot read|is not a function|call stack/);
      }
    }),
    { numRuns: 400 },
  );
  assert.ok(refused > 200, `${refused} were refused`);
});
