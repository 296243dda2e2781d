/**
 * Which changes of a plan a running process takes over. Servers, addresses, the state folder and the keys of each shard
 * need a restart: such a change is refused with a message, and never ignored silently. No change of the plan moves a
 * stage, or a key between workloads of different stages.
 */
import { isDeepStrictEqual } from 'node:util';
import { formatAddress, type Endpoint } from './endpoint.js';
import { neighboursOf } from './normalise.js';
import { patternIncludes, patternsOverlap } from './overlap.js';
import { formatPoint, isMirrored, samePoint, stageRule, type StagePoint } from '../route/stage.js';
import { allWorkloads, type Plan, type ShardPlan, type Stages } from './plan.js';

/** Patterns with their workloads, in matching order; keys that match none belong to `default`. */
export type Routing = readonly (readonly [pattern: string, workload: string])[];

export const routingOf = (plan: Plan): [string, string][] =>
  plan.workloads.flatMap((workload) => workload.keys.map((pattern): [string, string] => [pattern, workload.name]));

/** Why `next` cannot replace `previous` in a running process; empty if it can. `stages` are those in effect. */
export function checkReload(previous: Plan, next: Plan, stages: Stages): string[] {
  return [
    ...needsRestart(previous, next),
    ...checkRouting(routingOf(previous), routingOf(next), stages, firstStages(next), perRegionOf(next)),
  ];
}

/** The stages that the plan gives to workloads that the state does not know yet. */
export const firstStages = (plan: Plan): Stages =>
  Object.fromEntries([...plan.workloads, plan.default].map(({ name, stage, percent }) => [name, { stage, percent }]));

type Part<T> = readonly [name: string, of: (whole: T) => unknown];

/** Parts of the plan that only a restart can change. */
const OF_PLAN: readonly Part<Plan>[] = [
  ['name', (plan) => plan.name],
  ['state', (plan) => plan.state],
  ['admin.listen', (plan) => formatAddress(plan.admin)],
  ['topology', (plan) => plan.topology],
  ['onAuthorityChange', (plan) => plan.onAuthorityChange],
  ['hashFieldTtl', (plan) => plan.hashFieldTtl],
  ['threads', (plan) => plan.threads],
  ['sockets', (plan) => plan.sockets],
  ['opentelemetry', (plan) => plan.opentelemetry],
  [
    'sentinel',
    ({ sentinel }) => {
      if (sentinel === null) return null;
      const { announce, masters, listen } = sentinel;
      return [announce, masters, formatAddress(listen), listen.tls && listen.tls.requireClientCert];
    },
  ],
  [
    'workloads',
    (plan) =>
      allWorkloads(plan).map(({ name, keys, channels, writer, counterLayout }) => [
        name,
        keys,
        channels,
        writer,
        counterLayout,
      ]),
  ],
];
const OF_SHARD: readonly Part<ShardPlan>[] = [
  ['listen', ({ listen: { tls, proxyProtocol: _, ...listen } }) => [listen, tls && tls.requireClientCert]],
  ['proxyProtocol', ({ listen }) => listen.proxyProtocol],
  ['source', (shard) => serverOf(shard.source)],
  ['target', (shard) => serverOf(shard.target)],
  ['owns', (shard) => shard.owns],
  ['slots', (shard) => shard.slots],
  ['announce', (shard) => shard.announce],
  ['replicas', ({ replica }) => replica && [replica.listen.port, replica.announce]],
  ['region', (shard) => shard.region],
  ['admin.listen', (shard) => shard.admin && formatAddress(shard.admin)],
];

/** The identity of the server, and of the kit's user there, without passwords and certificates. */
const serverOf = (endpoint: Endpoint): unknown => ({
  ...endpoint,
  // After a failover another node of the cluster has the slots.
  ...(endpoint.kind === 'cluster' ? { master: null, at: null } : {}),
  label: null,
  password: null,
  sentinelPassword: null,
  tls: endpoint.tls && { servername: endpoint.tls.servername },
});

const RESTART = 'restart the proxy for that';

function needsRestart(previous: Plan, next: Plan): string[] {
  const problems = changedParts(OF_PLAN, previous, next).map((part) => `${part} changed: ${RESTART}`);
  for (const shard of previous.shards) {
    const now = next.shards.find(({ name }) => name === shard.name);
    if (now === undefined) problems.push(`shard ${shard.name} was removed: ${RESTART}`);
    else
      problems.push(
        ...changedParts(OF_SHARD, shard, now).map((part) => `${part} of shard ${shard.name} changed: ${RESTART}`),
      );
  }
  for (const { name } of next.shards) {
    if (!previous.shards.some((shard) => shard.name === name)) problems.push(`shard ${name} is new: ${RESTART}`);
  }
  return problems;
}

const changedParts = <T>(parts: readonly Part<T>[], before: T, now: T): string[] =>
  parts.filter(([, of]) => !isDeepStrictEqual(of(before), of(now))).map(([name]) => name);

