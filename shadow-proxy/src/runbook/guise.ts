/** What a runbook prints, in 80 columns. Pure. */
import type { Gates } from '../plan/plan.js';
import { GATES } from '../plan/schema.js';
import { retyped } from '../text/invocation.js';
import type { Runbook } from './document.js';
import { nextOf, type Stop } from './place.js';

/** The gates of the plan that ask for less than the defaults: what opens them says little about a real migration. */
export function smallGates(gates: Gates): readonly string[] {
  const smaller = (name: keyof typeof GATES): boolean =>
    name.startsWith('min')
      ? gates[name] < GATES[name]
      : name === 'drill' || name === 'steps'
        ? !gates[name]
        : gates[name] > GATES[name];
  const names = Object.keys(GATES) as (keyof typeof GATES)[];
  return names.filter(smaller).map((name) => `${name} ${gates[name]} (default ${GATES[name]})`);
}

export const smallGatesNote = (gates: Gates): string =>
  smallGates(gates).length === 0
    ? ''
    : `NOTE: the gates of this plan ask for less than the defaults:\n${smallGates(gates)
        .map((gate) => `  ${gate}\n`)
        .join('')}`;

/** Every stop: done, next, or to come. */
export function renderRun({ name, title }: Runbook, stops: readonly Stop[], done: ReadonlySet<string>): string {
  const next = nextOf(stops, done);
  const width = Math.max(0, ...stops.map(({ id }) => id.length));
  const lines = stops.map((stop) =>
    `  ${done.has(stop.id) ? '✓' : stop === next ? '→' : ' '} ${stop.id.padEnd(width)}  ${stop.step.changes === undefined ? '' : 'makes a change'}`.trimEnd(),
  );
  const what = next?.step.changes === undefined ? 'read-only' : `change: ${next.step.changes}`;
  return [
    `${title} (${name}.md)`,
    ...lines,
    next === null
      ? 'All steps are done. --again starts from the first step.'
      : `Next: --next runs ${next.id} (${what}); --until STEP or --all runs several`,
  ].join('\n');
}

/** A change that is about to be run for its workloads, as the page has it. */
export function renderGroup(group: readonly [Stop, ...Stop[]]): string {
  const [{ step }] = group;
  const names = group.flatMap(({ workload }) => workload ?? []);
  const [head, ...rest] = renderStop({ ...group[0], id: step.id }, step.run, false).split('\n');
  return [head, ...(names.length === 0 ? [] : [`  for ${names.join(', ')}`]), ...rest].join('\n');
}

/** What is about to be run, and, where it changes something, how it is undone. */
export function renderStop({ id, step }: Stop, command: string, undoing: boolean): string {
  const lines = retyped(command)
    .trimEnd()
    .split('\n')
    .map((line) => `  $ ${line}`);
  const back =
    undoing || step.changes === undefined
      ? []
      : [step.undo === undefined ? `  irreversible: ${step.irreversible!}` : `  undo: ${retyped(step.undo).trim()}`];
  return [
    `${undoing ? 'Undo ' : ''}${id}${step.changes === undefined || undoing ? '' : `, a change: ${step.changes}`}`,
    ...lines,
    ...back,
  ].join('\n');
}
