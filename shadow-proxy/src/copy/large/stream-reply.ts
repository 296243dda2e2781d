/** Replies about streams. */
import { text, type Reply } from '../../resp/decode.js';

/** An entry's ID, and the ID with its fields. */
export const idOf = (entry: Reply): string => text(entry.items![0]);
export const fieldsOf = ({ items }: Reply): Buffer[] => [items![0].data!, ...items![1].items!.map(({ data }) => data!)];

/** A field of XINFO's reply, which alternates names and values. */
export const fieldOf = (reply: Reply, name: string): Buffer => newerFieldOf(reply, name)!;

/** A field that only newer servers have; null if it is absent, or nil. */
export function newerFieldOf({ items }: Reply, name: string): Buffer | null {
  const at = items!.findIndex((item, i) => i % 2 === 0 && text(item) === name);
  return at === -1 ? null : items![at + 1].data;
}

/** The next ID after this one. */
export function after(id: string): string {
  const [ms, seq] = id.split('-').map(BigInt);
  return seq === 2n ** 64n - 1n ? `${ms + 1n}-0` : `${ms}-${seq + 1n}`;
}
