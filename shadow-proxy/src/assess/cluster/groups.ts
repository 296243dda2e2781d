/**
 * Puts the masters of the source into groups, one for each master of the target, so that the heaviest group is as light
 * as possible.
 */

/**
 * Groups of neighbours, which have one range, are preferred if the heaviest is at most this many times as heavy as with
 * the best groups.
 */
const NEIGHBOURS_MAY = 1.05;

/**
 * @param weights weights of at most 16 masters, in the order of their slots
 * @param count number of groups, at most that of masters
 * @returns the indexes of each group's masters
 */
export function groupMasters(weights: readonly number[], count: number): number[][] {
  const neighbours = lightest(neighbouring(weights.length, count), weights);
  const limit = heaviest(neighbours, weights) / NEIGHBOURS_MAY;
  return lighter(weights, count, limit) ?? neighbours;
}

const heaviest = (groups: readonly (readonly number[])[], weights: readonly number[]): number =>
  Math.max(...groups.map((group) => group.reduce((sum, master) => sum + weights[master], 0)));

function lightest(all: readonly number[][][], weights: readonly number[]): number[][] {
  const loads = all.map((groups) => heaviest(groups, weights));
  return all[loads.indexOf(Math.min(...loads))];
}

/** Every way to divide masters `from` to `until - 1` into groups of neighbours. */
function neighbouring(until: number, count: number, from = 0): number[][][] {
  const group = (end: number): number[] => Array.from({ length: end - from }, (_, i) => from + i);
  if (count === 1) return [[group(until)]];
  return Array.from({ length: until - from - count + 1 }, (_, i) => from + 1 + i).flatMap((end) =>
    neighbouring(until, count - 1, end).map((rest) => [group(end), ...rest]),
  );
}

/**
 * The groups whose heaviest one is lightest, if it is lighter than `limit`. Masters are placed from the heaviest on,
 * each into every group that still has room.
 */
function lighter(weights: readonly number[], count: number, limit: number): number[][] | null {
  const heaviestFirst = weights.map((_, i) => i).sort((a, b) => weights[b] - weights[a]);
  const groups = Array.from({ length: count }, () => ({ masters: [] as number[], weight: 0 }));
  let best: number[][] | null = null;
  let bound = limit;
  const place = (at: number): void => {
    if (at === heaviestFirst.length) {
      bound = Math.max(...groups.map(({ weight }) => weight));
      best = groups.map(({ masters }) => [...masters].sort((a, b) => a - b));
      return;
    }
    const empty = groups.filter(({ masters }) => masters.length === 0).length;
    const tried = new Set<number>();
    for (const group of groups) {
      const { weight } = group;
      // Groups of equal weight are equivalent, and none may stay empty.
      const alike = group.masters.length === 0 ? -1 : weight;
      const leavesEmpty = group.masters.length > 0 && heaviestFirst.length - at <= empty;
      if (tried.has(alike) || leavesEmpty || weight + weights[heaviestFirst[at]] >= bound) continue;
      tried.add(alike);
      group.masters.push(heaviestFirst[at]);
      group.weight += weights[heaviestFirst[at]];
      place(at + 1);
      group.masters.pop();
      group.weight = weight;
    }
  };
  place(0);
  return best;
}
