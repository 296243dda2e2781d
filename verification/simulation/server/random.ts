/** Random elements, as SRANDMEMBER and its like return them. */
import type { State } from './state.js';

/** As many different elements as there are, in any order. */
export function distinct<T>(from: readonly T[], count: number, server: State): T[] {
  const left = [...from];
  const found: T[] = [];
  while (found.length < count && left.length > 0) {
    const at = server.below(left.length);
    found.push(left[at]);
    left[at] = left[left.length - 1];
    left.pop();
  }
  return found;
}

/** Any elements: a count below zero allows the same one again. */
export const randomOf = <T>(from: readonly T[], count: number, server: State): T[] =>
  count >= 0
    ? distinct(from, count, server)
    : Array.from({ length: from.length === 0 ? 0 : -count }, () => from[server.below(from.length)]);
