/**
 * The gate `counters`: whether a shard's counters are safe on its target. It also uses what the shard itself has
 * observed.
 */
import { byKind } from '../command/counting.js';
import type { CountingKind } from '../command/counting-kind.js';
import type { Cluster } from '../guard/node-facts.js';
import { judgeWorkload, type CountingObservation, type Sightings, type Verdict } from '../guard/judge.js';
import { readClusters } from '../guard/read-nodes.js';
import { allWorkloads, type Plan, type ShardPlan } from '../plan/plan.js';
import type { ShardSnapshot, WorkloadSnapshot } from '../telemetry/snapshot.js';

/** A short time is enough to see whether anything is written; the amount does not matter. */
const LOOK_MS = 100;

/** What a shard's proxy has observed of counters. */
export interface ObservedCounting {
  readonly counting: ShardSnapshot['counting'];
  readonly workloads: readonly Pick<WorkloadSnapshot, 'name' | 'secondWriterWrites' | 'byCommand'>[];
}

/** The verdict for each workload of the shard that has counters. */
export async function guardShard(plan: Plan, shard: ShardPlan, observed: ObservedCounting): Promise<Verdict[]> {
  return judgeAll(plan, await readClusters([shard], LOOK_MS), sightingsOf([observed]));
}

/** The verdict for every workload that is a counter, or was used as one. */
export const judgeAll = (plan: Plan, clusters: readonly Cluster[], sightings: Sightings | null): Verdict[] =>
  allWorkloads(plan).flatMap(
    (workload) => judgeWorkload({ topology: plan.topology, workload, clusters, sightings }) ?? [],
  );

/** What proxies have observed: prefixes if keys were recorded, else only the commands. */
export function sightingsOf(shards: readonly ObservedCounting[]): Sightings {
  const counting = together(shards.flatMap((shard) => shard.counting));
  const secondWriter: Record<string, number> = {};
  for (const { name, secondWriterWrites, byCommand = {} } of shards.flatMap(({ workloads }) => workloads)) {
    secondWriter[name] = (secondWriter[name] ?? 0) + secondWriterWrites;
    for (const [kind, commands] of Object.entries(byKind(byCommand)) as [CountingKind, Record<string, number>][]) {
      // The text of a script shows more than the fact that it ran.
      if (kind === 'script' || counting.some((each) => each.workload === name && each.kind === kind)) continue;
      counting.push({ workload: name, kind, prefix: null, commands, perSecond: 0 });
    }
  }
  return { counting, secondWriter };
}

/** Adds up what several shards have observed for the same keys. */
function together(all: readonly CountingObservation[]): CountingObservation[] {
  const found = new Map<string, CountingObservation>();
  for (const each of all) {
    const id = JSON.stringify([each.workload, each.kind, each.prefix]);
    const { commands = {}, perSecond = 0 } = found.get(id) ?? {};
    const sums = Object.entries(each.commands).map(([name, times]) => [name, times + (commands[name] ?? 0)]);
    found.set(id, {
      ...each,
      commands: { ...commands, ...Object.fromEntries(sums) },
      perSecond: perSecond + each.perSecond,
    });
  }
  return [...found.values()];
}
