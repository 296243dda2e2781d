/** A page is read with all that is wrong with it, each by its line. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRunbook, RunbookError } from '../../../src/runbook/document.js';

const fence = (lang: string, text: string): string => `\`\`\`${lang}\n${text}\n\`\`\`\n`;
const step = (text: string): string => fence('yaml step', text);

test('steps in their order, with line and sample; other fences are for reading', () => {
  const page = `# Week 9: try\n\nText.\n\n${step('id: look\nrun: date\nexpect: { output: ":" }')}\n${fence('text output', 'Sat 12:00')}\n${fence('sh', 'rm -rf /')}\n${step('id: make\neach: [counter]\nrun: touch x\nexpect: { exit: [0, 1] }\nchanges: a file\nundo: rm x')}`;
  const { title, steps } = parseRunbook('week-9', page);
  assert.equal(title, 'Week 9: try');
  assert.deepEqual(
    steps.map(({ id, line, sample, each, once, expect, undo }) => ({ id, line, sample, each, once, expect, undo })),
    [
      {
        id: 'look',
        line: 5,
        sample: 'Sat 12:00',
        each: undefined,
        once: false,
        expect: { exit: 0, output: ':', json: {} },
        undo: undefined,
      },
      {
        id: 'make',
        line: 19,
        sample: null,
        each: ['counter'],
        once: false,
        expect: { exit: [0, 1], output: [], json: {} },
        undo: 'rm x',
      },
    ],
  );
});

test('what is wrong is named: the line, what, and what is allowed', () => {
  const cases: readonly (readonly [page: string, problem: RegExp])[] = [
    [step('id: A b\nrun: date\nexpect: {}'), /^p\.md:1: id: only small letters, digits and - are allowed$/m],
    [step('id: a\nexpect: {}'), /run: /],
    [step('id: a\nrun: date'), /expect: /],
    [step('id: a\nrun: date\nexpect: { output: "(" }'), /is not a regular expression/],
    [step('id: a\nrun: date\nexpect: { json: { "$[": 1 } }'), /is not a JSONPath/],
    [step('id: a\nrun: date\nexpect: {}\nchanges: x'), /undo: a step with changes needs undo/],
    [step('id: a\nrun: date\nexpect: {}\nundo: x'), /changes: a step with undo or irreversible needs changes/],
    [step('id: a\nrun: date\nexpect: {}\nchanges: x\nundo: y\nirreversible: z'), /undo: /],
    [step('id: a\nrun: date\nexpect: {}\nsurprise: 1'), /surprise/],
    [step('id: a\nrun: date\nexpect: {}\neach: [counters]'), /each: /],
    [step('id: a\n  run: [date\nexpect: {}'), /^p\.md:\d+: /],
    [
      `${step('id: a\nrun: date\nexpect: {}')}${step('id: a\nrun: date\nexpect: {}')}`,
      /^p\.md:6: id a is used in line 1 already/,
    ],
    [fence('yaml steps', 'id: a'), /allowed are `yaml step` and `text output`/],
    [fence('yaml step foo', 'id: a'), /allowed are `yaml step` and `text output`/],
    [fence('text output', 'x'), /must follow a step/],
    [
      `- one\n\n  ${step('id: a\nrun: date\nexpect: {}').replaceAll('\n', '\n  ')}`,
      /must not be inside a list or a quotation/,
    ],
  ];
  for (const [page, problem] of cases) {
    assert.throws(
      () => parseRunbook('p', page),
      (error: Error) => error instanceof RunbookError && problem.test(error.message),
      page,
    );
  }
});
