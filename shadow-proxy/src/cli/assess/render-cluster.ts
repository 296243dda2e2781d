/** The output of `assess` for a Redis Cluster: its masters, and the recommended layout of the target. */
import Table from 'cli-table3';
import type { Advice, Proposal } from '../../assess/cluster/advice.js';
import { clusterUrl, clusterYaml } from '../../assess/cluster/snippet.js';
import { slotsOf, total, weightOf } from '../../assess/cluster/weights.js';
import type { ClusterQuestion } from '../../assess/finding.js';
import { countSlots, formatSlots, type SlotMaster } from '../../plan/cluster-shards.js';
import { formatAddress, type Endpoint } from '../../plan/endpoint.js';
import { bytes, count } from '../../text/figures.js';
import { fold, WIDTH } from '../fold.js';
import { PLAIN, short } from '../table.js';

/** One master of the source; shares are 0 to 1. */
export interface MasterRow {
  readonly address: string;
  readonly slots: string;
  readonly replicas: number;
  /** Null if the master refuses to count its keys. */
  readonly keys: number | null;
  readonly memory: number;
  readonly memoryShare: number;
  readonly load: number;
  readonly loadShare: number;
}

export function masterRows({ facts: { masters, keysBySlot }, weights }: ClusterQuestion): MasterRow[] {
  const share = (part: number, weight: Float64Array): number => part / (total(weight) || 1);
  return masters.map(({ address, slots, replicas }) => {
    const all = slotsOf({ slots });
    const [load, memory] = [weightOf(all, weights.load), weightOf(all, weights.memory)];
    return {
      address: formatAddress(address),
      slots: formatSlots(slots),
      replicas: replicas.length,
      keys: keysBySlot && all.reduce((sum, slot) => sum + keysBySlot[slot], 0),
      memory,
      memoryShare: share(memory, weights.memory),
      load,
      loadShare: share(load, weights.load),
    };
  });
}

const percent = (share: number): string => `${(share * 100).toFixed(0)} %`;

const table = (head: readonly string[], widths: readonly number[], lefts: number): Table.Table =>
  new Table({
    ...PLAIN,
    chars: { ...PLAIN.chars, middle: ' ' },
    wordWrap: true,
    wrapOnWordBoundary: false,
    colWidths: [...widths],
    head: [...head],
    colAligns: head.map((_, i) => (i < lefts ? 'left' : 'right')),
  });

const print = (filled: Table.Table): string => filled.toString().replace(/ +$/gm, '');

function masterTable(question: ClusterQuestion): string {
  const rows = table(
    ['master', 'slots', 'number', 'keys', 'memory', 'share', 'commands\nper s', 'share'],
    [21, 12, 6, 7, 9, 5, 8, 5],
    2,
  );
  masterRows(question).forEach(({ address, slots, keys, memory, memoryShare, load, loadShare }, i) =>
    rows.push([
      address,
      slots,
      countSlots(question.facts.masters[i].slots),
      keys === null ? '–' : short(keys),
      bytes(memory),
      percent(memoryShare),
      short(Math.round(load)),
      percent(loadShare),
    ]),
  );
  return print(rows);
}

function proposalTable({ proposals, chosen }: Advice): string {
  const rows = table(
    ['', 'KeyDB\nmasters', 'layout', 'shards', 'proxies', 'load of the\nlargest', 'memory of\nthe largest'],
    [1, 10, 8, 7, 8, 12, 12],
    3,
  );
  for (const proposal of proposals) {
    const { kind, masters, shards, proxies, largest } = proposal;
    rows.push([
      proposal === chosen ? '*' : '',
      masters.length,
      kind,
      shards.length,
      proxies,
      percent(largest.load),
      percent(largest.memory),
    ]);
  }
  return print(rows);
}

