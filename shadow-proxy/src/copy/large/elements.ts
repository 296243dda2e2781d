/**
 * Hashes, sets and sorted sets, by element. A scan off the lane finds the elements; each is read again on the lane, and
 * set or removed on the mirror at that place. What clients write meanwhile is mirrored as ever: an element is right
 * from its own chunk on, or from the write that removed it; and one that came later is right from the beginning.
 */
import { isNull, text, type Reply } from '../../resp/decode.js';
import type { Written } from './meanwhile.js';
import type { ChunkLimits, Command, Parts } from './parts.js';
import type { KeySize } from './size.js';
import { writtenScores } from './scores.js';

interface ScannedElement {
  readonly element: Buffer;
  readonly bytes: number;
}

/** What differs between the types. */
interface ElementType {
  readonly scan: string;
  /** Whether the scan's reply alternates elements and what they carry. */
  readonly pairs: boolean;
  readonly remove: string;
  /** Reads these elements; `knows` shows what commands the authority has. */
  reads(key: Buffer, elements: readonly Buffer[], knows: (name: string) => boolean): readonly Command[];
  /** For each element the arguments that set it; null if the authority lacks the element. */
  values(replies: readonly Reply[], elements: readonly Buffer[], parts: Parts): readonly (readonly Buffer[] | null)[];
  readonly set: string;
  /** What writes mean that are not about single elements; elements to be read once more go into `doubtful`. */
  readonly written?: (parts: Parts, uncertain: Map<string, Buffer>) => Written;
}

const each = (replies: readonly Reply[], count: number): readonly Reply[] =>
  replies[0].items ?? replies.slice(0, count);

const HASH: ElementType = {
  scan: 'HSCAN',
  pairs: true,
  set: 'HSET',
  remove: 'HDEL',
  reads: (key, fields, knows) => [
    ['HMGET', key, ...fields],
    ...(knows('hpttl') ? [['HPTTL', key, 'FIELDS', fields.length, ...fields]] : []),
  ],
  values: ([values, ...ttls], fields, parts) => {
    parts.fieldsExpire((ttls[0]?.items ?? []).map((ttl) => Number(text(ttl))).filter((ms) => ms >= 0));
    return values.items!.map((value, i) => (isNull(value) ? null : [fields[i], value.data!]));
  },
};

const SET: ElementType = {
  scan: 'SSCAN',
  pairs: false,
  set: 'SADD',
  remove: 'SREM',
  reads: (key, members, knows) =>
    knows('smismember') ? [['SMISMEMBER', key, ...members]] : members.map((member) => ['SISMEMBER', key, member]),
  values: (replies, members) => each(replies, members.length).map((is, i) => (text(is) === '1' ? [members[i]] : null)),
};

const SORTED_SET: ElementType = {
  scan: 'ZSCAN',
  pairs: true,
  set: 'ZADD',
  remove: 'ZREM',
  reads: (key, members, knows) =>
    knows('zmscore') ? [['ZMSCORE', key, ...members]] : members.map((member) => ['ZSCORE', key, member]),
  values: (replies, members) =>
    each(replies, members.length).map((score, i) => (isNull(score) ? null : [score.data!, members[i]])),
  written: writtenScores,
};

export const ELEMENT_TYPES: Readonly<Record<string, ElementType>> = { hash: HASH, set: SET, zset: SORTED_SET };

export async function copyElements(parts: Parts, size: KeySize, commands: ReadonlySet<string>): Promise<void> {
  const type = ELEMENT_TYPES[size.type];
  const { meanwhile, limits } = parts;
  const uncertain = new Map<string, Buffer>();
  if (type.written !== undefined) meanwhile.onWritten(type.written(parts, uncertain));
  let timed = false;
  const copy = async (elements: readonly Buffer[]): Promise<void> => {
    await parts.at(
      type.reads(parts.key, elements, (name) => commands.has(name)),
      (replies, life) => {
        const values = type.values(replies, elements, parts);
        const effects = effectsOf(type, parts.key, elements, values);
        const present = values.filter((value) => value !== null).length;
        parts.elements += present;
        if (timed || present === 0) return effects;
        // The element must also expire on the mirror if it expires before its copy ends.
        timed = true;
        return [...effects, parts.timeToLive(life)];
      },
    );
  };
  for await (const page of pages(parts, type, size)) {
    for (const chunk of chunks(page, limits)) await copy(chunk.map(({ element }) => element));
    const retried = [...uncertain.values()];
    uncertain.clear();
    for (let i = 0; i < retried.length; i += limits.chunkElements)
      await copy(retried.slice(i, i + limits.chunkElements));
  }
  meanwhile.onWritten(null);
}

function effectsOf(
  { set, remove }: ElementType,
  key: Buffer,
  elements: readonly Buffer[],
  values: readonly (readonly Buffer[] | null)[],
): Command[] {
  const present = values.flatMap((value) => value ?? []);
  const missing = elements.filter((_, i) => values[i] === null);
  return [
    ...(present.length > 0 ? [[set, key, ...present]] : []),
    ...(missing.length > 0 ? [[remove, key, ...missing]] : []),
  ];
}

/** The scan's pages, each asked for before the one before is copied. */
export async function* pages(
  parts: Parts,
  { scan, pairs }: ElementType,
  size: KeySize,
): AsyncGenerator<ScannedElement[]> {
  const { chunkElements, chunkBytes } = parts.limits;
  let count = fitting(chunkBytes, size.bytes / size.length, chunkElements);
  const page = (cursor: Buffer | string): Promise<Reply> => parts.askAuthority(scan, parts.key, cursor, 'COUNT', count);
  let next = page('0');
  for (;;) {
    const [cursor, items] = (await next).items!;
    const found: ScannedElement[] = [];
    const step = pairs ? 2 : 1;
    let bytes = 0;
    for (let i = 0; i < items.items!.length; i += step) {
      const element = items.items![i].data!;
      const length = element.length + (pairs ? items.items![i + 1].data!.length : 0);
      bytes += length;
      found.push({ element, bytes: length });
    }
    if (found.length > 0) count = fitting(chunkBytes, bytes / found.length, chunkElements);
    const last = text(cursor) === '0';
    if (!last) {
      next = page(cursor.data!);
      // A failure is reported when the page is awaited.
      next.catch(() => undefined);
    }
    yield found;
    if (last) return;
  }
}

/** How many elements of this average size make a chunk. */
export const fitting = (bytes: number, average: number, most: number): number =>
  Math.max(1, Math.min(most, Number.isFinite(average) && average > 0 ? Math.floor(bytes / average) : most));

export function* chunks(page: readonly ScannedElement[], limits: ChunkLimits): Generator<ScannedElement[]> {
  let chunk: ScannedElement[] = [];
  let bytes = 0;
  for (const found of page) {
    if (chunk.length > 0 && (chunk.length >= limits.chunkElements || bytes + found.bytes > limits.chunkBytes)) {
      yield chunk;
      [chunk, bytes] = [[], 0];
    }
    chunk.push(found);
    bytes += found.bytes;
  }
  if (chunk.length > 0) yield chunk;
}
