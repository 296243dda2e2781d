/**
 * What makes the AWS provider replace a resource: the shape of force-new.json. The schema in JSON does not say it, so
 * it was read from the provider's source, by hand.
 */
import { isDeepStrictEqual } from 'node:util';
import { isMembers, UNKNOWN, type Members, type Value } from './msgpack.js';

/** When an argument forces a replacement only sometimes. */
export const CONDITIONS = {
  'one is removed': (before, after) =>
    Array.isArray(before) && Array.isArray(after) && before.some((element) => !after.includes(element as Value)),
  'there were none, or are none': (before, after) => isEmpty(before) !== isEmpty(after),
  'it is set or unset': (before, after) => (before === null) !== (after === null),
  // What follows is decided by what AWS says, or by another argument; no module leaves it to that.
  'the two types have no architecture in common': () => false,
  'user_data_replace_on_change is true': () => false,
} as const satisfies Readonly<Record<string, (before: Value, after: Value) => boolean>>;

export interface ForceNew {
  /** In the provider's repository. */
  readonly file: string;
  readonly commit: string;
  /** Of the provider, at that commit: 6 is the one that the modules require. */
  readonly series: number;
  /** Arguments; those of a block after its name and a dot. */
  readonly replaces: readonly string[];
  readonly sometimes?: readonly { readonly argument: string; readonly when: keyof typeof CONDITIONS }[];
}

/** Where a replacement comes from: an argument, or one of a block by its position. */
export type Path = readonly (string | number)[];

/** What differs between the two that the resource cannot live through. */
export function replacingPaths(facts: ForceNew, before: Members, after: Members): Path[] {
  const always = facts.replaces.flatMap((argument) => differences(argument.split('.'), before, after, []));
  const sometimes = (facts.sometimes ?? [])
    .filter(({ argument, when }) => CONDITIONS[when](before[argument], after[argument]))
    .map(({ argument }) => [argument]);
  return [...always, ...sometimes];
}

function differences([name, ...rest]: readonly string[], before: Value, after: Value, at: Path): Path[] {
  const old = memberOf(before, name);
  const now = memberOf(after, name);
  const here = [...at, name];
  if (rest.length === 0) return same(old, now) ? [] : [here];
  if (!Array.isArray(old) || !Array.isArray(now)) return same(old, now) ? [] : [here];
  const longest = old.length > now.length ? old : now;
  return longest.flatMap((_, index) =>
    differences(rest, (old[index] ?? null) as Value, (now[index] ?? null) as Value, [...here, index]),
  );
}

const memberOf = (value: Value, name: string): Value => (isMembers(value) ? (value[name] ?? null) : null);

const isEmpty = (value: Value): boolean => value === null || (Array.isArray(value) && value.length === 0);

/** What is not known yet may be anything. */
const same = (before: Value, after: Value): boolean => after !== UNKNOWN && isDeepStrictEqual(before, after);
