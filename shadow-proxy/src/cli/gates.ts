/** Gates for people: a table, and the commands that open them. */
import Table from 'cli-table3';
import type { Answer } from '../stages/gate-answer.js';
import type { Gate } from '../stages/gates.js';

const WORDS: Readonly<Record<Answer, string>> = { yes: 'yes', no: 'NO', unknown: 'UNKNOWN' };

/** Fits 80 columns. */
export function renderGates(gates: readonly Gate[]): string {
  const table = new Table({ style: { head: [], border: [] }, colWidths: [9, 14, 53], wordWrap: true });
  for (const { name, answer, evidence } of gates) table.push([WORDS[answer], name, evidence]);
  return table.toString();
}

/** What to run, each command on a line of its own, so that it can be copied. */
export function nextOf(closed: readonly Gate[], line: (command: string) => string): string {
  const commands = new Set(closed.flatMap(({ command }) => (command === undefined ? [] : [command])));
  return commands.size === 0 ? '' : `\nNext:\n${[...commands].map((each) => `  ${line(each)}`).join('\n')}`;
}

/** A refusal for closed gates has those of a drill, or those of each shard. */
interface Refused {
  readonly details?: { readonly gates?: readonly Gate[] };
  readonly promotions?: readonly { readonly shard: string; readonly gates: readonly Gate[] }[];
}

/** The gates of a refusal, as `promote` shows them; null where it has none. */
export function renderRefused({ details, promotions }: Refused, line: (command: string) => string): string | null {
  const lists = details?.gates === undefined ? promotions?.map(({ gates }) => gates) : [details.gates];
  if (lists === undefined) return null;
  const closed = lists.flat().filter(({ answer }) => answer !== 'yes');
  return `${lists.map(renderGates).join('\n')}${nextOf(closed, line)}`;
}
