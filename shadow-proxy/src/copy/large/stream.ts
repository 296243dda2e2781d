/**
 * Streams: the entries by ID, beside the key, until none is left; with them it takes the key's place, and its groups are
 * there. Then the groups' consumers, and what is pending, by ID: from a group's beginning on the mirror, XREADGROUP,
 * XACK and XCLAIM change it as they change the authority's.
 */
import { isError, text, type Reply } from '../../resp/decode.js';
import { CopyError } from '../copier.js';
import { fitting } from './elements.js';
import { ENDS } from './meanwhile.js';
import type { Command, Parts } from './parts.js';
import type { KeySize } from './size.js';

/** Leave the entries that are there as they are, or take them from the head. */
const HARMLESS = new Set(['XADD', 'XTRIM', 'XGROUP', 'XACK', 'XCLAIM', 'XAUTOCLAIM', 'XREADGROUP', ...ENDS]);

export async function copyStream(parts: Parts, size: KeySize): Promise<void> {
  const groups = await copyEntries(parts, size);
  for (const group of groups) {
    await copyConsumers(parts, group);
    await copyPending(parts, group);
  }
}

/** @returns the groups that there were when the entries took the key's place */
async function copyEntries(parts: Parts, size: KeySize): Promise<readonly Buffer[]> {
  const { key, temporary, meanwhile, limits } = parts;
  let deleted: Buffer[] = [];
  meanwhile.written = (name, args) => {
    if (name === 'XDEL') deleted.push(...args.slice(2).map((id) => Buffer.from(id)));
    else if (!HARMLESS.has(name)) meanwhile.disturb(`${name} has changed its entries`);
  };
  const groups: Buffer[] = [];
  let count = fitting(limits.chunkBytes, size.bytes / size.length, limits.chunkElements);
  let [from, nearEnd, done] = ['-', false, false];
  while (!done) {
    const atEnd: Command[] = [
      ['XRANGE', key, '-', '+', 'COUNT', 1],
      ['XINFO', 'STREAM', key],
      ['XINFO', 'GROUPS', key],
    ];
    await parts.at([['XRANGE', key, from, '+', 'COUNT', count], ...(nearEnd ? atEnd : [])], ([range, head, stream, told], pttl) => {
      const entries = range.items!;
      const effects: Command[] = entries.map((entry) => ['XADD', temporary, ...fieldsOf(entry)]);
      if (deleted.length > 0) effects.push(['XDEL', temporary, ...deleted]);
      deleted = [];
      parts.elements += entries.length;
      if (entries.length > 0) {
        from = after(idOf(entries.at(-1)!));
        const bytes = entries.reduce((sum, entry) => sum + entry.items![1].items!.reduce((all, { data }) => all + data!.length, 0), 0);
        count = fitting(limits.chunkBytes, bytes / entries.length, limits.chunkElements);
      }
      if (nearEnd && entries.length < count) {
        done = true;
        // From here on the mirror's entries are the authority's.
        meanwhile.written = () => undefined;
        effects.push(...takePlace(parts, head, stream, told.items!, groups), parts.timeToLive(pttl));
      }
      nearEnd = entries.length < count;
      return effects;
    });
  }
  return groups;
}

function takePlace({ key, temporary }: Parts, head: Reply, stream: Reply, told: readonly Reply[], groups: Buffer[]): Command[] {
  const first = head.items!.at(0);
  const effects: Command[] = [
    // What was cut from the head meanwhile.
    first === undefined ? ['XTRIM', temporary, 'MAXLEN', 0] : ['XTRIM', temporary, 'MINID', idOf(first)],
    ['UNLINK', key],
    ['RENAME', temporary, key],
    ['XSETID', key, fieldOf(stream, 'last-generated-id')],
  ];
  for (const group of told) {
    const name = fieldOf(group, 'name');
    groups.push(name);
    effects.push(['XGROUP', 'CREATE', key, name, fieldOf(group, 'last-delivered-id')]);
  }
  return effects;
}

async function copyConsumers(parts: Parts, group: Buffer): Promise<void> {
  const { key } = parts;
  await parts.at([['XINFO', 'CONSUMERS', key, group]], ([consumers]) =>
    // The group may have been removed since.
    isError(consumers) ? [] : consumers.items!.map((consumer) => ['XGROUP', 'CREATECONSUMER', key, group, fieldOf(consumer, 'name')]),
  );
}

async function copyPending(parts: Parts, group: Buffer): Promise<void> {
  const { key, limits, mirror } = parts;
  for (let from: string | null = '-'; from !== null; ) {
    let claims = 0;
    const answers: readonly Reply[] = await parts.at([['XPENDING', key, group, from, '+', limits.chunkElements]], ([pending]) => {
      const entries = isError(pending) ? [] : pending.items!;
      claims = entries.length;
      from = claims < limits.chunkElements ? null : after(text(entries[claims - 1].items![0]));
      const now = mirror.server.unixTimeAtZero + performance.now();
      return entries.map(({ items }) => {
        const [id, consumer, idle, deliveries] = items!.map(({ data }) => data!);
        return ['XCLAIM', key, group, consumer, 0, id, 'TIME', Math.round(now - Number(idle.toString())), 'RETRYCOUNT', deliveries, 'FORCE', 'JUSTID'];
      });
    });
    const claimed = answers.filter(({ items }) => items?.length === 1 && items[0].data !== null).length;
    if (claimed < claims) throw new CopyError(`${claims - claimed} entries are pending in a group and deleted, which cannot be copied in parts`);
  }
}

const idOf = (entry: Reply): string => text(entry.items![0]);
const fieldsOf = ({ items }: Reply): Buffer[] => [items![0].data!, ...items![1].items!.map(({ data }) => data!)];

/** A field of XINFO's reply, which alternates names and values. */
function fieldOf({ items }: Reply, name: string): Buffer {
  return items![items!.findIndex((item, i) => i % 2 === 0 && text(item) === name) + 1].data!;
}

/** The least ID that is greater. */
export function after(id: string): string {
  const [ms, seq] = id.split('-').map(BigInt);
  return seq === 2n ** 64n - 1n ? `${ms + 1n}-0` : `${ms}-${seq + 1n}`;
}
