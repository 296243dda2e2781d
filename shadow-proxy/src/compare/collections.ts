/** Rules for replies that are collections: without an order, chosen at random, or page by page. */
import { text, type Reply } from '../resp/decode.js';
import { isString, isWithin, itemsOfBoth, sameElements, sharedPairsAgree, word } from './shape.js';
import type { CommandView, Difference } from './verdict.js';

/** How many strings belong together in a reply without an order. */
export const sizeOfElements = ({ name }: CommandView): 1 | 2 => (name === 'hgetall' ? 2 : 1);

export function allowsUnordered({ command, authority, mirror }: Difference): boolean {
  const items = itemsOfBoth(authority, mirror);
  return items !== null && sameElements(...items, sizeOfElements(command));
}

/** SRANDMEMBER, HRANDFIELD, ZRANDMEMBER `key [count [WITHVALUES|WITHSCORES]]`, and RANDOMKEY. */
export function allowsRandom({ command, authority, mirror }: Difference): boolean {
  if (command.args.length < 3) return isString(authority) && isString(mirror);
  const withValues = command.args.length > 3;
  const items = itemsOfBoth(authority, mirror);
  if (items === null || items[0].length !== items[1].length) return false;
  const [a, m] = withValues ? [flatPairs(items[0]), flatPairs(items[1])] : items;
  if (a === null || m === null || a.length !== m.length) return false;
  if (![...a, ...m].every((item) => isString(item) || item.type === ',')) return false;
  const size = withValues ? 2 : 1;
  const count = Number(command.args[2].toString('latin1'));
  // Fewer elements than the command asked for are all that exist. A negative count allows repetitions.
  if (count > a.length / size) return sameElements(a, m, size);
  return !withValues || sharedPairsAgree(a, m);
}

/** Names and values one after another: flat in RESP2, pairs in RESP3. Null for any other reply. */
function flatPairs(items: readonly Reply[]): readonly Reply[] | null {
  if (items.every((item) => item.items === null)) return items.length % 2 === 0 ? items : null;
  return items.every((item) => item.type === '*' && item.items?.length === 2)
    ? items.flatMap((item) => item.items!)
    : null;
}

interface Page {
  readonly cursor: string;
  readonly items: readonly Reply[];
}

/** SCAN cursor …, and HSCAN, SSCAN, ZSCAN key cursor …: a page is [cursor, elements]. */
export function allowsCursor({ command, authority, mirror }: Difference): boolean {
  const { name, args } = command;
  const pairs = name === 'zscan' || (name === 'hscan' && !args.some((arg, i) => i > 2 && word(arg) === 'NOVALUES'));
  const size = pairs ? 2 : 1;
  const [a, m] = [pageOf(authority, size), pageOf(mirror, size)];
  if (a === null || m === null || authority.type !== mirror.type) return false;
  const fromStart = args[name === 'scan' ? 1 : 2]?.toString('latin1') === '0';
  const isWhole = (page: Page): boolean => fromStart && page.cursor === '0';
  if (isWhole(a) && isWhole(m)) return sameElements(a.items, m.items, size);
  if (isWhole(a)) return isWithin(m.items, a.items, size);
  if (isWhole(m)) return isWithin(a.items, m.items, size);
  return !pairs || sharedPairsAgree(a.items, m.items);
}

function pageOf(reply: Reply, size: 1 | 2): Page | null {
  if (reply.items?.length !== 2) return null;
  const [cursor, { items }] = reply.items;
  if (!isString(cursor) || !/^\d+$/.test(text(cursor)) || items === null) return null;
  return items.every(isString) && items.length % size === 0 ? { cursor: text(cursor), items } : null;
}
