/**
 * The rule that keeps counters from being lost on active-active nodes. It is the reference: Terraform's validations and
 * Ansible's assertions say the same in their languages.
 *
 * KeyDB has no conflict-free types. Two nodes that write one counter lose increments when a full resync keeps the whole
 * key of one of them. So a counter has one writer, or a layout in which no two nodes write one key.
 */
import type { CounterLayout, Topology, WorkloadClass } from './plan.js';

/**
 * Classes whose values are the sum of what several clients did. A leaderboard is a counter for each member. No layout
 * with one part per region exists for it.
 */
const COUNTS: ReadonlySet<WorkloadClass> = new Set(['counter', 'leaderboard']);

/** Whether the plan's class says that the values are sums. */
export const countsByClass = (name: WorkloadClass): boolean => COUNTS.has(name);

export interface CounterRule {
  readonly class: WorkloadClass;
  readonly writer: string | null;
  readonly counterLayout: CounterLayout;
}

/** A problem, and the field that has it. */
export interface CounterProblem {
  readonly field: 'class' | 'writer' | 'counterLayout';
  readonly message: string;
}

export function counterProblem(
  { class: name, writer, counterLayout }: CounterRule,
  { mode, regions }: Pick<Topology, 'mode' | 'regions'>,
): CounterProblem | null {
  if (counterLayout !== 'plain' && name !== 'counter') {
    return {
      field: 'counterLayout',
      message: `is ${counterLayout}, but class is ${name}: only class counter has a layout; leave it out`,
    };
  }
  if (writer !== null && !regions.includes(writer)) {
    return {
      field: 'writer',
      message: `is ${writer}, which topology.regions does not list: ${regions.length === 0 ? 'the list is empty; leave writer out, or list the regions' : `${regions.join(', ')} are allowed`}`,
    };
  }
  if (mode !== 'active-active' || !countsByClass(name) || writer !== null || counterLayout !== 'plain') return null;
  const layout = name === 'counter' ? ', or a conflict-free layout (counterLayout: library or per-region)' : '';
  return {
    field: 'class',
    message: `is ${name}, and topology.mode is active-active: two nodes that count at the same time lose increments. Give it one writer (writer: ${regions[0] ?? 'one of topology.regions'})${layout}, or use mode primary-replica`,
  };
}
