/** Questions about decoded replies that several rules ask. */
import { text, type Reply } from '../resp/decode.js';

/** The reply as one string. Two replies have the same string exactly if they are equal. Without recursion. */
export function canonical(reply: Reply): string {
  const parts: string[] = [];
  const left: Reply[] = [reply];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (next.items !== null) {
      parts.push(next.type, String(next.items.length), ';');
      for (let i = next.items.length - 1; i >= 0; i--) left.push(next.items[i]);
    } else if (next.data !== null) {
      parts.push(next.type, String(next.data.length), ':', next.data.toString('latin1'));
    } else {
      parts.push(next.type, 'null;');
    }
  }
  return parts.join('');
}

export const same = (a: Reply, b: Reply): boolean => canonical(a) === canonical(b);

/** The items, `size` at a time, each group as one canonical string. */
function grouped(items: readonly Reply[], size: number): string[] {
  const groups: string[] = [];
  for (let i = 0; i < items.length; i += size) {
    let group = '';
    for (let j = i; j < i + size && j < items.length; j++) group += canonical(items[j]);
    groups.push(group);
  }
  return groups;
}

function counted(elements: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const element of elements) counts.set(element, (counts.get(element) ?? 0) + 1);
  return counts;
}

/** Whether `whole` has every element of `part` at least as often, where `size` items are one element. */
export function isWithin(part: readonly Reply[], whole: readonly Reply[], size: 1 | 2): boolean {
  const counts = counted(grouped(whole, size));
  return grouped(part, size).every((element) => {
    const left = counts.get(element) ?? 0;
    counts.set(element, left - 1);
    return left > 0;
  });
}

/** Whether both have the same elements, each equally often, in any order. */
export const sameElements = (a: readonly Reply[], b: readonly Reply[], size: 1 | 2): boolean =>
  a.length === b.length && isWithin(a, b, size);

/** Whether fields that are in both flat lists of pairs have the same values. */
export function sharedPairsAgree(a: readonly Reply[], b: readonly Reply[]): boolean {
  const values = new Map<string, string>();
  for (let i = 0; i + 1 < a.length; i += 2) values.set(canonical(a[i]), canonical(a[i + 1]));
  for (let i = 0; i + 1 < b.length; i += 2) {
    const value = values.get(canonical(b[i]));
    if (value !== undefined && value !== canonical(b[i + 1])) return false;
  }
  return true;
}

/** A string that is not nil. */
export const isString = (reply: Reply): boolean => reply.type === '$' && reply.data !== null;

/** An integer's value; null for every other reply. */
export function integerOf(reply: Reply): bigint | null {
  return reply.type === ':' && reply.data !== null ? BigInt(text(reply)) : null;
}

/** Whether both are integers, and none is negative. */
export function areCounts(a: Reply, b: Reply): boolean {
  const [x, y] = [integerOf(a), integerOf(b)];
  return x !== null && y !== null && x >= 0n && y >= 0n;
}

export const isEmpty = (reply: Reply): boolean => reply.items?.length === 0;

/** The items of both aggregates; null if one is nil, or the types differ. */
export function itemsOfBoth(a: Reply, b: Reply): [readonly Reply[], readonly Reply[]] | null {
  return a.items !== null && b.items !== null && a.type === b.type ? [a.items, b.items] : null;
}

/** The argument as a word in upper case, `''` when there is none. */
export const word = (arg: Buffer | undefined): string => arg?.toString('latin1').toUpperCase() ?? '';