/**
 * Why the new patterns cannot replace the old ones: a key might move between workloads of different stages. It may
 * refuse a safe change, but never accepts an unsafe one.
 *
 * A key's workload is that of the first pattern that matches it. It can change from that of old pattern i to that of
 * new pattern j only if some key matches both, and neither list has an earlier pattern that takes all keys of the
 * other's pattern.
 *
 * @param first stages of workloads that `stages` does not know
 * @param perRegion workloads whose keys have one part per region on the target: under another workload, the target
 * lacks them
 */
export function checkRouting(
  previous: Routing,
  next: Routing,
  stages: Stages,
  first: Stages,
  perRegion: readonly string[] = [],
): string[] {
  const [before, after] = [withDefault(previous), withDefault(next)];
  const stageOf = (workload: string): StagePoint | undefined => stages[workload] ?? first[workload];
  const hasParts = (workload: string): boolean =>
    perRegion.includes(workload) && stageRule(stageOf(workload)?.stage ?? 'off').authority === 'target';
  const problems = new Set<string>();
  before.forEach(([was, from], i) => {
    after.forEach(([is, to], j) => {
      if (from === to || (samePoint(stageOf(from), stageOf(to)) && hasParts(from) === hasParts(to))) return;
      if (takenBefore(before, i, is) || takenBefore(after, j, was)) return;
      if (!patternsOverlap(was, is)) return;
      problems.add(
        `keys of ${describe(was, is)} could move from workload ${from} (${show(stageOf(from))}) to ${to} (${show(stageOf(to))}): ` +
          (hasParts(from) === hasParts(to)
            ? 'move both to the same stage first'
            : 'counterLayout of one of them is per-region, and the target stores its counters in another layout'),
      );
    });
  });
  return [...problems];
}

/**
 * Which keys a shard has, as its state keeps it. If its plan does not say, these are the keys that no other shard on
 * its target names.
 */
export function writtenOwns(plan: Plan, shard: ShardPlan): string | null {
  if (shard.slots !== null) return JSON.stringify({ slots: shard.slots });
  const others = neighboursOf(plan, shard).flatMap(({ owns }) => owns ?? []);
  return shard.owns !== null
    ? JSON.stringify(shard.owns)
    : others.length > 0
      ? `all but ${JSON.stringify(others)}`
      : null;
}

/** Why a shard that had the keys `before` cannot have the plan's keys in these stages; null if it can. */
export function checkOwns(plan: Plan, shard: ShardPlan, before: string | null, stages: Stages): string | null {
  const beyond = Object.entries(stages).find(([, { stage }]) => stageRule(stage).authority === 'target');
  // If slots of a cluster have moved, the shards that served them were in the same stages (`shard/inherit.ts`).
  if (beyond === undefined || shard.slots !== null) return null;
  const where = `workload ${beyond[0]} is ${show(beyond[1])}`;
  if (shard.sharedTarget && shard.owns === null)
    return `shard ${shard.name} shares its target and has no owns, but ${where}: add owns to it`;
  if (writtenOwns(plan, shard) === before) return null;
  return `owns of shard ${shard.name} changed (before: ${before ?? 'nothing'}), and ${where}: roll it back to shadow first`;
}

/** Workloads whose counters have one part per region on the target. */
export const perRegionOf = (plan: Plan): string[] =>
  plan.workloads.filter(({ counterLayout }) => counterLayout === 'per-region').map(({ name }) => name);

/**
 * Why workloads cannot have the plan's layouts in these stages. @param before workloads with parts until now; null:
 * there was no state
 */
export function checkLayouts(plan: Plan, before: readonly string[] | null, stages: Stages): string[] {
  const now = perRegionOf(plan);
  return plan.workloads.flatMap(({ name }) => {
    const hasParts = now.includes(name);
    const point = stages[name];
    if (hasParts && isMirrored(point.stage))
      return [
        `workload ${name} is ${show(point)}, a stage that counterLayout per-region does not have: roll it back to off first`,
      ];
    if (before === null || before.includes(name) === hasParts || stageRule(point.stage).authority === 'source')
      return [];
    return [
      `counterLayout of ${name} changed, and it is ${show(point)}: the target stores its counters ${hasParts ? 'as plain keys' : 'per region'}, and they would not be found; roll it back to off first, or undo the change of counterLayout`,
    ];
  });
}

const takenBefore = (routing: Routing, end: number, pattern: string): boolean =>
  routing.slice(0, end).some(([earlier]) => patternIncludes(earlier, pattern));
const withDefault = (routing: Routing): Routing => [...routing, ['*', 'default']];
const describe = (a: string, b: string): string => (a === '*' ? b : b === '*' || a === b ? a : `${a} and ${b}`);
const show = (point: StagePoint | undefined): string => (point === undefined ? 'no stage' : formatPoint(point));
