/**
 * Streams: the entries by ID, beside the key, until none is left; with them it takes the key's place, and its groups
 * are there. Then the groups' consumers, and what is pending, by ID: from a group's beginning on the mirror,
 * XREADGROUP, XACK and XCLAIM change it as they change the authority's. What is pending and deleted comes before all
 * else.
 */
import { isError, type Reply } from '../../resp/decode.js';
import type { Argument } from '../../resp/encode.js';
import { fitting } from './elements.js';
import { ENDS } from './meanwhile.js';
import type { Command, Parts } from './parts.js';
import { copyOrphans, copyPending, type Pending } from './pending.js';
import type { KeySize } from './size.js';
import { after, fieldOf, fieldsOf, idOf, newerFieldOf } from './stream-reply.js';

/** Leave the entries that are there as they are, or take them from the head. */
const HARMLESS = new Set(['XADD', 'XTRIM', 'XGROUP', 'XACK', 'XCLAIM', 'XAUTOCLAIM', 'XREADGROUP', ...ENDS]);

export async function copyStream(parts: Parts, size: KeySize): Promise<void> {
  const orphans = await copyOrphans(parts);
  const groups = await copyEntries(parts, size, new Set(orphans.map(({ group }) => group.toString('latin1'))));
  for (const group of groups) {
    await copyConsumers(parts, group, orphans);
    await copyPending(parts, group, orphans);
  }
}

/**
 * @param known groups that the copy has already
 * @returns the groups that there were when the entries took the key's place
 */
async function copyEntries(parts: Parts, size: KeySize, known: Set<string>): Promise<readonly Buffer[]> {
  const { key, temporary, meanwhile, limits } = parts;
  let deleted: Buffer[] = [];
  meanwhile.onWritten((name, args) => {
    if (name === 'XDEL') deleted.push(...args.slice(2).map((id) => Buffer.from(id)));
    else if (!HARMLESS.has(name)) meanwhile.disturb(`${name} has changed its entries`);
  });
  const groups: Buffer[] = [];
  let count = fitting(limits.chunkBytes, size.bytes / size.length, limits.chunkElements);
  let [from, nearEnd, done] = ['-', false, false];
  while (!done) {
    const atEnd: Command[] = [
      ['XRANGE', key, '-', '+', 'COUNT', 1],
      ['XINFO', 'STREAM', key],
      ['XINFO', 'GROUPS', key],
    ];
    await parts.at(
      [['XRANGE', key, from, '+', 'COUNT', count], ...(nearEnd ? atEnd : [])],
      ([range, head, stream, groupInfo], life) => {
        const entries = range.items!;
        const effects: Command[] = entries.map((entry) => ['XADD', temporary, ...fieldsOf(entry)]);
        if (deleted.length > 0) effects.push(['XDEL', temporary, ...deleted]);
        deleted = [];
        parts.elements += entries.length;
        if (entries.length > 0) {
          from = after(idOf(entries.at(-1)!));
          const bytes = entries.reduce(
            (sum, entry) => sum + entry.items![1].items!.reduce((all, { data }) => all + data!.length, 0),
            0,
          );
          count = fitting(limits.chunkBytes, bytes / entries.length, limits.chunkElements);
        }
        if (nearEnd && entries.length < count) {
          done = true;
          groups.push(...groupInfo.items!.map((group) => fieldOf(group, 'name')));
          // From here on the mirror's entries are the authority's.
          meanwhile.onWritten(null);
          effects.push(...takePlace(parts, head, stream, groupInfo.items!, known), parts.timeToLive(life));
        }
        nearEnd = entries.length < count;
        return effects;
      },
    );
  }
  return groups;
}

/** An option of Redis 7.0 and later, which the mirror may not know; the authority may not know its value. */
const option = ({ mirror }: Parts, name: string, value: Buffer | null): readonly Argument[] =>
  value === null || !mirror.server.traits.countsEntries ? [] : [name, value];

function takePlace(
  parts: Parts,
  head: Reply,
  stream: Reply,
  groupInfo: readonly Reply[],
  known: Set<string>,
): Command[] {
  const { key, temporary } = parts;
  const first = head.items!.at(0);
  const groups = groupInfo.map((group): Command => {
    const name = fieldOf(group, 'name');
    return [
      'XGROUP',
      known.delete(name.toString('latin1')) ? 'SETID' : 'CREATE',
      key,
      name,
      fieldOf(group, 'last-delivered-id'),
      ...option(parts, 'ENTRIESREAD', newerFieldOf(group, 'entries-read')),
    ];
  });
  return [
    // What was cut from the head meanwhile.
    first === undefined ? ['XTRIM', temporary, 'MAXLEN', 0] : ['XTRIM', temporary, 'MINID', idOf(first)],
    ['UNLINK', key],
    ['RENAME', temporary, key],
    [
      'XSETID',
      key,
      fieldOf(stream, 'last-generated-id'),
      ...option(parts, 'ENTRIESADDED', newerFieldOf(stream, 'entries-added')),
      ...option(parts, 'MAXDELETEDID', newerFieldOf(stream, 'max-deleted-entry-id')),
    ],
    ...groups,
    ...[...known].map((group): Command => ['XGROUP', 'DESTROY', key, Buffer.from(group, 'latin1')]),
  ];
}

/** A consumer of an orphan may have been removed before the copy took the key's place: it is removed here, too. */
async function copyConsumers(parts: Parts, group: Buffer, orphans: readonly Pending[]): Promise<void> {
  const { key } = parts;
  const left = new Map(
    orphans
      .filter((orphan) => orphan.group.equals(group))
      .map(({ consumer }) => [consumer.toString('latin1'), consumer]),
  );
  await parts.at([['XINFO', 'CONSUMERS', key, group]], ([consumers]) => {
    // The group may have been removed since.
    if (isError(consumers)) return [];
    const names = consumers.items!.map((consumer) => fieldOf(consumer, 'name'));
    for (const name of names) left.delete(name.toString('latin1'));
    return [
      ...names.map((name): Command => ['XGROUP', 'CREATECONSUMER', key, group, name]),
      ...[...left.values()].map((name): Command => ['XGROUP', 'DELCONSUMER', key, group, name]),
    ];
  });
}
