/**
 * After slots of a cluster have moved, a shard may have slots that another shard served. It continues in that shard's
 * stages: in the plan's stages, its clients might be sent to the wrong server.
 */
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { diskAsync } from '../io/files.js';
import { commonSlots, countSlots, formatSlots } from '../plan/cluster-shards.js';
import type { Plan, ShardPlan } from '../plan/plan.js';
import { parseSlots } from '../plan/owns.js';
import type { SlotRange } from '../route/owner.js';
import { readState, StateError, StateStore, type Admission, type ShardState } from '../storage/state.js';

/**
 * Writes the shard's state if it has none for some of its slots, and other shards' folders have. Keys of the target
 * count as the kit's if each of those shards wrote all of its own. Call it when the lease is held: then the processes
 * that served the slots have ended.
 * @throws {StateError} if the slots were served in different stages, or it is not known in which
 */
export async function inheritState(plan: Plan, shard: ShardPlan, logger: Logger): Promise<void> {
  const { name, slots } = shard;
  if (slots === null) return;
  const own = await readState(join(plan.state, name), name);
  if (own !== null && covers(servedBy(own), slots)) return;
  const others = await otherStates(plan.state, name);
  const before = [...(own === null ? [] : [own]), ...others].filter(
    (state) => commonSlots(servedBy(state), slots).length > 0,
  );
  if (before.length === 0) return;
  const known = before.flatMap(servedBy);
  if (!covers(known, slots))
    throw new StateError(
      'state-missing',
      `shard ${name} has slots that were served in stages which are not known here: ${plan.state} has a state for ${formatSlots(commonSlots(known, slots))} of ${formatSlots(slots)}. Copy the folders of the other shards there`,
    );
  const [first, ...rest] = before;
  const unlike = rest.find(({ workloads }) => !isDeepStrictEqual(workloads, first.workloads));
  if (unlike !== undefined)
    throw new StateError(
      'state-old',
      `shard ${name} has slots that shards ${first.shard} and ${unlike.shard} served in other stages: start the proxies with the slots as they were, and bring both to the same stages first`,
    );
  const { workloads, routing, perRegion, target } = first;
  const admitted = writtenByAll(before);
  if (own !== null && isDeepStrictEqual(admitted, own.admitted)) return;
  const store = await StateStore.open(plan.state, name);
  const inherited = before.map((state) => state.shard);
  const patch = own === null ? { workloads, routing, perRegion, target, admitted } : { admitted };
  await store.update(patch, { event: 'inherited', from: inherited });
  await store.close();
  logger.warn(
    { shard: name, from: inherited },
    'slots have moved: the shard goes on in the stages of those that served them',
  );
}

async function otherStates(directory: string, name: string): Promise<ShardState[]> {
  const names = await diskAsync.list(directory).catch(() => []);
  const states = await Promise.all(
    names.filter((each) => each !== name).map((each) => readState(join(directory, each), each).catch(() => null)),
  );
  return states.filter((state) => state !== null);
}

/** The entries for workloads for which each of the shards wrote all its keys on the target. */
export function writtenByAll(states: readonly Pick<ShardState, 'admitted'>[]): ShardState['admitted'] {
  const wroteAll = ({ admitted }: Pick<ShardState, 'admitted'>, name: string): boolean => {
    const known = (admitted as Readonly<Record<string, Admission | undefined>>)[name];
    return known?.foreign === 0 && known.overwrites === 0;
  };
  return Object.fromEntries(
    Object.entries(states[0].admitted).filter(([name]) => states.every((state) => wroteAll(state, name))),
  );
}

const servedBy = ({ served }: ShardState): readonly SlotRange[] => (served === null ? [] : parseSlots(served));

const covers = (all: readonly SlotRange[], some: readonly SlotRange[]): boolean =>
  countSlots(union(all, some)) === countSlots(union(all, []));

/** The slots of both, each once, in ascending order. */
export function union(a: readonly SlotRange[], b: readonly SlotRange[]): SlotRange[] {
  const ranges: [number, number][] = [];
  for (const [first, last] of [...a, ...b].sort((one, other) => one[0] - other[0])) {
    const before = ranges.at(-1);
    if (before !== undefined && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else ranges.push([first, last]);
  }
  return ranges;
}

/**
 * The slots that the shard has ever served, including the present ones, as its state keeps them; null if it is of no
 * cluster.
 */
export const nowServed = ({ served }: ShardState, { slots }: ShardPlan): string | null =>
  slots === null ? served : formatSlots(union(served === null ? [] : parseSlots(served), slots));
