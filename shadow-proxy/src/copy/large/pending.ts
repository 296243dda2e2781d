/**
 * What is pending in the groups of a stream. XCLAIM makes an entry pending only if it is there. So the orphans, pending
 * and deleted, are made first: beside the key, with entries that are removed when they are pending.
 */
import { monotonicMs } from '../../io/clock.js';
import { isError, text, type Reply } from '../../resp/decode.js';
import { CopyError } from '../key/copier.js';
import { Disturbed } from './meanwhile.js';
import type { Command, Parts } from './parts.js';
import { after, fieldOf } from './stream-reply.js';

/** More are not kept in memory. */
const MAX_ORPHANS = 10_000;

/** An entry that is pending in a group; without it, an orphan. */
export interface Pending {
  readonly group: Buffer;
  readonly id: string;
  readonly consumer: Buffer;
  readonly idleMs: number;
  readonly deliveries: number;
}

const pendingOf = (group: Buffer, { items }: Reply): Pending => ({
  group,
  id: text(items![0]),
  consumer: items![1].data!,
  idleMs: Number(text(items![2])),
  deliveries: Number(text(items![3])),
});

const claim = ({ mirror }: Parts, key: Buffer, { group, consumer, id, idleMs, deliveries }: Pending): Command => {
  const delivered = mirror.server.clock.unixTimeAtZero + monotonicMs() - idleMs;
  return [
    'XCLAIM',
    key,
    group,
    consumer,
    0,
    id,
    'TIME',
    Math.round(delivered),
    'RETRYCOUNT',
    deliveries,
    'FORCE',
    'JUSTID',
  ];
};

/** Makes what is pending and deleted, in a new stream without entries beside the key. */
export async function copyOrphans(parts: Parts): Promise<readonly Pending[]> {
  const { temporary, limits } = parts;
  const orphans = (await orphansOf(parts)).sort((a, b) => compareIds(a.id, b.id));
  const groups = new Map(orphans.map(({ group }) => [group.toString('latin1'), group]));
  if (orphans.length === 0) return orphans;
  let last = '';
  for (let i = 0; i < orphans.length; i += limits.chunkElements) {
    const chunk = orphans.slice(i, i + limits.chunkElements);
    await parts.at([], () => {
      const made = chunk.flatMap((orphan): Command[] => {
        const isSameId = orphan.id === last;
        last = orphan.id;
        return [...(isSameId ? [] : [['XADD', temporary, orphan.id, '', '']]), claim(parts, temporary, orphan)];
      });
      return i > 0
        ? made
        : [
            ...[...groups.values()].map((group): Command => ['XGROUP', 'CREATE', temporary, group, 0, 'MKSTREAM']),
            ...made,
          ];
    });
  }
  // Not XDEL, of which servers keep the greatest ID.
  await parts.at([], () => [
    ['XTRIM', temporary, 'MAXLEN', 0],
    ['XSETID', temporary, '0-0'],
  ]);
  return orphans;
}

async function orphansOf(parts: Parts): Promise<Pending[]> {
  const { key, limits } = parts;
  const orphans: Pending[] = [];
  for (const info of (await parts.askAuthority('XINFO', 'GROUPS', key)).items!) {
    const group = fieldOf(info, 'name');
    for (let from: string | null = '-'; from !== null;) {
      const page: Pending[] = (
        await parts.askAuthority('XPENDING', key, group, from, '+', limits.chunkElements)
      ).items!.map((entry) => pendingOf(group, entry));
      const found = await Promise.all(page.map(({ id }) => parts.askAuthority('XRANGE', key, id, id)));
      orphans.push(...page.filter((_, i) => found[i].items!.length === 0));
      if (orphans.length > MAX_ORPHANS)
        throw new CopyError(
          'payload',
          `more than ${MAX_ORPHANS} entries are pending in its groups and deleted: it cannot be copied in chunks`,
        );
      from = page.length < limits.chunkElements ? null : after(page.at(-1)!.id);
    }
  }
  return orphans;
}

/** Makes what is pending in one group of the key itself, by ID. */
export async function copyPending(parts: Parts, group: Buffer, orphans: readonly Pending[]): Promise<void> {
  const { key, limits } = parts;
  const known = new Map(orphans.filter((orphan) => orphan.group.equals(group)).map((orphan) => [orphan.id, orphan]));
  for (let from: string | null = '-'; from !== null;) {
    let claims = 0;
    const answers: readonly Reply[] = await parts.at(
      [['XPENDING', key, group, from, '+', limits.chunkElements]],
      ([reply]) => {
        const page = isError(reply) ? [] : reply.items!.map((entry) => pendingOf(group, entry));
        from = page.length < limits.chunkElements ? null : after(page.at(-1)!.id);
        const alive = page.filter((entry) => !isKnown(known, entry));
        claims = alive.length;
        return alive.map((entry) => claim(parts, key, entry));
      },
    );
    const claimed = answers.filter(({ items }) => items?.length === 1 && items[0].data !== null).length;
    if (claimed < claims) throw new Disturbed('an entry that is pending was deleted');
  }
  // Acknowledged since they were made.
  const acknowledged = [...known.keys()];
  for (let i = 0; i < acknowledged.length; i += limits.chunkElements)
    await parts.at([], () => [['XACK', key, group, ...acknowledged.slice(i, i + limits.chunkElements)]]);
}

/** Whether the entry is an orphan that was made already; those that are left in `known` are not pending any more. */
function isKnown(known: Map<string, Pending>, { id, consumer, deliveries }: Pending): boolean {
  const orphan = known.get(id);
  if (orphan === undefined) return false;
  if (!orphan.consumer.equals(consumer) || orphan.deliveries !== deliveries)
    throw new Disturbed('an entry that is pending and deleted was claimed');
  return known.delete(id);
}

function compareIds(a: string, b: string): number {
  const [[ms, seq], [otherMs, otherSeq]] = [a, b].map((id) => id.split('-').map(BigInt));
  if (ms !== otherMs) return ms < otherMs ? -1 : 1;
  return seq < otherSeq ? -1 : seq > otherSeq ? 1 : 0;
}
