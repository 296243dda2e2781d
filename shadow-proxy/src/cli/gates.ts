/** Gates for people: a table, and the commands that open them. */
import Table from 'cli-table3';
import type { Answer } from '../stages/gate-answer.js';
import type { Gate } from '../stages/gates.js';
import { number } from '../text/figures.js';

const WORDS: Readonly<Record<Answer, string>> = { yes: 'yes', no: 'NO', unknown: 'UNKNOWN' };

/** The table fits 80 columns. */
export function renderGates(gates: readonly Gate[]): string {
  const table = new Table({ style: { head: [], border: [] }, colWidths: [9, 14, 53], wordWrap: true });
  for (const { name, answer, evidence } of gates) table.push([WORDS[answer], name, evidence]);
  return table.toString();
}

/** The commands to run, each on a line of its own, so that it can be copied. */
export function nextOf(closed: readonly Pick<Gate, 'command'>[], line: (command: string) => string): string {
  const commands = new Set(closed.flatMap(({ command }) => (command === undefined ? [] : [command])));
  return commands.size === 0 ? '' : `\nNext:\n${[...commands].map((each) => `  ${line(each)}`).join('\n')}`;
}

/** The data of a refusal besides its message. */
export interface RefusalBody {
  /** The gates of a drill, or the keys that forbid a change; a list if several workloads were refused. */
  readonly details?: Details | readonly Details[];
  /** The gates of each shard. */
  readonly promotions?: readonly { readonly shard: string; readonly gates: readonly Gate[] }[];
  /** The next command, without the program. */
  readonly next?: readonly string[];
}

interface Details {
  readonly gates?: readonly Gate[];
  /** How many keys forbid the change. */
  readonly keys?: number;
  /** The first of these keys. */
  readonly list?: readonly string[];
}

/** The lines after the message of a refusal: gates as in `promote`, keys, and the next commands. */
export function renderRefused({ details, promotions, next }: RefusalBody, line: (command: string) => string): string {
  const each = [details ?? []].flat();
  const lists = [...(promotions ?? []), ...each].flatMap(({ gates }) => (gates === undefined ? [] : [gates]));
  const closed = lists.flat().filter(({ answer }) => answer !== 'yes');
  const keys = each.flatMap(({ keys: all = 0, list = [] }) => [
    ...list.map((key) => `\n  ${key}`),
    ...(all > list.length ? [`\n  and ${number(all - list.length)} more`] : []),
  ]);
  const commands = nextOf([...closed, ...(next ?? []).map((command) => ({ command }))], line);
  return `${lists.map((gates) => `\n${renderGates(gates)}`).join('')}${keys.join('')}${commands}`;
}
