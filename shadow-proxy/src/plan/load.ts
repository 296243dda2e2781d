/**
 * Makes a plan from a YAML file, or from an object that the CLI made.
 *
 *   text → YAML → shape (schema.ts) → addresses, secrets, defaults (normalise.ts) → rules (check.ts) → Plan
 */
import { dirname, resolve } from 'node:path';
import { isMap, isPair, isSeq, type Document, type LineCounter, type Node, type Pair } from 'yaml';
import { adminsIn, type PlannedAdmins } from './admins.js';
import { checkPlan } from './check.js';
import { PlanError, type PlanPath, type PlanProblem } from './errors.js';
import { readWhole, type FileError } from './file.js';
import { normalise, type Surroundings } from './normalise.js';
import type { Plan } from './plan.js';
import { planSchema } from './schema.js';
import { shapeProblems } from './shape.js';
import { readYaml, type Yaml } from './yaml.js';

/** A plan is read once: to compile functions for its schema takes longer than they save. */
const ONCE = { jitless: true };

/**
 * Reads, checks and completes a plan.
 * @throws {PlanError} with every problem that was found, each with its line and column
 */
export function loadPlan(file: string, env: NodeJS.ProcessEnv = process.env): Plan {
  const yaml = readYaml(file, textOf(file));
  const { plan, problems } = toPlan(yaml.value, { directory: dirname(resolve(file)), env });
  if (plan) return plan;
  throw placed(file, yaml, problems);
}

/**
 * Reads only how the proxies of a plan are reached. No password, key or certificate of a server is read, so that this
 * works on a machine without these files.
 * @throws {PlanError} if the shape of the plan or an admin address is wrong
 */
export function loadAdmins(file: string, env: NodeJS.ProcessEnv = process.env): PlannedAdmins {
  const yaml = readYaml(file, textOf(file));
  const parsed = planSchema.safeParse(yaml.value, ONCE);
  if (!parsed.success) throw placed(file, yaml, shapeProblems(parsed.error.issues, yaml.value));
  const { planned, problems } = adminsIn(parsed.data, { directory: dirname(resolve(file)), env });
  if (problems.length > 0) throw placed(file, yaml, problems);
  return planned;
}

/** Adds the line and the column to each problem. */
function placed(file: string, { document, lines }: Yaml, problems: readonly PlanProblem[]): PlanError {
  const found = problems.map((problem) => ({ ...problem, ...position(document, lines, problem) }));
  return new PlanError(
    file,
    found.sort((a, b) => a.line - b.line || a.column - b.column),
  );
}

function textOf(file: string): string {
  try {
    return readWhole(file).toString('utf8');
  } catch (error) {
    const { code } = error as FileError;
    throw new PlanError(file, [
      { path: [], message: `cannot be read (${code}): give the path of the plan with --plan` },
    ]);
  }
}

/**
 * Checks and completes a plan that is not a file.
 * @throws {PlanError}
 */
export function planFrom(value: unknown, origin: string, surroundings: Surroundings): Plan {
  const { plan, problems } = toPlan(value, surroundings);
  if (plan) return plan;
  throw new PlanError(origin, problems);
}

function toPlan(value: unknown, surroundings: Surroundings): { plan: Plan | null; problems: PlanProblem[] } {
  const parsed = planSchema.safeParse(value, ONCE);
  if (!parsed.success) return { plan: null, problems: shapeProblems(parsed.error.issues, value) };
  const { plan, problems } = normalise(parsed.data, surroundings);
  if (plan === null) return { plan, problems };
  const broken = checkPlan(plan);
  return { plan: broken.length === 0 ? plan : null, problems: broken };
}

/** The position of the value at the problem's path, or of the nearest value around it that the file has. */
function position(
  document: Document,
  lines: LineCounter,
  { path, atKey }: PlanProblem,
): { line: number; column: number } {
  let node: Node | null = document.contents;
  let offset = node?.range?.[0] ?? 0;
  for (const [depth, part] of path.entries()) {
    const found: Pair | Node | undefined = step(node, part);
    if (found === undefined) break;
    const pair = isPair(found);
    const last = depth === path.length - 1;
    node = (pair ? found.value : found) as Node | null;
    const shown = (pair && ((last && atKey) || !node?.range) ? found.key : node) as Node | null;
    offset = shown?.range?.[0] ?? offset;
  }
  const { line, col } = lines.linePos(offset);
  return { line, column: col };
}

function step(node: Node | null, part: PlanPath[number]): Pair | Node | undefined {
  if (isMap(node)) return node.items.find((pair) => String(pair.key) === String(part));
  if (isSeq(node)) return node.items[Number(part)] as Node | undefined;
  return undefined;
}
