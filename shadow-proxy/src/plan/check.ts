/**
 * Rules that the shape of a plan cannot express, because they concern several of its parts. Each rule adds its
 * problems, and all rules are checked.
 */
import { counterProblem } from './counters.js';
import { cacheEndpointProblem } from './elasticache.js';
import { addressesOf, formatAddress, isLoopback, type Address } from './endpoint.js';
import type { PlanPath, PlanProblem } from './errors.js';
import { sameServer } from './normalise.js';
import { patternProblem, patternsCover } from './overlap.js';
import { commonTo } from './owns.js';
import {
  allWorkloads,
  type AdminPlan,
  type CheckPlan,
  type HookPlan,
  type Plan,
  type ShardPlan,
  type WorkloadPlan,
} from './plan.js';
import { isMirrored } from '../route/stage.js';

type AddProblem = (path: PlanPath, message: string) => void;

export function checkPlan(plan: Plan): PlanProblem[] {
  const problems: PlanProblem[] = [];
  const say: AddProblem = (path, message) => problems.push({ path, message });
  names(plan, say);
  listens(plan, say);
  servers(plan, say);
  workloads(plan, say);
  sharedTargets(plan, say);
  topology(plan, say);
  sentinel(plan, say);
  return problems;
}

function names(plan: Plan, say: AddProblem): void {
  duplicates(
    plan.shards,
    (shard) => shard.name.toLowerCase(),
    (i, first) =>
      say(
        ['shards', i, 'name'],
        `is the name of shards[${first}] too: each shard needs its own name (upper and lower case are the same)`,
      ),
  );
  duplicates(
    plan.workloads,
    (workload) => workload.name,
    (i, first) =>
      say(['workloads', i, 'name'], `is the name of workloads[${first}] too: each workload needs its own name`),
  );
  duplicates(
    plan.notify,
    (receiver) => receiver.name,
    (i, first) =>
      say(
        ['notify', i, 'name'],
        `is the name of notify[${first}] too: give each receiver its own name (default: its kind)`,
      ),
  );
  const known = new Set(allWorkloads(plan).map(({ name }) => name));
  for (const field of ['checks', 'hooks'] as const) {
    const entries: readonly (CheckPlan | HookPlan)[] = plan[field];
    duplicates(
      entries,
      ({ name }) => name,
      (i, first) => say([field, i, 'name'], `is the name of ${field}[${first}] too: give each its own name`),
    );
    for (const [i, { workloads }] of entries.entries())
      for (const [at, name] of (workloads ?? []).entries())
        if (!known.has(name))
          say([field, i, 'workloads', at], `is "${name}", and the plan has ${[...known].join(', ')}`);
  }
  for (const field of ['guard', 'rollout'] as const)
    for (const [at, name] of (plan[field]?.workloads ?? []).entries())
      if (!known.has(name)) say([field, 'workloads', at], `is "${name}", and the plan has ${[...known].join(', ')}`);
  const checks = plan.checks.map(({ name }) => name);
  for (const [at, name] of (plan.guard?.checks ?? []).entries())
    if (!checks.includes(name))
      say(
        ['guard', 'checks', at],
        `is "${name}", and ${checks.length === 0 ? 'the plan has no checks' : `checks has ${checks.join(', ')}`}`,
      );
  plan.workloads.forEach(({ name }, i) => {
    if (name === 'default')
      say(
        ['workloads', i, 'name'],
        'is "default", the name reserved for keys that match no workload: choose another name',
      );
  });
}

interface PlanAddress {
  readonly path: PlanPath;
  readonly address: Address;
}

/**
 * Every address that the plan opens, each once. Shards may share an admin address with the plan, or with each other.
 */
function doors(plan: Plan): PlanAddress[] {
  const admins: PlanAddress[] = [{ path: ['admin', 'listen'], address: plan.admin }];
  plan.shards.forEach(({ admin }, i) => {
    if (admin && !admins.some((other) => formatAddress(other.address) === formatAddress(admin))) {
      admins.push({ path: ['shards', i, 'admin', 'listen'], address: admin });
    }
  });
  const doorsOf = ({ listen, replica }: ShardPlan, i: number): PlanAddress[] => [
    { path: ['shards', i, 'listen'], address: listen },
    ...(replica === null ? [] : [{ path: ['shards', i, 'replica'], address: replica.listen }]),
  ];
  const { sentinel } = plan;
  const asked = sentinel === null ? [] : [{ path: ['sentinel', 'listen'], address: sentinel.listen }];
  return [...plan.shards.flatMap(doorsOf), ...admins, ...asked];
}

