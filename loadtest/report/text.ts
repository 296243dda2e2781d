/** The report for a terminal. */
import Table from 'cli-table3';
import type { Results } from '../figures/results.js';
import { tellCounter, type Summary } from '../figures/summary.js';
import { verdicts } from './story.js';
import { comparisons, figures, type Grid } from './tables.js';

const WIDTH = 80;

export function asText(results: Results, summary: Summary): string {
  const answers = verdicts(results, summary).map(
    ({ question, word, sentence }) => `${wrap(question)}\n${wrap(`${word}: ${sentence}`, '  ')}`,
  );
  const notes = [
    ...results.counters.map(tellCounter).map((text) => `counters: ${text}`),
    ...summary.warnings.map((text) => `note: ${text}`),
  ];
  const points = results.points.length > 1;
  const shown = figures(summary, points);
  // A terminal has 80 columns, so the last two columns are only in the page.
  const narrow = { head: shown.head.slice(0, -2), rows: shown.rows.map((row) => row.slice(0, -2)) };
  const whole = comparisons(summary, points);
  // Columns that the interval shows better are left out.
  const left = ['p', '> 1, < 1'].map((name) => whole.head.indexOf(name));
  const compared = { head: without(whole.head, left), rows: whole.rows.map((row) => without(row, left)) };
  return [
    ...answers,
    table(narrow),
    ...(compared.rows.length > 0 ? [table(compared)] : []),
    ...notes.map((note) => wrap(note)),
  ].join('\n');
}

const without = (cells: readonly string[], left: readonly number[]): string[] =>
  cells.filter((_, i) => !left.includes(i));

function table({ head, rows }: Grid): string {
  const drawn = new Table({
    head: [...head],
    style: { head: [], border: [], compact: true, 'padding-left': 0, 'padding-right': 1 },
    chars: PLAIN,
  });
  drawn.push(...rows.map((row) => [...row]));
  return drawn.toString();
}

/** A frame would not fit. */
const PLAIN = Object.fromEntries(
  [
    'top',
    'top-mid',
    'top-left',
    'top-right',
    'bottom',
    'bottom-mid',
    'bottom-left',
    'bottom-right',
    'left',
    'left-mid',
    'mid',
    'mid-mid',
    'right',
    'right-mid',
    'middle',
  ].map((name) => [name, name === 'middle' ? ' ' : '']),
);

function wrap(text: string, indent = ''): string {
  const lines: string[] = [];
  let line = indent;
  for (const word of text.split(' ')) {
    if (line.length + word.length + 1 > WIDTH && line.trim() !== '') {
      lines.push(line.trimEnd());
      line = indent;
    }
    line += `${word} `;
  }
  return [...lines, line.trimEnd()].join('\n');
}
