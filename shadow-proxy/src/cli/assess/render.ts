/** An assessment for people, in 80 columns. */
import Table from 'cli-table3';
import type { InstanceFacts } from '../../assess/instance-facts.js';
import type { Finding, Weight } from '../../assess/finding.js';
import type { Conclusion } from '../../assess/findings.js';
import { TRUTHS } from '../../assess/keydb.js';
import type { Sizing } from '../../assess/sizing.js';
import { count, number } from '../../text/figures.js';
import { entry, fold } from '../fold.js';
import { PLAIN, short } from '../table.js';

const GIB = 2 ** 30;

const ORDER: readonly Weight[] = ['no-go', 'go', 'unknown', 'first', 'note'];
const WORD: Readonly<Record<Weight, string>> = {
  'no-go': 'NO-GO',
  go: 'GO',
  unknown: 'UNKNOWN',
  first: 'FIRST',
  note: 'note',
};

/** Column widths that fit 80 columns with a blank in between. */
const SERVER_COLUMNS = [19, 7, 8, 5, 7, 9, 7, 11];

export function serverTable(sources: readonly InstanceFacts[]): string {
  const table = new Table({
    ...PLAIN,
    chars: { ...PLAIN.chars, middle: ' ' },
    wordWrap: true,
    wrapOnWordBoundary: false,
    colWidths: SERVER_COLUMNS,
    head: ['source', 'version', 'commands\nper s', 'CPU', 'clients', 'memory', 'keys', 'p50 / p99\nin ms'],
    colAligns: ['left', 'left', 'right', 'right', 'right', 'right', 'right', 'right'],
  });
  for (const { label, version, opsPerSecond, cpu, clients, memory, databases, ping } of sources)
    table.push([
      // A URL without TLS and Sentinel needs no scheme.
      label.replace(/^redis:\/\//, ''),
      version,
      short(Math.round(opsPerSecond)),
      cpu === null ? '–' : `${Math.round(cpu * 100)} %`,
      short(clients.connected),
      memory.used < GIB ? `${(memory.used / 2 ** 20).toFixed(0)} MiB` : `${(memory.used / GIB).toFixed(1)} GiB`,
      short([...databases.values()].reduce((a, b) => a + b, 0)),
      `${milliseconds(ping.p50)} / ${milliseconds(ping.p99)}`,
    ]);
  return table.toString().replace(/ +$/gm, '');
}

/** Short enough for its column. */
const milliseconds = (ms: number): string => ms.toFixed(ms < 10 ? 2 : ms < 100 ? 1 : 0);

export interface Assessment {
  readonly sources: readonly InstanceFacts[];
  readonly findings: readonly Finding[];
  readonly sizing: Sizing;
  readonly conclusion: Conclusion;
  readonly because: string;
  /** For a Redis Cluster: its masters, and the layout of the target. */
  readonly cluster: string | null;
}

export function render({ sources, findings, sizing, conclusion, because, cluster }: Assessment): string {
  const lines = ORDER.flatMap((weight) => findings.filter((finding) => finding.weight === weight)).map(
    ({ about, weight, what, means }) => entry(WORD[weight], `${about}: ${what}`, means),
  );
  const truths = TRUTHS.map(({ what, means }) => entry('', what, means));
  return [
    serverTable(sources),
    '',
    ...lines,
    '',
    'What to know about KeyDB',
    ...truths,
    '',
    ...(cluster === null ? [] : [cluster, '']),
    renderSizing(sizing, sources),
    '',
    fold(`${conclusion.toUpperCase()}: ${because}`),
  ].join('\n');
}

function renderSizing(
  { memory, byMemory, byOps, nodes, costNow, costThen }: Sizing,
  sources: readonly InstanceFacts[],
): string {
  // The sum of the rounded numbers that the table shows.
  const commands = sources.reduce((sum, { opsPerSecond }) => sum + Math.round(opsPerSecond), 0);
  const load = `Sizing: ${count(commands, 'command')} per second, ${(memory / GIB).toFixed(1)} GiB including fragmentation and growth`;
  if (byMemory === null || byOps === null) {
    return fold(
      `${load}. For the number of nodes, give --node-memory and --node-ops. Measure --node-ops on your own KeyDB with your own commands (loadtest/): other people's figures do not apply.`,
    );
  }
  const cost =
    costNow === null || costThen === null
      ? 'for the cost, give --source-price and --target-price'
      : `${number(Math.round(costThen))} per month instead of ${number(Math.round(costNow))}`;
  return fold(
    `${load}: ${nodes} KeyDB ${nodes === 1 ? 'node' : 'nodes'} instead of ${sources.length} (${byMemory} for memory, ${byOps} for commands), without replicas; ${cost}.`,
  );
}
