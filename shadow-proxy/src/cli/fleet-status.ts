/**
 * Many shards on one screen of 80 columns: each workload over all shards, then problems for an operator, by name. A
 * single shard is shown by `renderShard`.
 */
import Table from 'cli-table3';
import { attentionOf, type Attention } from '../page/attention.js';
import { formatPoint } from '../route/stage.js';
import type { ShardSnapshot, WorkloadSnapshot } from '../telemetry/snapshot.js';
import { count } from '../text/figures.js';
import { commandLine, type AdminClientOptions } from './admin-client.js';
import type { FleetStatus } from './fleet.js';
import { PLAIN, short } from './table.js';

/** From this number of shards on they are shown together. */
export const MANY_SHARDS = 3;
/** Maximum number of lines of each level; the rest is counted. */
const MAX_LINES = 8;
const MAX_WORKLOAD_COLUMNS = 20;
const LEVELS = { act: 'ACT', look: 'look' } as const;

/** @param options the options that reach the proxies: suggested commands include them */
export function renderFleet(status: FleetStatus, options: AdminClientOptions): string {
  const { migration, shards, starting, silent, unserved } = status;
  const names = new Set([...shards.map(({ name }) => name), ...starting.map(({ shard }) => shard), ...unserved]);
  const workloads = byWorkload(shards);
  const clients = shards.reduce((all, shard) => all + shard.clients, 0);
  const head = `${migration ?? 'migration'}: ${shards.length} of ${count(names.size, 'shard')} served, ${count(workloads.size, 'workload')}, ${count(clients, 'client')}`;
  const problems = [
    ...silent.map(({ error }): ShardProblem => ({ level: 'act', shard: null, text: error.message })),
    ...unserved.map((shard): ShardProblem => ({ level: 'act', shard, text: 'No proxy serves it.' })),
    ...starting.map(({ shard, problem }): ShardProblem => ({
      level: 'act',
      shard,
      text: `It does not start: ${problem}`,
    })),
    ...shards.flatMap((shard) =>
      attentionOf(shard).map(({ level, text }): ShardProblem => ({
        level,
        shard: shard.name,
        text: firstSentence(text),
      })),
    ),
    ...[...workloads].flatMap(([name, each]) => unequal(name, each)),
  ];
  const found = linesOf(problems);
  const next = commandLine('status', { ...options, shard: 'SHARD' });
  return [
    head,
    '',
    tableOf(workloads),
    '',
    ...(found.length === 0 ? ['Nothing needs an operator.'] : found),
    `One shard: ${next}`,
  ].join('\n');
}

interface ShardProblem {
  readonly level: Attention['level'];
  /** Null if the text names the shard. */
  readonly shard: string | null;
  readonly text: string;
}

interface OnShard {
  readonly shard: string;
  readonly workload: WorkloadSnapshot;
}

/** The shards of each workload, in the order of the plan. */
function byWorkload(shards: readonly ShardSnapshot[]): ReadonlyMap<string, readonly OnShard[]> {
  const found = new Map<string, OnShard[]>();
  for (const shard of shards)
    for (const workload of shard.workloads) {
      const all = found.get(workload.name) ?? [];
      found.set(workload.name, [...all, { shard: shard.name, workload }]);
    }
  return found;
}

/** Names of shards by the workload's stage there, the most frequent stage first. */
const byStage = (each: readonly OnShard[]): readonly (readonly [point: string, shards: readonly string[]])[] => {
  const found = new Map<string, string[]>();
  for (const { shard, workload } of each) {
    const point = formatPoint(workload);
    found.set(point, [...(found.get(point) ?? []), shard]);
  }
  return [...found].sort(([, a], [, b]) => b.length - a.length);
};

function tableOf(workloads: ReadonlyMap<string, readonly OnShard[]>): string {
  const longest = Math.max(8, ...[...workloads.keys()].map((name) => name.length));
  const table = new Table({
    ...PLAIN,
    wordWrap: true,
    wrapOnWordBoundary: false,
    colWidths: [Math.min(MAX_WORKLOAD_COLUMNS, longest)],
    head: ['workload', 'stage', 'cmds', 'compared', 'mismatch', 'inconcl.', 'suspect'],
    colAligns: ['left', 'left', 'right', 'right', 'right', 'right', 'right'],
  });
  for (const [name, each] of workloads) {
    const [[point, shards], ...others] = byStage(each);
    const total = (figure: (workload: WorkloadSnapshot) => number): string =>
      short(each.reduce((all, { workload }) => all + figure(workload), 0));
    table.push([
      name,
      others.length === 0 ? point : `${point} on ${shards.length}/${each.length}`,
      ...[
        total(({ operations }) => operations),
        total(({ compared }) => compared),
        total(({ mismatches }) => mismatches),
        total(({ inconclusive }) => inconclusive),
      ],
      each.some(({ workload }) => workload.suspect !== null) ? 'all' : total(({ suspects }) => suspects),
    ]);
  }
  return table.toString().replace(/ +$/gm, '');
}

/** Reports a workload whose stage differs between shards. */
function unequal(name: string, each: readonly OnShard[]): readonly ShardProblem[] {
  const [, ...others] = byStage(each);
  return others.map(([point, shards]) => ({
    level: 'look',
    shard: null,
    text: `${name} is in ${point} on ${shards.join(', ')}.`,
  }));
}

/** Joins problems with the same text in one line. Those that need action come first. */
function linesOf(problems: readonly ShardProblem[]): readonly string[] {
  return (Object.keys(LEVELS) as (keyof typeof LEVELS)[]).flatMap((level) => {
    const byText = new Map<string, string[]>();
    for (const { level: its, shard, text } of problems)
      if (its === level) byText.set(text, [...(byText.get(text) ?? []), ...(shard === null ? [] : [shard])]);
    const lines = [...byText].map(
      ([text, shards]) => `${LEVELS[level].padEnd(4)}  ${shards.length === 0 ? '' : `${shards.join(', ')}: `}${text}`,
    );
    return lines.length <= MAX_LINES
      ? lines
      : [...lines.slice(0, MAX_LINES), `${LEVELS[level].padEnd(4)}  and ${lines.length - MAX_LINES} more`];
  });
}

/** The rest of the text is shown when the shard is shown alone. */
const firstSentence = (text: string): string => /^.*?\.(?= [A-Z]|$)/s.exec(text)?.[0] ?? text;
