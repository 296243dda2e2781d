/** The drill's report: a row for each fault, and whether it holds. */
import { FAULTS } from './faults.js';
import type { Outcome } from './rounds.js';

export interface Rendered {
  readonly text: string;
  readonly holds: boolean;
}

const middle = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
const most = (values: readonly number[]): number => Math.max(0, ...values);
const all = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

/**
 * @param strict whether nothing at all may be lost
 * @param broken what ended the drill before its end; null where nothing did
 */
export function render(outcomes: readonly Outcome[], strict: boolean, broken: string | null): Rendered {
  const head = ['fault', 'rounds', 'acknowledged', 'lost', 'most in a round', 'at most before the fault', 'at most after it', 'lost after promotion', 'two writers', 'silence, median (most)']; // prettier-ignore
  const rows = FAULTS.flatMap(({ name }) => {
    const own = outcomes.filter(({ fault }) => fault === name);
    if (own.length === 0) return [];
    const of = (field: Exclude<keyof Outcome, 'fault'>): number[] => own.map((each) => each[field]);
    const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
    return [
      [
        name,
        String(own.length),
        String(all(of('acknowledged'))),
        String(all(of('lost'))),
        String(most(of('lost'))),
        `${most(of('behindMs')).toFixed(0)} ms`,
        `${most(of('resumedMs')).toFixed(0)} ms`,
        String(all(of('lostAfterPromotion'))),
        String(all(of('secondWriter'))),
        `${seconds(middle(of('silenceMs')))} (${seconds(most(of('silenceMs')))})`,
      ],
    ];
  });
  const failures = [
    ...(broken ? [broken] : []),
    ...(outcomes.length === 0 ? ['no round was played'] : []),
    ...outcomes.flatMap(({ fault, round, lost, lostAfterPromotion, secondWriter, acknowledged, promotions }) => [
      ...(lostAfterPromotion > 0
        ? [`${fault} ${round + 1}: ${lostAfterPromotion} writes that were acknowledged after a promotion are lost`]
        : []),
      ...(secondWriter > 0
        ? [`${fault} ${round + 1}: ${secondWriter} writes were acknowledged by a second writer`]
        : []),
      ...(strict && lost > 0 ? [`${fault} ${round + 1}: ${lost} acknowledged writes are lost, with --strict`] : []),
      ...(acknowledged === 0 ? [`${fault} ${round + 1}: no write was acknowledged, so nothing was shown`] : []),
      ...(promotions === 0 && mustPromote(fault, strict) ? [`${fault} ${round + 1}: no replica was promoted`] : []),
    ]),
  ];
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i].length)));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, i) => cell.padEnd(widths[i])).join(' | ')} |`;
  const table = [line(head), `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`, ...rows.map(line)];
  const end =
    failures.length === 0 ? ['The drill holds.'] : ['The drill does NOT hold:', ...failures.map((each) => `  ${each}`)];
  return { text: `${[...table, '', ...end].join('\n')}\n`, holds: failures.length === 0 };
}

const mustPromote = (fault: string, strict: boolean): boolean =>
  FAULTS.some(
    ({ name, promotes }) => name === fault && (promotes === 'always' || (promotes === 'without AOF' && !strict)),
  );
