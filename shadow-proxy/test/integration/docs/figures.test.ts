/**
 * Every figure that a page marks is the one of docs/figures.json, so that no two pages can disagree.
 *
 * Needs real files: the pages and docs/figures.json of this repository.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pages, textOf } from './documented.js';

interface Run {
  readonly command: string;
  readonly date: string;
  readonly machine: string;
  readonly figures: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

const RUNS = JSON.parse(textOf('docs/figures.json')) as Readonly<Record<string, Run>>;
/** @param key `bench.shadow@1.p50 ms`: run, row, column */
function figureOf(key: string): number | undefined {
  const [run, row, ...column] = key.split('.');
  return RUNS[run!]?.figures[row!]?.[column.join('.')];
}

/** Of what a page says before a marker: `59,441 <!-- figure: bench.shadow@1.ops/s -->`. */
const quoted = (text: string): readonly { readonly key: string; readonly value: number }[] =>
  [...text.matchAll(/([\d,.]*\d)\s+<!-- figure: ([^>]+) -->/g)].map(([, value, key]) => ({
    key: key!,
    value: Number(value!.replaceAll(',', '')),
  }));

const wrong = (text: string): string[] =>
  quoted(text).flatMap(({ key, value }) =>
    figureOf(key) === value ? [] : [`${key} is ${figureOf(key)}, and not ${value}`],
  );

test('every marked figure is that of docs/figures.json', () => {
  const marked = pages().filter((page) => textOf(page).includes('<!-- figure:'));
  assert.ok(
    ['README.md', 'docs/capacity.md', 'docs/concepts.md', 'docs/faq.md'].every((page) => marked.includes(page)),
  );
  for (const page of marked) {
    assert.deepEqual(wrong(textOf(page)), [], page);
    assert.doesNotMatch(textOf(page), /^\s*<!-- figure:/m, `${page}: a comment at a line's start ends its paragraph`);
    assert.equal(quoted(textOf(page)).length, textOf(page).split('<!-- figure:').length - 1, `${page}: a number each`);
  }
});

test('a figure that differs, or is in no run, would be found', () => {
  const ops = figureOf('bench.shadow@1.ops/s')!;
  assert.equal(wrong(`${ops + 1} <!-- figure: bench.shadow@1.ops/s -->`).length, 1);
  assert.equal(wrong(`${ops} <!-- figure: bench.shadow@2.ops/s -->`).length, 1);
  assert.equal(wrong(`${ops}\n  <!-- figure: bench.shadow@1.ops/s -->`).length, 0);
});

test('README.md quotes no large number without its marker', () => {
  const text = textOf('README.md').replaceAll(/```[^]*?```/g, '');
  const numbers = [...text.matchAll(/\d{1,3}(?:,\d{3})+/g)];
  assert.ok(numbers.length > 0);
  assert.equal(numbers.length, quoted(text).filter(({ value }) => value >= 1_000).length);
});

test('docs/capacity.md has the command and the date of each run', () => {
  const text = textOf('docs/capacity.md');
  for (const run of Object.values(RUNS)) assert.ok(text.includes(`\`${run.command}\``), run.command);
  assert.ok(text.includes(RUNS.bench!.date));
});
