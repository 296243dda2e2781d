/** Determines which commands count, because their result depends on the key's earlier value. */
import { KINDS, type CountingKind } from './counting-kind.js';
import { rowOf } from './rows.js';

/**
 * The kind of counting of a command by its name; null if the name does not show it. SET, for example, may be a lock or
 * a number written back.
 */
export const countingKind = (name: string): CountingKind | null => rowOf(name)?.counts ?? null;

/**
 * The index of the command's kind in `KINDS`. SET, which needs a closer look, has that of `rewrite`, and GET the one
 * after the last; all others have -1.
 */
export function watchedAs(name: string): number {
  if (name === 'get') return KINDS.length;
  const kind = name === 'set' ? 'rewrite' : countingKind(name);
  return kind === null ? -1 : KINDS.indexOf(kind);
}

/** Adds up counts of commands by kind. */
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
