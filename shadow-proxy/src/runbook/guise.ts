/** The output of runbooks, in 80 columns. Pure. */
import type { Gates } from '../plan/plan.js';
import { GATES } from '../plan/schema.js';
import type { Runbook } from './document.js';
import { nextOf, type Stop } from './place.js';

/** Gates whose default is a number or a choice. The other gates list what an operator allows. */
type Measured = Exclude<keyof typeof GATES, 'allowUnsupported' | 'acceptSettings' | 'acceptRights'>;

/** The gates for which the plan asks less than the default: open gates then show little about a real migration. */
export function smallGates(gates: Gates): readonly string[] {
  const smaller = (name: Measured): boolean =>
    name.startsWith('min')
      ? gates[name] < GATES[name]
      : name === 'drill' || name === 'steps'
        ? !gates[name]
        : gates[name] > GATES[name];
  const names = (Object.keys(GATES) as (keyof typeof GATES)[]).filter(
    (name): name is Measured => !/^(allowUnsupported|acceptSettings|acceptRights)$/.test(name),
  );
  return names.filter(smaller).map((name) => `${name} ${gates[name]} (default ${GATES[name]})`);
}

export const smallGatesNote = (gates: Gates): string =>
  smallGates(gates).length === 0
    ? ''
    : `NOTE: the gates of this plan ask for less than the defaults:\n${smallGates(gates)
        .map((gate) => `  ${gate}\n`)
        .join('')}`;

/**
 * All stops: done, next, or still to come. @param command the command that shows this, to which an option can be added
 */
export function renderRun(
  { name, title }: Runbook,
  stops: readonly Stop[],
  done: ReadonlySet<string>,
  command: string,
): string {
  const next = nextOf(stops, done);
  const width = Math.max(0, ...stops.map(({ id }) => id.length));
  const lines = stops.map((stop) =>
    `  ${done.has(stop.id) ? '✓' : stop === next ? '→' : ' '} ${stop.id.padEnd(width)}  ${stop.step.changes === undefined ? '' : 'makes a change'}`.trimEnd(),
  );
  const what = next?.step.changes === undefined ? 'read-only' : `change: ${next.step.changes}`;
  return [
    `${title} (${name}.md)`,
    ...lines,
    ...(next === null
      ? ['All steps are done. --again starts from the first step.']
      : [`Next: ${next.id} (${what})`, `  ${command} --next`, 'Several steps: --until STEP, or --all']),
  ].join('\n');
}

/** Progress of a week, or of another page that was begun. */
export interface Progress {
  readonly name: string;
  readonly title: string;
  readonly steps: number;
  readonly done: number;
  /** Null if everything is done, or the page has no steps. */
  readonly next: string | null;
}

const COLUMNS = 80;

/** One line for each page. @param current the page of the present week */
export function renderProgress(pages: readonly Progress[], current: Progress | undefined): readonly string[] {
  const width = Math.max(...pages.map(({ name }) => name.length));
  return pages.map((page) => {
    const { name, title, steps, done, next } = page;
    const mark = steps > 0 && next === null ? '✓' : page === current ? '→' : ' ';
    const position =
      done === 0
        ? title.replace(/^Week \d+: /, '')
        : next === null
          ? 'done'
          : `${done} of ${steps} steps done; next: ${next}`;
    const line = `  ${mark} ${name.padEnd(width)}  ${position}`;
    return line.length > COLUMNS ? `${line.slice(0, COLUMNS - 1)}…` : line;
  });
}

/** Names only, several to a line. */
export function renderNames(names: readonly string[]): readonly string[] {
  const lines: string[] = [];
  for (const name of names) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 2 + name.length <= COLUMNS) lines.push(`${lines.pop()}, ${name}`);
    else lines.push(`    ${name}`);
  }
  return lines;
}

/** A change for several workloads. @param commands one for each, ready to be pasted */
export function renderGroup(group: readonly [Stop, ...Stop[]], commands: readonly string[]): string {
  const [first] = group;
  const { id } = first.step;
  const [head, ...rest] = renderStop({ ...first, id }, commands.join('\n'), `--undo ${id}:NAME`).split('\n');
  return [head, `For ${namesOf(group).join(', ')}:`, ...rest].join('\n');
}

/** The workloads of a group. */
export const namesOf = (group: readonly Stop[]): readonly string[] => group.flatMap(({ workload }) => workload ?? []);

/**
 * What is about to be run, and how it is undone if it changes something.
 * @param command ready to be pasted, as `undo` is
 */
export function renderStop({ id, step }: Stop, command: string, undo: string | undefined): string {
  const lines = command
    .trimEnd()
    .split('\n')
    .map((line) => `  ${line}`);
  if (step.changes === undefined) return [id, ...lines].join('\n');
  const back =
    undo === undefined || step.irreversible !== undefined
      ? `Irreversible: ${step.irreversible!}`
      : `Undo: ${undo.trim()}`;
  return [`${id}, a change: ${step.changes}`, ...lines, back].join('\n');
}

/** An undo that is about to be run. */
export const renderUndo = ({ id }: Stop, command: string): string =>
  [
    `Undo ${id}`,
    ...command
      .trimEnd()
      .split('\n')
      .map((line) => `  ${line}`),
  ].join('\n');
