/** The plan as text: a first draft, in which each workload has a comment with its reasons. */
import { stringify } from 'yaml';
import { count, duration, list, number, percent } from '../../text/figures.js';
import { typed } from '../../text/invocation.js';
import { quoted as shellQuoted } from '../../text/shell.js';
import type { Family } from './family.js';
import { readsAndWrites } from './kinds.js';
import { WEEK, type Proposal, type ProposedWorkload } from './propose.js';

export interface Draft {
  readonly name: string;
  /** The part below `version` and `name`: `shards`, or `cluster`. */
  readonly servers: object;
  /** The server from which it was read, such as `redis://127.0.0.1:6379 (Redis 7.0.15)`. */
  readonly origin: string;
  readonly readAt: Date;
  /** Number of keys of the source, and how many of them were sampled. */
  readonly keys: number;
  readonly sampled: number;
  /** How long MONITOR ran, and what it showed; or a text that says why it did not run. */
  readonly monitored: { readonly ms: number; readonly commands: number } | string;
  readonly proposal: Proposal;
  /** Further findings about the source, and what to do about each. */
  readonly notes: readonly string[];
  /** Which values of the draft the operator must check, and what to do about each. */
  readonly serverNotes: readonly string[];
  /** Name of the file for the draft. */
  readonly file: string;
}

const WIDTH = 80;
/** Maximum number of uncovered families that are named. */
const NAMED = 8;
const TITLES: Readonly<Record<number, string>> = {
  2: 'Week 2: what is mostly read, and what can be computed again.',
  3: 'Week 3: counters and leaderboards.',
  4: 'Week 4: what must not be lost.',
};

export function compose(draft: Draft): string {
  const { name, servers, proposal, serverNotes } = draft;
  return [
    ...head(draft),
    '',
    yaml({ version: 1, name }),
    '',
    ...serverNotes.flatMap((note) => comment(note)),
    yaml(servers),
    '',
    ...workloads(draft),
    '',
    ...uncovered(draft),
    'default: { stage: "off" }',
    ...(draft.notes.length === 0 ? [] : ['', ...draft.notes.flatMap((note) => comment(note))]),
    ...(proposal.channels.length === 0
      ? []
      : [
          '',
          ...comment(
            `Channels without a workload: ${proposal.channels.join(', ')}. They are in default; add "channels" to the workload that they belong to.`,
          ),
        ]),
    '',
  ].join('\n');
}

function head({ origin, readAt, keys, sampled, monitored, file }: Draft): string[] {
  const seen =
    typeof monitored === 'string'
      ? monitored
      : `MONITOR ran for ${monitored.ms / 1000} s and showed ${count(monitored.commands, 'command')}.`;
  return [
    ...comment(
      `A first draft, written by shadow-compare plan init from ${origin} on ${readAt.toISOString().slice(0, 10)}.`,
    ),
    ...comment(
      `${number(sampled)} of ${count(keys, 'key')} were sampled${keys === 0 ? '' : ` (${share(sampled, keys)})`}. ${seen}`,
    ),
    ...comment('Names and classes are guesses: read the reason of each, correct it, then check the plan:'),
    '#',
    `#   ${typed(`shadow-proxy --plan ${shellQuoted(file)} --check`)}`,
    '#',
    ...comment('All options, with their defaults: docs/plan.md.'),
  ];
}

function workloads(draft: Draft): string[] {
  const { workloads: all } = draft.proposal;
  if (all.length === 0)
    return [
      ...comment('No key has a name that begins like those of others: write the workloads by hand.'),
      'workloads: []',
    ];
  let week = 0;
  const lines = all.flatMap((each) => {
    const its = WEEK[each.kind.class];
    const title = its > week ? [...(week === 0 ? [] : ['']), ...comment(TITLES[its], 2)] : [];
    week = Math.max(week, its);
    return [...title, ...reasons(each, draft).flatMap((reason) => comment(reason, 2)), ...entry(each)];
  });
  return [
    ...comment('Keys that move as one; the first workload with a matching pattern has a key.'),
    'workloads:',
    ...lines,
  ];
}

function entry({ name, kind, family, channels }: ProposedWorkload): string[] {
  const quoted = (patterns: readonly string[]): string =>
    `[${patterns.map((each) => JSON.stringify(each)).join(', ')}]`;
  return [
    `  - name: ${name}`,
    `    keys: ${quoted([family.pattern])}`,
    ...(channels.length === 0 ? [] : [`    channels: ${quoted(channels)}`]),
    `    class: ${kind.class}`,
    '    stage: "off"',
  ];
}

