/** The output of `plan init`: an overview of the workloads, and the next steps. */
import Table from 'cli-table3';
import { unseen } from '../../assess/workloads/draft-plan.js';
import { readsAndWrites } from '../../assess/workloads/kinds.js';
import { WEEK, type ProposedWorkload } from '../../assess/workloads/propose.js';
import { count, number, percent } from '../../text/figures.js';
import { typed } from '../../text/invocation.js';
import { quoted } from '../../text/shell.js';
import { fold } from '../fold.js';
import { PLAIN } from '../table.js';
import type { SourceObservations } from './observe.js';

/** Column widths that fit 80 columns with a blank in between. */
const COLUMNS = [20, 13, 12, 5, 8, 6, 7];

export function summaryOf(observed: SourceObservations, file: string): string {
  const { proposal, keys, sampled, monitored } = observed;
  const looked = `${number(sampled)} of ${count(keys, 'key')} sampled${typeof monitored === 'string' ? '' : `, ${count(monitored.commands, 'command')} seen by MONITOR`}`;
  const left = proposal.uncovered.reduce((sum, family) => sum + family.keys, 0);
  return [
    ...(proposal.workloads.length === 0 ? [] : [workloadTable(proposal.workloads, sampled), '']),
    fold(
      `${file}: ${count(proposal.workloads.length, 'workload')}, by names, types, TTLs and commands (${looked}). ${left === 0 ? 'Each sampled key is in one' : `${number(left)} of the sampled keys ${left === 1 ? 'is' : 'are'} in none`}, and keys that no workload names stay on Redis. ${typeof monitored === 'string' ? `${monitored} ` : ''}${unseen(observed)}`.trim(),
    ),
    ...observed.newer.flatMap((each) => ['', fold(each)]),
    '',
    'Read the reason of each workload in the file, and correct it. Then:',
    '',
    `  ${typed(`shadow-proxy --plan ${quoted(file)} --check`)}`,
    `  ${typed(`shadow-compare assess --plan ${quoted(file)} --for 1h`)}`,
  ].join('\n');
}

function workloadTable(workloads: readonly ProposedWorkload[], sampled: number): string {
  const table = new Table({
    ...PLAIN,
    chars: { ...PLAIN.chars, middle: ' ' },
    wordWrap: true,
    wrapOnWordBoundary: false,
    colWidths: COLUMNS,
    head: ['workload', 'looks like', 'class', 'week', 'of keys', 'TTL', 'reads'],
    colAligns: ['left', 'left', 'left', 'right', 'right', 'right', 'right'],
  });
  for (const { name, kind, family } of workloads) {
    const { reads, writes } = readsAndWrites(family);
    table.push([
      name,
      kind.name,
      kind.class,
      WEEK[kind.class],
      share(family.keys, sampled),
      share(family.ttls.length, family.keys),
      reads + writes === 0 ? '–' : share(reads, reads + writes),
    ]);
  }
  return table.toString().replace(/ +$/gm, '');
}

const share = (part: number, whole: number): string => (whole === 0 ? '–' : percent(part / whole));
