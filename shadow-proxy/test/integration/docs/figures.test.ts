/** Every figure that a page marks is the one of docs/figures.json, so that no two pages can disagree. */
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
const PEERS: Readonly<Record<string, string>> = {
  direct: 'direct',
  'HAProxy, TCP': 'haproxy',
  twemproxy: 'twemproxy',
  'Envoy, mirroring': 'envoy',
  'shadow proxy': 'shadow',
};

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

/** The cells of the table behind `<!-- figures: NAME -->`. */
const rowsOf = (text: string, name: string): string[][] =>
  new RegExp(`<!-- figures: ${name} -->\n\n((?:\\|.*\n)+)`)
    .exec(text)![1]!
    .trim()
    .split('\n')
    .map((row) =>
      row
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );

const numberIn = (cell: string): number | undefined => (cell === '–' ? undefined : Number(cell.replaceAll(',', '')));

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
  assert.equal(wrong('59,442 <!-- figure: bench.shadow@1.ops/s -->').length, 1);
  assert.equal(wrong('59,441 <!-- figure: bench.shadow@2.ops/s -->').length, 1);
  assert.equal(wrong('59,441\n  <!-- figure: bench.shadow@1.ops/s -->').length, 0);
});

test('README.md quotes no large number without its marker', () => {
  const text = textOf('README.md').replaceAll(/```[^]*?```/g, '');
  const numbers = [...text.matchAll(/\d{1,3}(?:,\d{3})+/g)];
  assert.ok(numbers.length > 0);
  assert.equal(numbers.length, quoted(text).filter(({ value }) => value >= 1_000).length);
});

test('the tables of docs/capacity.md are the bench of docs/figures.json', () => {
  const text = textOf('docs/capacity.md');
  const [head, , ...rows] = rowsOf(text, 'bench');
  assert.equal(rows.length, 10);
  for (const [peer, pipeline, ...cells] of rows)
    for (const [i, cell] of cells.entries())
      assert.equal(
        numberIn(cell),
        figureOf(`bench.${PEERS[peer!]}@${pipeline}.${head![i + 2]}`),
        `${peer} ${pipeline}`,
      );
  const [, , ...ratios] = rowsOf(text, 'bench ratios');
  assert.equal(ratios.length, 3);
  for (const [ratio, , median, spread] of ratios) {
    const [, peer, pipeline] = /^to (\w+).*pipeline (\d+)$/.exec(ratio!)!;
    const row = `bench.shadow/${peer!.toLowerCase()}@${pipeline}`;
    assert.deepEqual(
      [median, ...spread!.split(' – ')].map(Number),
      ['median', 'lowest', 'highest'].map((column) => figureOf(`${row}.${column}`)),
      ratio,
    );
  }
  for (const run of Object.values(RUNS)) assert.ok(text.includes(`\`${run.command}\``), run.command);
  assert.ok(text.includes(RUNS.bench!.date));
});
