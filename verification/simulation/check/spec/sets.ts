/** Sets: members are kept in order, so that two sets with the same members are the same text. */
import type { Reply } from '../../clients/replies.js';
import { bulk, flat, unordered, type Run, type Space } from './space.js';

const setOf = (space: Space, key: string): string[] => space.get(key, 'set') ?? [];
const put = (space: Space, key: string, members: Iterable<string>): void =>
  space.put(key, 'set', [...new Set(members)].sort());
const members = (space: Space, of: readonly string[]): Reply =>
  unordered(
    space,
    of.map((member) => [`$${member}`]),
  );

const COMBINE: Readonly<Record<string, (one: string[], other: string[]) => string[]>> = {
  SINTER: (one, other) => one.filter((each) => other.includes(each)),
  SUNION: (one, other) => [...new Set([...one, ...other])],
  SDIFF: (one, other) => one.filter((each) => !other.includes(each)),
};

const combine: Run = (space, [name, ...keys]) =>
  members(
    space,
    keys.map((key) => setOf(space, key)).reduce((one, other) => COMBINE[name](one, other)),
  );

const store: Run = (space, [name, to, ...keys]) => {
  const all = keys.map((key) => setOf(space, key)).reduce((one, other) => COMBINE[name.slice(0, -5)](one, other));
  space.remove(to);
  put(space, to, all);
  return all.length;
};

export const SET_RUNS: Readonly<Record<string, Run>> = {
  SADD(space, [, key, ...added]) {
    const before = setOf(space, key);
    put(space, key, [...before, ...added]);
    return setOf(space, key).length - before.length;
  },
  SREM(space, [, key, ...removed]) {
    const before = setOf(space, key);
    const after = before.filter((member) => !removed.includes(member));
    put(space, key, after);
    return before.length - after.length;
  },
  SPOP(space, [, key, count]) {
    const left = setOf(space, key);
    const { observed } = space;
    const seen = Array.isArray(observed) ? flat(observed) : [observed];
    const popped: string[] = [];
    for (let i = 0; i < Number(count ?? 1) && left.length > 0; i++) {
      const member = space.pick(left, seen[i]);
      popped.push(member);
      left.splice(left.indexOf(member), 1);
    }
    put(space, key, left);
    return count === undefined ? bulk(popped[0]) : popped.map((member) => bulk(member));
  },
  SRANDMEMBER(space, [, key, text]) {
    const all = setOf(space, key);
    const { observed } = space;
    if (text === undefined) return all.length === 0 ? null : bulk(space.pick(all, observed));
    const count = Number(text);
    const length = count < 0 ? (all.length === 0 ? 0 : -count) : Math.min(count, all.length);
    const seen = Array.isArray(observed) ? flat(observed) : [];
    const mayBe =
      seen.length === length &&
      seen.every((each) => typeof each === 'string' && all.includes(each.slice(1))) &&
      (count < 0 || new Set(seen).size === length);
    return mayBe ? seen : all.slice(0, length).map((member) => bulk(member));
  },
  SISMEMBER: (space, [, key, member]) => (setOf(space, key).includes(member) ? 1 : 0),
  SMISMEMBER(space, [, key, ...asked]) {
    const all = setOf(space, key);
    return asked.map((member) => (all.includes(member) ? 1 : 0));
  },
  SCARD: (space, [, key]) => setOf(space, key).length,
  SMEMBERS: (space, [, key]) => members(space, setOf(space, key)),
  SMOVE(space, [, from, to, member]) {
    const left = setOf(space, from);
    if (!left.includes(member)) return 0;
    put(
      space,
      from,
      left.filter((each) => each !== member),
    );
    put(space, to, [...setOf(space, to), member]);
    return 1;
  },
  SINTER: combine,
  SUNION: combine,
  SDIFF: combine,
  SINTERSTORE: store,
  SUNIONSTORE: store,
  SDIFFSTORE: store,
};
