/** Whether two keys hold the same, however their servers encode it. */
import type { HashField, StreamEntry, StreamGroup, StreamValue, Value, ZsetMember } from '../rdb/value.js';

export function equalValues(a: Value, b: Value): boolean {
  if (a.type === 'string' && b.type === 'string') return equalStrings(a.bytes, b.bytes);
  if (a.type === 'list' && b.type === 'list') return sameList(a.items, b.items, (x, y) => x.equals(y));
  if (a.type === 'set' && b.type === 'set') return sameNames(a.members, b.members);
  if (a.type === 'hash' && b.type === 'hash') return sameByName(a.fields, b.fields, nameOfField, equalFields);
  if (a.type === 'zset' && b.type === 'zset') return sameByName(a.members, b.members, nameOfMember, equalScores);
  return a.type === 'stream' && b.type === 'stream' && equalStreams(a, b);
}

/** `HYLL`, and the eight bytes in which PFCOUNT keeps what it counted last: it writes them where it only reads. */
const HYPERLOGLOG = Buffer.from('HYLL');
const [CACHED_FROM, CACHED_TO] = [8, 16];

export function equalStrings(a: Buffer, b: Buffer): boolean {
  if (a.equals(b)) return true;
  if (a.length !== b.length || a.length < CACHED_TO || a.compare(HYPERLOGLOG, 0, 4, 0, 4) !== 0) return false;
  return (
    a.compare(b, 0, CACHED_FROM, 0, CACHED_FROM) === 0 && a.compare(b, CACHED_TO, b.length, CACHED_TO, a.length) === 0
  );
}

const nameOfField = ({ field }: HashField): Buffer => field;
const nameOfMember = ({ member }: ZsetMember): Buffer => member;
const equalFields = (a: HashField, b: HashField): boolean => a.value.equals(b.value) && a.expireAt === b.expireAt;
/** KeyDB alone keeps the sign of a zero. */
const equalScores = (a: ZsetMember, b: ZsetMember): boolean => a.score === b.score;

function sameList<T>(a: readonly T[], b: readonly T[], equal: (x: T, y: T) => boolean): boolean {
  return a.length === b.length && a.every((item, i) => equal(item, b[i]));
}

const text = (bytes: Buffer): string => bytes.toString('latin1');

function sameNames(a: readonly Buffer[], b: readonly Buffer[]): boolean {
  if (a.length !== b.length) return false;
  const names = new Set(a.map(text));
  return b.every((name) => names.has(text(name)));
}

/** Compares two lists whose names are distinct. */
function sameByName<T>(
  a: readonly T[],
  b: readonly T[],
  nameOf: (item: T) => Buffer,
  equal: (x: T, y: T) => boolean,
): boolean {
  if (a.length !== b.length) return false;
  const items = new Map(a.map((item) => [text(nameOf(item)), item]));
  return b.every((item) => {
    const other = items.get(text(nameOf(item)));
    return other !== undefined && equal(other, item);
  });
}

/** Leaves out counters that only Redis 7 keeps, and times, which each server takes from its own clock. */
function equalStreams(a: StreamValue, b: StreamValue): boolean {
  return (
    a.lastId.ms === b.lastId.ms &&
    a.lastId.seq === b.lastId.seq &&
    sameList(a.entries, b.entries, equalEntries) &&
    sameByName(a.groups, b.groups, ({ name }) => name, equalGroups)
  );
}

const equalEntries = (a: StreamEntry, b: StreamEntry): boolean =>
  a.id.ms === b.id.ms && a.id.seq === b.id.seq && sameList(a.fields, b.fields, (x, y) => x.equals(y));

function equalGroups(a: StreamGroup, b: StreamGroup): boolean {
  if (a.lastId.ms !== b.lastId.ms || a.lastId.seq !== b.lastId.seq) return false;
  return sameByName(
    a.consumers,
    b.consumers,
    ({ name }) => name,
    (x, y) =>
      sameList(
        x.pending,
        y.pending,
        (p, q) => p.id.ms === q.id.ms && p.id.seq === q.id.seq && p.deliveries === q.deliveries,
      ),
  );
}
