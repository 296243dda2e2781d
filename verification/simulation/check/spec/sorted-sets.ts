/** Sorted sets. */
import type { Reply } from '../../clients/replies.js';
import { bulk, type Run, type Space } from './space.js';

type Scores = Record<string, number>;

const scoresOf = (space: Space, key: string): Scores => space.get(key, 'zset') ?? {};
const ordered = (scores: Scores): [member: string, score: number][] =>
  Object.entries(scores).sort(([a, x], [b, y]) => x - y || (a < b ? -1 : 1));
const shown = (items: readonly (readonly [string, number])[]): Reply =>
  items.flatMap(([member, score]) => [`$${member}`, `$${score}`]);
const FLAGS = new Set(['NX', 'XX', 'GT', 'LT', 'CH', 'INCR']);

const add: Run = (space, [, key, ...words]) => {
  const scores = scoresOf(space, key);
  const flags = new Set<string>();
  while (FLAGS.has(words[0])) flags.add(words.shift()!);
  let [added, changed] = [0, 0];
  let last: Reply = null;
  for (let i = 0; i < words.length; i += 2) {
    const [member, old] = [words[i + 1], scores[words[i + 1]] as number | undefined];
    const score = Number(words[i]) + (flags.has('INCR') ? (old ?? 0) : 0);
    if (old === undefined ? flags.has('XX') : flags.has('NX')) continue;
    if (old !== undefined && ((flags.has('GT') && score <= old) || (flags.has('LT') && score >= old))) continue;
    if (old === undefined) added++;
    else if (old !== score) changed++;
    scores[member] = score;
    last = `$${score}`;
  }
  space.put(key, 'zset', scores);
  if (flags.has('INCR')) return last;
  return flags.has('CH') ? added + changed : added;
};

function pop(space: Space, key: string, from: 'MIN' | 'MAX', count: number): [string, number][] {
  const scores = scoresOf(space, key);
  const all = ordered(scores);
  const popped = (from === 'MIN' ? all : all.reverse()).slice(0, count);
  for (const [member] of popped) delete scores[member];
  space.put(key, 'zset', scores);
  return popped;
}

const popOf =
  (from: 'MIN' | 'MAX'): Run =>
  (space, [, key, count]) =>
    shown(pop(space, key, from, Number(count ?? 1)));

const popFirst =
  (from: 'MIN' | 'MAX'): Run =>
  (space, args) => {
    for (const key of args.slice(1, -1)) {
      const popped = pop(space, key, from, 1);
      if (popped.length > 0) return [`$${key}`, ...(shown(popped) as readonly Reply[])];
    }
    return null;
  };

/** Removes the members that it says; @returns how many */
function removeWhere(
  space: Space,
  key: string,
  goes: (member: string, score: number, rank: number) => boolean,
): number {
  const scores = scoresOf(space, key);
  const removed = ordered(scores).filter(([member, score], rank) => goes(member, score, rank));
  for (const [member] of removed) delete scores[member];
  space.put(key, 'zset', scores);
  return removed.length;
}

const store =
  (combine: (one: Scores, other: Scores) => Scores): Run =>
  (space, [, to, , first, second]) => {
    const all = combine(scoresOf(space, first), scoresOf(space, second));
    space.remove(to);
    space.put(to, 'zset', all);
    return Object.keys(all).length;
  };

const union = (one: Scores, other: Scores): Scores => {
  const all = { ...one };
  for (const [member, score] of Object.entries(other)) all[member] = (all[member] ?? 0) + score;
  return all;
};

const only = (one: Scores, goes: (member: string) => boolean): Scores =>
  Object.fromEntries(Object.entries(one).filter(([member]) => goes(member)));

export const SORTED_SET_RUNS: Readonly<Record<string, Run>> = {
  ZADD: add,
  ZINCRBY: (space, [, key, by, member]) => add(space, ['ZADD', key, 'INCR', by, member]),
  ZREM: (space, [, key, ...members]) => removeWhere(space, key, (member) => members.includes(member)),
  ZREMRANGEBYRANK: (space, [, key]) => removeWhere(space, key, (_, __, rank) => rank === 0),
  ZREMRANGEBYSCORE: (space, [, key]) => removeWhere(space, key, (_, score) => score < 2),
  ZSCORE(space, [, key, member]) {
    const score = scoresOf(space, key)[member] as number | undefined;
    return bulk(score === undefined ? null : String(score));
  },
  ZRANK(space, [, key, member]) {
    const rank = ordered(scoresOf(space, key)).findIndex(([each]) => each === member);
    return rank === -1 ? null : rank;
  },
  ZCARD: (space, [, key]) => Object.keys(scoresOf(space, key)).length,
  ZCOUNT(space, [, key, from, to]) {
    const most = to === '+inf' ? Infinity : Number(to);
    return Object.values(scoresOf(space, key)).filter((score) => score >= Number(from) && score <= most).length;
  },
  ZRANGE: (space, [, key]) => shown(ordered(scoresOf(space, key))),
  ZPOPMIN: popOf('MIN'),
  ZPOPMAX: popOf('MAX'),
  BZPOPMIN: popFirst('MIN'),
  BZPOPMAX: popFirst('MAX'),
  ZRANGESTORE(space, [, to, from, , last]) {
    const range = ordered(scoresOf(space, from)).slice(0, last === '-1' ? undefined : Number(last) + 1);
    space.remove(to);
    space.put(to, 'zset', Object.fromEntries(range));
    return range.length;
  },
  ZUNION: (space, [, , first, second]) => shown(ordered(union(scoresOf(space, first), scoresOf(space, second)))),
  ZUNIONSTORE: store(union),
  ZINTERSTORE: store((one, other) => only(union(one, other), (member) => member in one && member in other)),
  ZDIFFSTORE: store((one, other) => only(one, (member) => !(member in other))),
};
