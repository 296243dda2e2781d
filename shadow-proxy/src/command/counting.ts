/** Which commands count by what the key held before. */
import { KINDS, type CountingKind } from './counting-kind.js';
import { rowOf } from './rows.js';

/**
 * The kind of counting of a command, by its name alone; null if the name does not show it, as for SET, which may be a
 * lock or a number written back.
 */
export const countingKind = (name: string): CountingKind | null => rowOf(name)?.counts ?? null;

/**
 * The place of its kind in `KINDS`, for those that are looked at one by one: SET in that of `rewrite`, GET behind all;
 * -1 for others.
 */
export function watchedAs(name: string): number {
  if (name === 'get') return KINDS.length;
  const kind = name === 'set' ? 'rewrite' : countingKind(name);
  return kind === null ? -1 : KINDS.indexOf(kind);
}

/** The counts by kind, from counts by command. */
export function byKind(
  commands: Readonly<Record<string, number>>,
): Partial<Record<CountingKind, Record<string, number>>> {
  const found: Partial<Record<CountingKind, Record<string, number>>> = {};
  for (const [name, count] of Object.entries(commands)) {
    const kind = countingKind(name);
    if (kind !== null && count > 0) (found[kind] ??= {})[name] = count;
  }
  return found;
}