/** `CLUSTER ADDSLOTS` for a shell, because KeyDB 6.3.4 has no `ADDSLOTSRANGE`. */
function addSlots({ address: { host }, slots }: SlotMaster): string {
  const words = slots.map(([first, last]) => (first === last ? String(first) : `$(seq ${first} ${last})`));
  const lines = [`keydb-cli -h ${host} CLUSTER ADDSLOTS`];
  for (const word of words) {
    const line = `${lines.at(-1)!} ${word}`;
    // Leave room for the backslash.
    if (line.length <= WIDTH - 4) lines[lines.length - 1] = line;
    else lines.push(`  ${word}`);
  }
  return lines.map((line) => `  ${line}`).join(' \\\n');
}

/** The addresses of both sides. */
export interface Ends {
  /** The masters of the source. */
  readonly source: readonly Endpoint[];
  /** Nodes of the target; empty if there are none yet. */
  readonly target: readonly Endpoint[];
}

/** The `cluster:` part of a plan for the layout. */
export const planPart = ({ masters, cuts }: Proposal, { source, target }: Ends): string =>
  clusterYaml({
    source: clusterUrl(source, 'REDIS_PASSWORD')!,
    target:
      clusterUrl(target, 'KEYDB_PASSWORD') ??
      `redis://${masters.map(({ address }) => formatAddress(address)).join(',')}`,
    cuts,
  });

export function renderCluster(question: ClusterQuestion, ends: Ends): string {
  const { advice, weights, facts } = question;
  const replicas = facts.masters.reduce((sum, master) => sum + master.replicas.length, 0);
  const title = `Redis Cluster: ${count(facts.masters.length, 'master')}, ${count(replicas, 'replica')}, cluster_state ${facts.state}`;
  if (advice === null) return [title, '', masterTable(question)].join('\n');
  const { chosen, proposals } = advice;
  const isEven = proposals.some(({ kind }) => kind === 'even');
  return [
    title,
    '',
    masterTable(question),
    '',
    fold(
      `Target layout, balanced by ${advice.by}: aligned has the fewest shards${isEven ? '; even divides masters of the source, so that those of the target are alike' : ''}. Each shard needs a proxy, and more where cuts divide it. The load of a slot is ${weights.loadBy === 'monitor' ? 'what MONITOR showed' : 'that of its master, divided by the keys'}. One standalone KeyDB is like 1 master.`,
    ),
    '',
    proposalTable(advice),
    '',
    fold(
      `* ${count(chosen.masters.length, 'KeyDB master')} (--masters and --layout choose another). Give each its slots while the nodes are empty:`,
    ),
    '',
    ...chosen.masters.map(addSlots),
    '',
    'In the plan, instead of shards:',
    '',
    planPart(chosen, ends)
      .split('\n')
      .map((line) => `  ${line}`)
      .join('\n'),
  ].join('\n');
}

/** Without the figures of each slot, of which there are 16,384. */
export function clusterJson(question: ClusterQuestion, ends: Ends): object {
  const { facts, weights, traffic, advice, capacity } = question;
  const { state, failed, unserved, moving } = facts;
  const proposal = (each: Proposal): object => ({
    kind: each.kind,
    masters: each.masters.map(({ slots }) => formatSlots(slots)),
    shards: each.shards.map(({ name, slots }) => ({ name, slots: formatSlots(slots) })),
    cuts: each.cuts,
    proxies: each.proxies,
    largest: each.largest,
  });
  return {
    state,
    failed,
    unserved,
    moving,
    masters: masterRows(question),
    loadBy: weights.loadBy,
    hotSlots:
      traffic &&
      [...traffic]
        .map(([slot, seen]) => ({ slot, ...seen }))
        .sort((a, b) => b.commands - a.commands)
        .slice(0, 20),
    proxyCapacity: capacity,
    layouts: advice?.proposals.map(proposal) ?? null,
    chosen: advice && proposal(advice.chosen),
    plan: advice && planPart(advice.chosen, ends),
  };
}
