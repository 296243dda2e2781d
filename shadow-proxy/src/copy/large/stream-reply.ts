/** What servers tell of streams. */
import { text, type Reply } from '../../resp/decode.js';

/** An entry's ID, and the ID with its fields. */
export const idOf = (entry: Reply): string => text(entry.items![0]);
export const fieldsOf = ({ items }: Reply): Buffer[] => [items![0].data!, ...items![1].items!.map(({ data }) => data!)];

/** A field of XINFO's reply, which alternates names and values. */
export function fieldOf({ items }: Reply, name: string): Buffer {
  return items![items!.findIndex((item, i) => i % 2 === 0 && text(item) === name) + 1].data!;
}

/** The least ID that is greater. */
export function after(id: string): string {
  const [ms, seq] = id.split('-').map(BigInt);
  return seq === 2n ** 64n - 1n ? `${ms + 1n}-0` : `${ms}-${seq + 1n}`;
}
