/** Problems of a plan: the place, what was found, and what is allowed. */
import { printable } from '../text/printable.js';

export type PlanPath = readonly (string | number)[];

export interface PlanProblem {
  readonly path: PlanPath;
  /** A sentence that says what is wrong and what is allowed. It holds no secrets. */
  readonly message: string;
  /** Whether the problem is the name of the last key in the path, and not its value. */
  readonly atKey?: boolean;
  /** The first line is 1; absent if the plan did not come from a file. */
  readonly line?: number;
  readonly column?: number;
}

/** A plan cannot be used; nothing was started. */
export class PlanError extends Error {
  override readonly name = 'PlanError';
  readonly code = 'plan';
  constructor(
    /** For people: the name of the file, or of another origin. */
    readonly origin: string,
    readonly problems: readonly PlanProblem[],
  ) {
    super(
      problems
        .map((problem) => printable(`${position(origin, problem)}: ${subject(problem.path)}${problem.message}`))
        .join('\n'),
    );
  }
}

const position = (origin: string, { line, column }: PlanProblem): string =>
  line === undefined ? origin : `${origin}:${line}:${column}`;
const subject = (path: PlanPath): string => (path.length === 0 ? '' : `${formatPath(path)} `);

/** A path for people, such as `shards[0].tls.listen`. */
export const formatPath = (path: PlanPath): string =>
  path.map((part, i) => (typeof part === 'number' ? `[${part}]` : i === 0 ? part : `.${part}`)).join('');

/** The candidate that is most similar to `word`; undefined if none is similar. */
export function closest(word: string, candidates: readonly string[]): string | undefined {
  const scored = candidates.map((candidate) => ({
    candidate,
    distance: editDistance(word.toLowerCase(), candidate.toLowerCase()),
  }));
  const [best] = scored.sort((a, b) => a.distance - b.distance);
  return best && best.distance <= Math.max(1, Math.floor(best.candidate.length / 3)) ? best.candidate : undefined;
}

/** Counts insertions, deletions, replacements, and swaps of neighbours (optimal string alignment). */
function editDistance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    rows.push([i]);
    for (let j = 1; j <= b.length; j++) {
      const replaced = rows[i - 1][j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      rows[i][j] = Math.min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, replaced);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        rows[i][j] = Math.min(rows[i][j], rows[i - 2][j - 2] + 1);
      }
    }
  }
  return rows[a.length][b.length];
}