/** Counts, types, TTLs and commands: the reasons for the class. */
function reasons({ kind, family }: ProposedWorkload, { keys, sampled }: Draft): string[] {
  return [
    `Guess: ${kind.name}, so class ${kind.class}. ${kind.says}`,
    sampleOf(family, keys, sampled),
    ...commandsOf(family),
    ...largeOf(family),
  ];
}

function sampleOf({ keys, bytes, types, ttls }: Family, allKeys: number, sampled: number): string {
  if (keys === 0) return 'No key of the sample: MONITOR showed it.';
  const about = allKeys > sampled ? `, about ${number((keys / sampled) * allKeys)} in all` : '';
  const sorted = [...ttls].sort((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)];
  const ttl =
    ttls.length === 0
      ? 'no TTL'
      : `a TTL on ${share(ttls.length, keys)}, the median ${duration(median / 1000)} from expiring`;
  return `${count(keys, 'key')} of the sample (${share(keys, sampled)}${about}): ${list(Object.fromEntries(types))}; ${ttl}; ${number(bytes / keys)} bytes a key.`;
}

function commandsOf(family: Family): string[] {
  const { reads, writes } = readsAndWrites(family);
  if (reads + writes === 0) return [];
  const most = [...family.commands].sort((a, b) => b[1] - a[1]).slice(0, 5);
  return [`MONITOR: ${share(reads, reads + writes)} reads; ${list(Object.fromEntries(most))}.`];
}

function largeOf({ large }: Family): string[] {
  if (large.length === 0) return [];
  const [{ type, bytes, elements }] = [...large].sort((a, b) => b.bytes - a.bytes);
  const size = `${number(bytes / 1024)} KiB${elements === null ? '' : `, ${count(elements, 'element')}`}`;
  return [
    `Large: ${count(large.length, 'key')} of the sample, the largest a ${type} (${size}). They are copied in chunks.`,
  ];
}

const STAY =
  'Keys that no workload names are in default: in stage off they stay on Redis, and are not copied. Add a workload for those that are to move.';

/** What the plan may lack, because it was not read. */
export function unseen({
  proposal,
  keys,
  sampled,
  monitored,
}: Pick<Draft, 'proposal' | 'keys' | 'sampled' | 'monitored'>): string {
  const isLock = ({ kind }: ProposedWorkload): boolean => kind.name === 'lock';
  return [
    ...(sampled < keys
      ? [
          `${number(keys - sampled)} keys were not sampled: prefixes of few keys may be missing (--sample ${keys} reads all).`,
        ]
      : []),
    ...(proposal.workloads.some(isLock)
      ? []
      : [
          `No lock was found, and locks exist only while they are held${typeof monitored === 'string' ? ': --monitor 10s shows them when they are taken' : ''}.`,
        ]),
  ].join(' ');
}

function uncovered(draft: Draft): string[] {
  const {
    proposal: { uncovered: all },
    sampled,
  } = draft;
  const left = all.filter((family) => family.keys > 0);
  const missed = unseen(draft);
  const askOwners = missed === '' ? '' : ` ${missed} Ask the owners of the applications.`;
  if (left.length === 0) return comment(`Keys that no workload names: none of the sample. ${STAY}${askOwners}`);
  const named = left.slice(0, NAMED).map(({ pattern, keys: its }) => `${pattern} (${number(its)})`);
  const more = left.length > NAMED ? ` and ${number(left.length - NAMED)} more` : '';
  const its = left.reduce((sum, family) => sum + family.keys, 0);
  return comment(
    `Keys that no workload names: ${share(its, sampled)} of the sample: ${named.join(', ')}${more}. ${STAY}${askOwners}`,
  );
}

const share = (part: number, whole: number): string => percent(whole === 0 ? 0 : part / whole);

const yaml = (value: object): string => stringify(value, { lineWidth: 0 }).trimEnd();

/** Comment lines in 80 columns, unless one word is longer. */
function comment(text: string, indent = 0): string[] {
  const before = `${' '.repeat(indent)}# `;
  const lines: string[] = [];
  // Keeps a figure together with its unit.
  for (const word of text.replaceAll(' %', '\u00a0%').split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && before.length + last.length + 1 + word.length <= WIDTH)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines.map((line) => `${before}${line.replaceAll('\u00a0', ' ')}`);
}