function listens(plan: Plan, say: AddProblem): void {
  const open = doors(plan);
  open.forEach(({ path, address }, i) => {
    const taken = open.slice(0, i).find((other) => collide(other.address, address));
    if (taken)
      say(path, `is ${formatAddress(address)}, which ${taken.path.join('.')} uses already: give each its own port`);
  });
  const admins: [AdminPlan, PlanPath][] = [[plan.admin, ['admin']]];
  plan.shards.forEach(({ admin }, i) => admin && admins.push([admin, ['shards', i, 'admin']]));
  for (const [admin, path] of admins) {
    if (!isLoopback(admin.host) && !admin.token) {
      say(
        [...path, 'listen'],
        `is ${formatAddress(admin)}, beyond loopback: add token or tokenFile, or listen on 127.0.0.1`,
      );
    }
    const other = admins.find(([a]) => formatAddress(a) === formatAddress(admin))!;
    if (other[0].token !== admin.token)
      say([...path, 'listen'], `is that of ${other[1].join('.')}, with another token: use the same`);
  }
}

const ANY_HOST = ['0.0.0.0', '::'];
const collide = (a: Address, b: Address): boolean =>
  a.port !== 0 && a.port === b.port && (a.host === b.host || ANY_HOST.includes(a.host) || ANY_HOST.includes(b.host));

function servers(plan: Plan, say: AddProblem): void {
  plan.shards.forEach((shard, i) => {
    if (sameServer(shard.source, shard.target)) {
      say(
        ['shards', i, 'target'],
        'is the source itself: every write would run twice; use the address of the KeyDB server',
      );
    }
    const twin = plan.shards.findIndex((other) => sameServer(other.source, shard.source));
    // Shards of a cluster serve different slots of the same servers.
    if (twin < i && shard.slots === null)
      say(['shards', i, 'source'], `is the source of shards[${twin}] too: two shards would order the same keys`);
    for (const side of ['source', 'target'] as const) {
      for (const { host } of addressesOf(shard[side])) {
        const problem = shard[side].kind === 'cluster' ? null : cacheEndpointProblem(host);
        if (problem !== null) say(['shards', i, side], problem);
      }
      const looped = plan.shards.findIndex(({ listen }) =>
        addressesOf(shard[side]).some((address) => collide(listen, address)),
      );
      if (looped !== -1 && !ANY_HOST.includes(plan.shards[looped].listen.host)) {
        say(['shards', i, side], `is where shards[${looped}] listens: the proxy would connect to itself`);
      }
    }
  });
}

function workloads(plan: Plan, say: AddProblem): void {
  const patterns = plan.workloads.flatMap((workload, i) => workload.keys.map((pattern, k) => ({ pattern, i, k })));
  duplicates(
    patterns,
    ({ pattern }) => pattern,
    (n, first) => {
      const { pattern, i, k } = patterns[n];
      say(
        ['workloads', i, 'keys', k],
        `is ${JSON.stringify(pattern)}, which workloads[${patterns[first].i}] has already: the first workload that matches a key has it`,
      );
    },
  );
  for (const field of ['keys', 'channels'] as const) globs(plan, field, say);
  plan.shards.forEach(({ owns }, i) => {
    if (owns === null || !('patterns' in owns)) return;
    owns.patterns.forEach((pattern, k) => sayGlob(pattern, ['shards', i, 'owns', k], say));
  });
  eachWorkload(plan, (workload, path) => {
    if (workload.percent !== 100 && workload.stage !== 'live') {
      say(
        [...path, 'percent'],
        `is ${workload.percent} with stage ${workload.stage}: percent is allowed with stage live only`,
      );
    }
  });
}

const sayGlob = (pattern: string, path: PlanPath, say: AddProblem): boolean => {
  const problem = patternProblem(pattern);
  if (problem !== null) say(path, `is ${JSON.stringify(pattern)}, which ${problem}`);
  return problem === null;
};

/** Reports a pattern that matches no key for its workload, because earlier workloads have all its keys. */
function globs(plan: Plan, field: 'keys' | 'channels', say: AddProblem): void {
  const earlier: { readonly pattern: string; readonly i: number }[] = [];
  plan.workloads.forEach((workload, i) => {
    const patterns = workload[field];
    patterns.forEach((pattern, k) => {
      const path = ['workloads', i, field, k];
      // A repeated pattern was reported already.
      if (!sayGlob(pattern, path, say) || (field === 'keys' && earlier.some((other) => other.pattern === pattern)))
        return;
      const covers = (these: typeof earlier): boolean =>
        patternsCover(
          these.map((other) => other.pattern),
          pattern,
        );
      if (!covers(earlier)) return;
      const one = earlier.find((other) => covers([other]));
      const by =
        one === undefined
          ? 'several earlier workloads have together'
          : `workloads[${one.i}] (${plan.workloads[one.i].name}) has by ${JSON.stringify(one.pattern)}`;
      say(
        path,
        `is ${JSON.stringify(pattern)}, whose ${field} ${by}: the first workload that matches a key has it, so this pattern matches no key; put the narrower pattern first`,
      );
    });
    earlier.push(...patterns.filter((pattern) => patternProblem(pattern) === null).map((pattern) => ({ pattern, i })));
  });
}

