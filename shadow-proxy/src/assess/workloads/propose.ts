/** Turns families of keys into workloads: related families become one, and small ones are left to `default`. */
import { patternIncludes } from '../../plan/overlap.js';
import type { WorkloadClass } from '../../plan/plan.js';
import type { Calls } from '../instance-facts.js';
import { merge, NAMELESS, type Family } from './family.js';
import { kindOf, type Kind } from './kinds.js';

export interface ProposedWorkload {
  readonly name: string;
  readonly kind: Kind;
  readonly family: Family;
  readonly channels: readonly string[];
}

export interface Proposal {
  /** In the order of a plan: a narrower pattern before a wider one, then by the week in which they go live. */
  readonly workloads: readonly ProposedWorkload[];
  /** The largest first. */
  readonly uncovered: readonly Family[];
  /** Patterns of channels without a workload. */
  readonly channels: readonly string[];
}

/** The week of the runbooks in which a class goes live. */
export const WEEK: Readonly<Record<WorkloadClass, number>> = {
  'read-mostly': 2,
  general: 2,
  counter: 3,
  leaderboard: 3,
  critical: 4,
};

/** Maximum number of workloads: a longer plan does not help. */
const MAX_WORKLOADS = 24;
/** A family with a smaller share of the sampled keys and of the commands is left to `default`, unless it matters. */
const SMALL = 0.001;
/** Maximum number of small families that matter: names that clients invent must not fill the plan. */
const MAX_RARE = 8;
/** Names that differ only after `-` or `_` are joined if there are at least this many. */
const ALIKE = 3;

/** @param channels channels to which clients have subscribed, as patterns */
export function propose(families: readonly Family[], channels: readonly string[], calls: Calls): Proposal {
  const joined = joinParts(joinWords(families), calls);
  const [keys, commands] = [sum(joined.map((each) => each.keys)) || 1, sum(joined.map(commandsOf)) || 1];
  const shares = ({ keys: mine, ...family }: Family): number[] => [mine / keys, commandsOf(family) / commands];
  const sorted = joined.sort((a, b) => sum(shares(b)) - sum(shares(a)));
  const nameable = sorted.filter(({ pattern }) => pattern !== NAMELESS);
  const isSmall = (family: Family): boolean => family.large.length === 0 && Math.max(...shares(family)) < SMALL;
  const rare = nameable.filter((family) => isSmall(family) && kindOf(family, calls).matters).slice(0, MAX_RARE);
  const large = nameable.filter((family) => !isSmall(family)).slice(0, MAX_WORKLOADS - rare.length);
  const named = [...large, ...rare];
  const names = new Set<string>(['default']);
  const left = new Set(channels);
  const workloads = ordered(named.map((family) => ({ family, kind: kindOf(family, calls) }))).map(
    ({ family, kind }): ProposedWorkload => {
      const its = [...left].filter((channel) => firstWord(channel) === firstWord(family.pattern));
      for (const channel of its) left.delete(channel);
      return { name: nameOf(family.pattern, names), kind, family, channels: its };
    },
  );
  return { workloads, uncovered: sorted.filter((family) => !named.includes(family)), channels: [...left] };
}

const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
const commandsOf = ({ commands }: Pick<Family, 'commands'>): number => sum([...commands.values()]);
const wordsOf = (pattern: string): string[] => pattern.match(/[A-Za-z_-]+/g) ?? [];
const firstWord = (pattern: string): string | undefined => wordsOf(pattern)[0];

/** `user_alice`, `user_bob` and `user_17` become `user_*`. */
function joinWords(families: readonly Family[]): Family[] {
  const stemOf = ({ pattern }: Family): string =>
    /[:/.|{}]/.test(pattern) ? '' : (/^.*[-_](?=[^-_])/.exec(pattern)?.[0] ?? '');
  return [...groupBy(families, stemOf)].flatMap(([stem, alike]) =>
    stem === '' || alike.length < ALIKE ? alike : [merge(`${stem}*`, alike)],
  );
}

/** `rl:user:*` and `rl:api:*` become `rl:*` if both are of one kind. */
function joinParts(families: readonly Family[], calls: Calls): Family[] {
  const partOf = ({ pattern }: Family): string => /^\{?[A-Za-z_-]+[:/.|]/.exec(pattern)?.[0] ?? '';
  return [...groupBy(families, partOf)].flatMap(([part, alike]) => {
    const kinds = new Set(alike.map((family) => kindOf(family, calls).name));
    return part === '' || alike.length === 1 || kinds.size > 1 ? alike : [merge(`${part}*`, alike)];
  });
}

function groupBy<T>(all: readonly T[], keyOf: (each: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const each of all) groups.set(keyOf(each), [...(groups.get(keyOf(each)) ?? []), each]);
  return groups;
}

type JudgedFamily = Pick<ProposedWorkload, 'family' | 'kind'>;

/** By week; a narrower pattern comes before every wider one, because otherwise it would match no key. */
function ordered(workloads: readonly JudgedFamily[]): JudgedFamily[] {
  const placed: JudgedFamily[] = [];
  for (const each of [...workloads].sort((a, b) => WEEK[a.kind.class] - WEEK[b.kind.class])) {
    const wider = placed.findIndex((other) => patternIncludes(other.family.pattern, each.family.pattern));
    if (wider === -1) placed.push(each);
    else placed.splice(wider, 0, each);
  }
  return placed;
}

/** The name for a pattern: `rl-user` for `rl:user:*`. */
function nameOf(pattern: string, taken: Set<string>): string {
  const words = wordsOf(pattern).map((word) => word.replace(/^[-_]+|[-_]+$/g, ''));
  const base =
    words
      .filter((word) => word !== '')
      .join('-')
      .slice(0, 56) || 'keys';
  let name = base;
  for (let n = 2; taken.has(name.toLowerCase()); n++) name = `${base}-${n}`;
  taken.add(name.toLowerCase());
  return name;
}
