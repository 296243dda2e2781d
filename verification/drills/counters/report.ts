/** What the rounds have shown: a table, and whether it is what is promised. Pure. */
import Table from 'cli-table3';
import { EXACT, LIMIT } from './layouts.js';
import { NAMES, type Name } from './mesh.js';
import { SITUATIONS, type Outcome, type Situation } from './rounds.js';

/** Least and most over the rounds. */
export type Span = readonly [least: number, most: number];

export interface Row {
  readonly layout: string;
  readonly situation: Situation;
  readonly rounds: number;
  readonly attempted: Span;
  readonly acknowledged: Span;
  /** What each node says. */
  readonly counted: Readonly<Partial<Record<Name, Span>>>;
  /** Acknowledged, and not counted on the node that has least. */
  readonly lost: Span;
  /** Counted on the node that has most, and never acknowledged. */
  readonly invented: Span;
  /** Let pass beyond the limit; null for what is no limiter. */
  readonly overAdmitted: Span | null;
  /** Rounds in which something was lost. */
  readonly losing: number;
}

export interface Report {
  readonly keydb: string;
  readonly driver: string;
  readonly rows: readonly Row[];
  readonly failures: readonly string[];
  readonly notes: readonly string[];
}

export const lostIn = ({ acknowledged, counted }: Outcome): number =>
  Math.max(0, acknowledged - Math.min(...Object.values(counted)));
export const inventedIn = ({ acknowledged, counted }: Outcome): number =>
  Math.max(0, Math.max(...Object.values(counted)) - acknowledged);
const overAdmittedIn = ({ admitted }: Outcome): number => Math.max(0, (admitted ?? 0) - LIMIT);

const namesIn = (counted: Readonly<Partial<Record<Name, unknown>>>): Name[] => NAMES.filter((name) => name in counted);

export function rowsOf(outcomes: readonly Outcome[]): Row[] {
  const layouts = [...new Set(outcomes.map(({ layout }) => layout))];
  return SITUATIONS.flatMap((situation) =>
    layouts.flatMap((layout) => {
      const of = outcomes.filter((each) => each.layout === layout && each.situation === situation);
      if (of.length === 0) return [];
      const span = (value: (outcome: Outcome) => number): Span => [
        Math.min(...of.map(value)),
        Math.max(...of.map(value)),
      ];
      return [
        {
          layout,
          situation,
          rounds: of.length,
          attempted: span(({ attempted }) => attempted),
          acknowledged: span(({ acknowledged }) => acknowledged),
          counted: Object.fromEntries(
            namesIn(of[0].counted).map((name) => [name, span(({ counted }) => counted[name]!)]),
          ),
          lost: span(lostIn),
          invented: span(inventedIn),
          overAdmitted: of[0].admitted === undefined ? null : span(overAdmittedIn),
          losing: of.filter((each) => lostIn(each) > 0).length,
        },
      ];
    }),
  );
}

/** What the library and the rewriting must never do, in any round. */
export const failuresOf = (rows: readonly Row[]): string[] =>
  rows
    .filter(({ layout, lost, invented }) => EXACT.has(layout) && (lost[1] > 0 || invented[1] > 0))
    .map(
      ({ layout, situation, lost, invented }) =>
        `${layout}, ${situation}: up to ${lost[1]} lost and ${invented[1]} invented`,
    );

/** Increments that were acknowledged, at the least, in layouts that lose none. */
export const countedExactly = (rows: readonly Row[]): number =>
  rows
    .filter(({ layout }) => EXACT.has(layout))
    .reduce((sum, { acknowledged, rounds }) => sum + acknowledged[0] * rounds, 0);