function sharedTargets(plan: Plan, say: AddProblem): void {
  plan.shards.forEach((shard, i) => {
    const sharing = plan.shards
      .map((other, n) => ({ other, n }))
      .filter(({ other, n }) => n < i && sameServer(other.target, shard.target));
    for (const { other, n } of sharing) {
      const common = shard.owns && other.owns && commonTo(shard.owns, other.owns);
      if (common)
        say(
          ['shards', i, 'owns'],
          `has ${common[0]}, and shards[${n}] has ${common[1]}: a key that matches both would have two owners`,
        );
    }
  });
  const silent = plan.shards.findIndex((shard) => shard.sharedTarget && shard.owns === null);
  if (silent === -1) return;
  eachWorkload(plan, (workload, path) => {
    if (['live', 'rampdown', 'complete'].includes(workload.stage)) {
      const why = `shards[${silent}] (${plan.shards[silent].name}) shares its target and has no owns`;
      say([...path, 'stage'], `is ${workload.stage}, but ${why}: add owns to it, or use no stage beyond shadow`);
    }
  });
}

function topology(plan: Plan, say: AddProblem): void {
  const { mode, regions } = plan.topology;
  if (mode === 'active-active' && plan.cluster !== null)
    say(
      ['topology', 'mode'],
      'is active-active, which is not possible with cluster: a KeyDB cluster has one master for each slot',
    );
  if (mode === 'active-active' && regions.length < 2)
    say(['topology', 'regions'], 'needs at least two regions in mode active-active');
  duplicates(
    regions,
    (region) => region,
    (i) => say(['topology', 'regions', i], `is ${regions[i]}, which is listed already`),
  );
  const placed = allWorkloads(plan).find(
    ({ writer, counterLayout }) => writer !== null || counterLayout === 'per-region',
  );
  plan.shards.forEach(({ region, target }, i) => {
    if (
      region === null &&
      placed !== undefined &&
      (mode === 'active-active' || placed.counterLayout === 'per-region')
    ) {
      say(
        ['shards', i, 'region'],
        `is missing, and the writer of ${placed.name} depends on it: set the region of the target, one of topology.regions (${regions.join(', ') || 'list them there'})`,
      );
    }
    if (region !== null && !regions.includes(region))
      say(['shards', i, 'region'], `is ${region}, which topology.regions does not list`);
    const other = plan.shards.findIndex((shard) => shard.region !== region && sameServer(shard.target, target));
    if (other !== -1 && other < i)
      say(
        ['shards', i, 'region'],
        `is ${region ?? 'not given'}, and shards[${other}], which has the same target, says ${plan.shards[other].region ?? 'none'}`,
      );
  });
  eachWorkload(plan, (workload, path) => {
    const problem = counterProblem(workload, plan.topology);
    if (problem !== null) say([...path, problem.field], problem.message);
    if (workload.counterLayout === 'per-region') perRegion(plan, workload, path, say);
    const otherRegion = plan.shards.find(
      ({ region }) => workload.writer !== null && region !== null && region !== workload.writer,
    );
    if (otherRegion === undefined || plan.topology.secondWriter === 'count' || !isMirrored(workload.stage)) return;
    say(
      [...path, 'stage'],
      `is ${workload.stage}, in which keys are copied, but its only writer is ${workload.writer}, and shard ${otherRegion.name} is in ${otherRegion.region}: begin with "off", and promote it with --shard in the region that writes it`,
    );
  });
}

/** Checks what the proxy needs to count a workload per region. */
function perRegion(plan: Plan, { name, stage, writer }: WorkloadPlan, path: PlanPath, say: AddProblem): void {
  if (name === 'default')
    say(
      [...path, 'counterLayout'],
      'is per-region, but default has the keys that match no workload: give the counters their own workload',
    );
  if (writer !== null)
    say(
      [...path, 'writer'],
      `is ${writer}, but counterLayout is per-region, in which each region writes: leave one of them out`,
    );
  if (isMirrored(stage))
    say(
      [...path, 'stage'],
      `is ${stage}, in which both servers hold the same keys, but counterLayout is per-region, with other keys on the target: "off" and complete are allowed`,
    );
  plan.shards.forEach((shard, i) => {
    // The names become part of a writer's ID, in which dots separate the parts.
    for (const field of ['name', 'region'] as const)
      if (shard[field]?.includes('.'))
        say(
          ['shards', i, field],
          `is ${shard[field]}, but ${name} has counterLayout per-region: a name without a dot is allowed`,
        );
  });
}

function sentinel({ sentinel: plan }: Plan, say: AddProblem): void {
  for (const field of ['name', 'shard'] as const)
    duplicates(
      plan?.masters ?? [],
      (master) => master[field],
      (i, first) =>
        say(
          ['sentinel', 'masters', i, field],
          `is the ${field} of masters[${first}] too: each shard is one master, with one name`,
        ),
    );
}

function eachWorkload(plan: Plan, visit: (workload: WorkloadPlan, path: PlanPath) => void): void {
  plan.workloads.forEach((workload, i) => visit(workload, ['workloads', i]));
  visit(plan.default, ['default']);
}

function duplicates<T>(
  items: readonly T[],
  key: (item: T) => string,
  found: (index: number, first: number) => void,
): void {
  const first = new Map<string, number>();
  items.forEach((item, i) => {
    const known = first.get(key(item));
    if (known === undefined) first.set(key(item), i);
    else found(i, known);
  });
}
