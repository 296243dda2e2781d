/** The report for a wiki or a pull request. */
import type { Results } from '../figures/results.js';
import type { Summary } from '../figures/summary.js';
import { explanations, verdicts } from './story.js';
import { comparisons, conditions, counters, figures, type Grid } from './tables.js';

export function asMarkdown(results: Results, summary: Summary): string {
  const answers = verdicts(results, summary).map(
    ({ question, word, sentence }) => `${question} **${word}:** ${sentence}`,
  );
  const points = results.points.length > 1;
  const tables = [figures(summary, points), comparisons(summary, points), counters(results)].filter(
    ({ rows }) => rows.length > 0,
  );
  const parts = [
    `# Load test: ${results.profile.name}`,
    ...answers,
    ...(summary.warnings.length > 0 ? [list(summary.warnings)] : []),
    ...tables.map(table),
    list(conditions(results).map(([name, value]) => `${name}: ${value}`)),
    explanations(results).join(' '),
  ];
  return `${parts.join('\n\n')}\n`;
}

function table({ head, rows }: Grid): string {
  const line = (values: readonly string[]): string => `| ${values.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

const list = (items: readonly string[]): string => items.map((item) => `- ${item}`).join('\n');