/** Losses that are known of layouts without protection (docs/active-active.md), and why one may not show. */
const EXPECTED: readonly [layout: string, situation: Situation, why: string][] = [
  ['INCR', 'full', 'the node whose key is newer keeps it whole'],
  ['INCR and EXPIRE window', 'full', 'the node whose key is newer keeps it whole'],
  ['Lua limiter', 'full', 'the node whose key is newer keeps it whole'],
  ['sorted-set window', 'full', 'the node whose key is newer keeps it whole'],
  ['hash, a field per region', 'full', 'the hash is one key: the newer one is kept whole'],
  ['one writer, from 0', 'full', 'it needs noeviction, and another key that was given the old number later'],
];
const ADMITS: readonly [layout: string, situation: Situation][] = [
  'INCR and EXPIRE window',
  'Lua limiter',
  'sorted-set window',
].flatMap((layout) => SITUATIONS.map((situation): [string, Situation] => [layout, situation]));

export function notesOf(rows: readonly Row[]): string[] {
  const row = (layout: string, situation: Situation): Row | undefined =>
    rows.find((each) => each.layout === layout && each.situation === situation);
  const notLost = EXPECTED.flatMap(([layout, situation, why]) => {
    const found = row(layout, situation);
    return found === undefined || found.losing > 0
      ? []
      : [
          `${layout}, ${situation}: nothing was lost in ${found.rounds} rounds, though ${why}: all nodes had written the same, or KeyDB does otherwise than 6.3.4`,
        ];
  });
  const notOver = ADMITS.flatMap(([layout, situation]) => {
    const found = row(layout, situation);
    return found === undefined || found.overAdmitted![1] > 0
      ? []
      : [`${layout}, ${situation}: nobody was let pass beyond the limit: one node was done before another began`];
  });
  return [...notLost, ...notOver];
}

const TITLES: Readonly<Record<Situation, string>> = {
  connected: 'connected, 40 ms',
  partial: 'cut, partial resync',
  full: 'cut, full resync',
  asymmetric: 'cut, A partial, B full',
  isolated: 'C cut off, full resync',
  link: 'A–C cut, full resync',
};

/** Fits 80 columns. */
export function render({ keydb, driver, rows, failures, notes }: Report): string {
  const names = namesIn(rows[0].counted);
  const widths = names.length === 2 ? [25, 8, 10, 10, 9, 7] : [22, 8, 9, 9, 9, 9, 7];
  const lines = [
    `${keydb}, ${names.length === 2 ? 'two' : 'three'} active-active nodes.`,
    `Increments by ${driver}.`,
    'acked, lost (acked, and not on the node that has least), over (let pass beyond',
    'the limit of 100): over all nodes; where rounds differ, least–most.',
    '',
  ];
  for (const situation of SITUATIONS.filter((each) => rows.some((row) => row.situation === each))) {
    const table = new Table({
      head: [TITLES[situation], 'acked', ...names.map((name) => `on ${name.toUpperCase()}`), 'lost', 'over'],
      style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
      chars: BARE,
      colWidths: widths,
      wordWrap: true,
      colAligns: widths.map((_, i) => (i === 0 ? 'left' : 'right')),
    });
    for (const { layout, acknowledged, counted, lost, overAdmitted } of rows.filter(
      (each) => each.situation === situation,
    ))
      table.push([layout, ...[acknowledged, ...names.map((name) => counted[name]!), lost, overAdmitted].map(span)]);
    lines.push(table.toString().replace(/ +$/gm, ''), '');
  }
  const held = countedExactly(rows);
  const holds =
    held === 0
      ? 'INCONCLUSIVE: no increment of the library or the proxy’s rewriting was\nacknowledged'
      : `HOLDS: in ${rows[0].rounds} rounds of each, the library and the proxy’s rewriting lost 0\nof ${held.toLocaleString('en-US')}`;
  lines.push(
    ...notes.map((note) => `note: ${note}`),
    ...(failures.length === 0 ? [holds] : failures.map((failure) => `DOES NOT HOLD: ${failure}`)),
  );
  return lines.join('\n');
}

const BARE = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: ' ',
};

const span = (of: Span | null): string => (of === null ? '–' : of[0] === of[1] ? `${of[0]}` : `${of[0]}–${of[1]}`);
