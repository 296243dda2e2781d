/** Whether both servers hold the same of a large key, each part read at one place in the order. */
import { isError, text, type Reply } from '../../resp/decode.js';
import type { Both, Parts } from './parts.js';
import { after, fieldOf, idOf } from './stream-reply.js';

/** Entries by ID, groups, consumers and what is pending; not what the servers say of their number. */
export async function equalStreams(parts: Parts, count: number): Promise<boolean> {
  const { key } = parts;
  for (let from: string | null = '-'; from !== null;) {
    const both: Both = await parts.both([['XRANGE', key, from, '+', 'COUNT', count]]);
    if (!same(both)) return false;
    const entries: readonly Reply[] = both.authority[0].items ?? [];
    from = entries.length < count ? null : after(idOf(entries.at(-1)!));
  }
  const end = await parts.both([
    ['XINFO', 'STREAM', key],
    ['XINFO', 'GROUPS', key],
  ]);
  if (bothRefuse(end)) return true;
  const lastId = (replies: readonly Reply[]): string => fieldOf(replies[0], 'last-generated-id').toString();
  const groups = (replies: readonly Reply[]): string[] =>
    (replies[1].items ?? [])
      .map((group) =>
        JSON.stringify(['name', 'last-delivered-id', 'pending'].map((name) => fieldOf(group, name).toString('latin1'))),
      )
      .sort();
  if (lastId(end.authority) !== lastId(end.mirror) || String(groups(end.authority)) !== String(groups(end.mirror)))
    return false;
  for (const group of end.authority[1].items ?? []) {
    const name = fieldOf(group, 'name');
    if (!(await equalConsumers(parts, name)) || !(await equalPending(parts, name, count))) return false;
  }
  return true;
}

/** Compares consumers, also those without a pending entry. When each was seen last is each server's own. */
async function equalConsumers(parts: Parts, group: Buffer): Promise<boolean> {
  const both: Both = await parts.both([['XINFO', 'CONSUMERS', parts.key, group]]);
  // The group may have been removed since, on both.
  if (bothRefuse(both)) return true;
  const names = ([reply]: readonly Reply[]): string =>
    JSON.stringify((reply.items ?? []).map((each) => fieldOf(each, 'name').toString('latin1')).sort());
  return names(both.authority) === names(both.mirror);
}

/** Compares pending entries by ID: consumer and deliveries. Since when an entry is pending is each server's own. */
async function equalPending(parts: Parts, group: Buffer, count: number): Promise<boolean> {
  const { key } = parts;
  const shown = (reply: Reply): string =>
    JSON.stringify((reply.items ?? []).map(({ items }) => [0, 1, 3].map((i) => text(items![i]))));
  for (let from: string | null = '-'; from !== null;) {
    const both: Both = await parts.both([['XPENDING', key, group, from, '+', count]]);
    // The group may have been removed since, on both.
    if (bothRefuse(both)) return true;
    if (shown(both.authority[0]) !== shown(both.mirror[0])) return false;
    const entries: readonly Reply[] = both.authority[0].items ?? [];
    from = entries.length < count ? null : after(text(entries.at(-1)!.items![0]));
  }
  return true;
}

/** Whether both servers refuse: the part was removed. */
const bothRefuse = ({ authority, mirror }: Both): boolean => authority.some(isError) && mirror.some(isError);

/** @param scores numbers are compared as such: KeyDB alone keeps the sign of a zero */
export function same({ authority, mirror }: Both, scores = false): boolean {
  const equal = (a: Reply, b: Reply): boolean => {
    if (a.items !== null || b.items !== null)
      return (
        a.items !== null &&
        b.items !== null &&
        a.items.length === b.items.length &&
        a.items.every((item, i) => equal(item, b.items![i]))
      );
    if (a.data === null || b.data === null) return a.data === b.data;
    // Each server has its own wording.
    if (isError(a) && isError(b)) return true;
    return a.data.equals(b.data) || (scores && Number(text(a)) === Number(text(b)));
  };
  return authority.every((reply, i) => equal(reply, mirror[i]));
}
