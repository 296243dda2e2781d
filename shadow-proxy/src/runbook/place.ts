/**
 * The position in a runbook. Pure: steps are laid out over the plan's workloads, and the log shows which of them are
 * done.
 */
import type { WorkloadPlan } from '../plan/plan.js';
import type { Runbook, Step } from './document.js';

/** A step for one workload, or for none. */
export interface Stop {
  /** `dualwrite`, or `dualwrite:sessions`. */
  readonly id: string;
  readonly step: Step;
  readonly workload: string | null;
}

/** One line of the log. */
export interface LogEntry {
  readonly at: string;
  readonly runbook: string;
  /** A stop's id; null for `again`. */
  readonly stop: string | null;
  /** `again`: the run starts again. */
  readonly kind: 'run' | 'undo' | 'check' | 'again';
  readonly by: string;
  /** As on the page, with the names of variables instead of their values. */
  readonly command: string | null;
  /** Null if a signal ended the command, or it could not be started. */
  readonly exit: number | null;
  /** Expectations that were not met; empty if all were. */
  readonly failed: readonly string[];
}

/**
 * The stops of a runbook in order: a step for several workloads has one stop for each.
 * @param named workloads that the operator named; null: all workloads of each step
 */
export function layOut(
  runbook: Runbook,
  workloads: readonly WorkloadPlan[],
  named: readonly string[] | null,
): readonly Stop[] {
  return runbook.steps.flatMap((step): readonly Stop[] => {
    if (step.each === undefined) return [{ id: step.id, step, workload: null }];
    const { each } = step;
    const concerned =
      each === 'all'
        ? workloads
        : each === 'named'
          ? named === null
            ? []
            : workloads
          : workloads.filter((workload) => each.includes(workload.class));
    return concerned
      .filter(({ name }) => named?.includes(name) ?? true)
      .map(({ name }) => ({ id: `${step.id}:${name}`, step, workload: name }));
  });
}

/** The stops that were done and not undone. Undoing a stop also undoes the later stops of the same workload. */
export function doneOf(runbook: string, stops: readonly Stop[], log: readonly LogEntry[]): ReadonlySet<string> {
  const done = new Set<string>();
  for (const { runbook: of, stop, kind, failed } of log) {
    if (of !== runbook || kind === 'check') continue;
    if (kind === 'again') done.clear();
    else if (kind === 'run') {
      if (failed.length === 0) done.add(stop!);
      else done.delete(stop!);
    } else if (failed.length === 0) for (const each of after(stop!, stops)) done.delete(each.id);
  }
  return done;
}

function after(id: string, stops: readonly Stop[]): readonly Stop[] {
  const at = stops.findIndex((stop) => stop.id === id);
  if (at === -1) return [];
  const { workload } = stops[at];
  return stops.slice(at).filter((stop) => workload === null || stop.workload === null || stop.workload === workload);
}

/** The first stop that is not done; null if all are. */
export const nextOf = (stops: readonly Stop[], done: ReadonlySet<string>): Stop | null =>
  stops.find(({ id }) => !done.has(id)) ?? null;

/**
 * The stops that are not done yet up to and including one stop, or up to the end, in order. The stops of one step are
 * grouped: a change is confirmed once for all of them.
 */
export function toDo(
  stops: readonly Stop[],
  done: ReadonlySet<string>,
  end: Stop | null,
): readonly (readonly [Stop, ...Stop[]])[] {
  const open = stops.slice(0, end === null ? stops.length : stops.indexOf(end) + 1).filter(({ id }) => !done.has(id));
  const groups: [Stop, ...Stop[]][] = [];
  for (const stop of open) {
    const last = groups.at(-1);
    if (last?.[0].step === stop.step) last.push(stop);
    else groups.push([stop]);
  }
  return groups;
}

/**
 * What `--check` runs: the stops that change nothing, up to the present position. Before the run has begun, those
 * before its first change. A stop whose expectations hold only at its place is left out once it was done.
 */
export function checksOf(stops: readonly Stop[], done: ReadonlySet<string>): readonly Stop[] {
  const next = nextOf(stops, done);
  const open = next === null ? stops.length : stops.indexOf(next);
  const end = done.size > 0 ? open : stops.findIndex(({ step }) => step.changes !== undefined);
  return stops
    .slice(0, end === -1 ? stops.length : end)
    .filter(({ step, id }) => step.changes === undefined && !(step.once && done.has(id)));
}
