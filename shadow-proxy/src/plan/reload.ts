/**
 * What a changed plan may change while the state holds: patterns, gates, limits, certificates, tokens. Never a stage, never
 * a server, and never the workload of a key where the two workloads are in different stages.
 */
import { formatAddress, type Endpoint, type Listen } from './endpoint.js';
import { patternIncludes, patternsOverlap } from './overlap.js';
import { sameServer } from './normalise.js';
import type { Plan, ShardPlan, StagePoint, Stages } from './plan.js';

/** Patterns and the workload each gives its keys to, in matching order; what none matches is `default`'s. */
export type Routing = readonly (readonly [pattern: string, workload: string])[];

export const routingOf = (plan: Plan): [string, string][] =>
  plan.workloads.flatMap((workload) => workload.keys.map((pattern): [string, string] => [pattern, workload.name]));

/** Why `next` cannot replace `previous` in a running process; empty where it can. `stages` are the effective ones. */
export function checkReload(previous: Plan, next: Plan, stages: Stages): string[] {
  return [...changedServers(previous, next), ...checkRouting(routingOf(previous), routingOf(next), stages, firstStages(next))];
}

/** The stages that a plan gives to workloads which no state knows yet. */
export const firstStages = (plan: Plan): Stages =>
  Object.fromEntries([...plan.workloads, plan.default].map(({ name, stage, percent }) => [name, { stage, percent }]));

function changedServers(previous: Plan, next: Plan): string[] {
  const problems: string[] = [];
  const restart = 'restart the proxy for that';
  if (previous.name !== next.name) problems.push(`name changed from ${previous.name} to ${next.name}: ${restart}`);
  if (previous.state !== next.state) problems.push(`state changed from ${previous.state} to ${next.state}: ${restart}`);
  if (formatAddress(previous.admin) !== formatAddress(next.admin)) problems.push(`admin.listen changed: ${restart}`);
  for (const shard of previous.shards) {
    const now = next.shards.find(({ name }) => name === shard.name);
    if (now === undefined) problems.push(`shard ${shard.name} is gone: ${restart}`);
    else problems.push(...changedParts(shard, now).map((part) => `${part} of shard ${shard.name} changed: ${restart}`));
  }
  for (const { name } of next.shards) {
    if (!previous.shards.some((shard) => shard.name === name)) problems.push(`shard ${name} is new: ${restart}`);
  }
  return problems;
}

function changedParts(before: ShardPlan, now: ShardPlan): string[] {
  const parts: [string, boolean][] = [
    ['listen', !sameListen(before.listen, now.listen)],
    ['source', !sameEndpoint(before.source, now.source)],
    ['target', !sameEndpoint(before.target, now.target)],
    ['admin.listen', (before.admin && formatAddress(before.admin)) !== (now.admin && formatAddress(now.admin))],
    ['owns', JSON.stringify(before.owns) !== JSON.stringify(now.owns)],
  ];
  return parts.filter(([, changed]) => changed).map(([part]) => part);
}

const sameListen = (a: Listen, b: Listen): boolean => a.host === b.host && a.port === b.port && (a.tls === null) === (b.tls === null);

/** Passwords and certificates may change: they hold for the next connection. */
const sameEndpoint = (a: Endpoint, b: Endpoint): boolean =>
  sameServer(a, b) && a.db === b.db && a.username === b.username && (a.tls === null) === (b.tls === null);

/**
 * Why the new patterns cannot replace the old ones: a key might move between workloads of different stages. May refuse what
 * would be safe, never the reverse.
 *
 * A key's workload is that of the first pattern that matches it. It can change from that of old pattern i to that of new
 * pattern j only if some key matches both, and neither list has something in front that takes all keys of the other's pattern.
 *
 * @param first stages of workloads that `stages` does not know
 */
export function checkRouting(previous: Routing, next: Routing, stages: Stages, first: Stages): string[] {
  const [before, after] = [withDefault(previous), withDefault(next)];
  const stageOf = (workload: string): StagePoint | undefined => stages[workload] ?? first[workload];
  const problems = new Set<string>();
  before.forEach(([was, from], i) => {
    after.forEach(([is, to], j) => {
      if (from === to || samePoint(stageOf(from), stageOf(to))) return;
      if (takenBefore(before, i, is) || takenBefore(after, j, was)) return;
      if (!patternsOverlap(was, is)) return;
      problems.add(
        `keys of ${describe(was, is)} could move from workload ${from} (${show(stageOf(from))}) to ${to} (${show(stageOf(to))}): ` +
          'bring both to the same stage first',
      );
    });
  });
  return [...problems];
}

const takenBefore = (routing: Routing, end: number, pattern: string): boolean =>
  routing.slice(0, end).some(([earlier]) => patternIncludes(earlier, pattern));
const withDefault = (routing: Routing): Routing => [...routing, ['*', 'default']];
const samePoint = (a: StagePoint | undefined, b: StagePoint | undefined): boolean => a?.stage === b?.stage && a?.percent === b?.percent;
const describe = (a: string, b: string): string => (a === '*' ? b : b === '*' || a === b ? a : `${a} and ${b}`);
const show = (point: StagePoint | undefined): string =>
  point === undefined ? 'no stage' : point.stage === 'live' && point.percent < 100 ? `live ${point.percent} %` : point.stage;
