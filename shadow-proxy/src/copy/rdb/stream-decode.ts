import { Listpack } from './listpack.js';
import type { PayloadReader } from './payload-reader.js';
import type { PendingEntry, StreamConsumer, StreamEntry, StreamGroup, StreamId, StreamValue } from './value.js';

/** Flags of an entry within a node. */
const [DELETED, SAME_FIELDS] = [1n, 2n];
const UNKNOWN_COUNT = 2n ** 64n - 1n;
/** The fewest bytes that one takes. */
const [NODE_BYTES, GROUP_BYTES, NACK_BYTES, CONSUMER_BYTES, ID_BYTES] = [20, 5, 25, 10, 16];
const [PRODUCER_BYTES, PRODUCED_BYTES] = [2, 3];

const compare = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0);
const compareIds = (a: StreamId, b: StreamId): number => compare(a.ms, b.ms) || compare(a.seq, b.seq);
const idKey = (id: StreamId): string => `${id.ms}-${id.seq}`;

/**
 * 2 (Redis 7.0) added counters to stream and groups, 3 (Redis 7.2) the active time of consumers, 4 (Redis 8.6) what
 * producers have sent lately, 5 (Redis 8.8) pending entries that XNACK has released.
 */
export type Generation = 1 | 2 | 3 | 4 | 5;

/**
 * Reads a stream: nodes of entries, then counters, then groups with what is pending. What producers have sent lately is
 * left out: it lets the server recognise an XADD that is sent again, and only servers since Redis 8.6 have it.
 */
export function readStream(from: PayloadReader, generation: Generation): StreamValue {
  const entries: StreamEntry[] = [];
  let node: StreamId | null = null;
  let miscounted = false;
  for (let nodes = from.count(NODE_BYTES); nodes > 0; nodes--) {
    const read = readNode(from, entries, node);
    node = read.id;
    miscounted ||= read.miscounted;
  }
  if (from.length64() !== BigInt(entries.length)) miscounted = true;
  const lastId = readId(from);
  let counters: StreamValue['counters'] = null;
  if (generation >= 2) {
    readId(from); // the first entry's ID, which follows from the entries
    counters = { maxDeletedId: readId(from), entriesAdded: from.length64() };
  }
  const groups: StreamGroup[] = [];
  for (let left = from.count(GROUP_BYTES); left > 0; left--) groups.push(readGroup(from, generation));
  distinctNames(from, groups, 'group');
  if (generation >= 4) skipProducers(from);
  return { type: 'stream', entries, lastId, counters, groups, ...(miscounted && { miscounted }) };
}

/** For how long and how many IDs are remembered; for each producer its IDs, each with its entry; two counters. */
function skipProducers(from: PayloadReader): void {
  from.length64();
  from.length64();
  for (let producers = from.count(PRODUCER_BYTES); producers > 0; producers--) {
    from.string();
    for (let ids = from.count(PRODUCED_BYTES); ids > 0; ids--) {
      from.string();
      readId(from);
    }
  }
  from.length64();
  from.length64();
}

function readId(from: PayloadReader): StreamId {
  const ms = from.length64();
  return { ms, seq: from.length64() };
}

/**
 * A node is the ID to which its entries' IDs are relative, and a listpack: live entries, deleted entries, number of
 * common fields, those fields, 0; then for each entry flags, ID (two differences), unless it has the common fields
 * their number and each before its value, values, and how many elements it took. The numbers of entries are not what
 * servers go by when they serve the entries, so they may be wrong.
 */
function readNode(
  from: PayloadReader,
  entries: StreamEntry[],
  previousNode: StreamId | null,
): { readonly id: StreamId; readonly miscounted: boolean } {
  const idPart = from.part();
  const master = idPart.rawId();
  if (idPart.left > 0) from.fail('stream node whose ID is not of 16 bytes');
  // Servers keep nodes in a tree and search it, so disorder would be another stream to each of them.
  for (const before of [previousNode, entries.at(-1)?.id]) {
    if (before && compareIds(before, master) >= 0) from.fail(`stream node ${idKey(master)} after ${idKey(before)}`);
  }
  const blob = from.part();
  const pack = new Listpack(blob);
  const [live, deleted] = [pack.integer(), pack.integer()];
  const common: Buffer[] = [];
  for (let left = fieldCount(blob, pack); left > 0; left--) common.push(pack.next());
  if (pack.integer() !== 0n) blob.fail('stream node whose common fields do not end');

  const before = entries.length;
  let dead = 0;
  while (pack.more()) {
    const flags = pack.integer();
    const id = {
      ms: BigInt.asUintN(64, master.ms + pack.integer()),
      seq: BigInt.asUintN(64, master.seq + pack.integer()),
    };
    const fields = readFields(blob, pack, flags & SAME_FIELDS ? common : null);
    if (flags & ~(DELETED | SAME_FIELDS)) blob.fail(`stream entry with unknown flags ${flags}`);
    if (flags & DELETED) {
      dead++;
      continue;
    }
    const previous = entries.at(-1)?.id;
    if (compareIds(master, id) > 0) blob.fail(`stream entry ${idKey(id)} before its node ${idKey(master)}`);
    if (previous && compareIds(previous, id) >= 0) blob.fail(`stream entry ${idKey(id)} after ${idKey(previous)}`);
    entries.push({ id, fields });
  }
  return { id: master, miscounted: BigInt(entries.length - before) !== live || BigInt(dead) !== deleted };
}

function readFields(blob: PayloadReader, pack: Listpack, common: Buffer[] | null): Buffer[] {
  const fields: Buffer[] = [];
  let elements = 3;
  if (common) {
    for (const field of common) fields.push(field, pack.next());
    elements += common.length;
  } else {
    const count = fieldCount(blob, pack);
    for (let left = count; left > 0; left--) fields.push(pack.next(), pack.next());
    elements += 2 * count + 1;
  }
  if (pack.integer() !== BigInt(elements)) blob.fail('stream entry with a wrong number of elements');
  return fields;
}

function fieldCount(blob: PayloadReader, pack: Listpack): number {
  const count = Number(pack.integer());
  if (count < 0 || count > blob.left) blob.fail(`stream entry that claims ${count} fields`);
  return count;
}

/** Pending entries are written twice: with their state for the group, by ID alone for the consumer that owns them. */
function readGroup(from: PayloadReader, generation: Generation): StreamGroup {
  const name = from.string();
  const lastId = readId(from);
  const entriesRead = generation >= 2 ? from.length64() : UNKNOWN_COUNT;
  const unowned = new Map<string, PendingEntry>();
  for (let left = from.count(NACK_BYTES); left > 0; left--) {
    const id = from.rawId();
    if (unowned.has(idKey(id))) from.fail(`entry ${idKey(id)} pending twice`);
    unowned.set(idKey(id), { id, deliveredAt: from.int64(), deliveries: from.length64() });
  }
  const consumers: StreamConsumer[] = [];
  for (let left = from.count(CONSUMER_BYTES); left > 0; left--) consumers.push(readConsumer(from, generation, unowned));
  distinctNames(from, consumers, 'consumer');
  const released = generation >= 5 ? readReleased(from, unowned) : 0;
  if (unowned.size > 0) from.fail(`${unowned.size} pending entries that no consumer owns`);
  const read = entriesRead === UNKNOWN_COUNT ? null : entriesRead;
  return { name, lastId, entriesRead: read, consumers, ...(released > 0 && { released }) };
}

/** Takes the pending entries that no consumer owns any more. Returns how many they are. */
function readReleased(from: PayloadReader, unowned: Map<string, PendingEntry>): number {
  const count = from.count(ID_BYTES);
  for (let left = count; left > 0; left--) {
    const key = idKey(from.rawId());
    if (!unowned.delete(key)) from.fail(`entry ${key}, which no consumer owns, is not pending or owned by one`);
  }
  return count;
}

function readConsumer(from: PayloadReader, generation: Generation, unowned: Map<string, PendingEntry>): StreamConsumer {
  const name = from.string();
  const seenAt = from.int64();
  const activeAt = generation >= 3 ? from.int64() : null;
  const pending: PendingEntry[] = [];
  for (let left = from.count(ID_BYTES); left > 0; left--) {
    const key = idKey(from.rawId());
    const entry = unowned.get(key);
    if (!entry) return from.fail(`entry ${key}, which a consumer owns, is not pending or owned by another`);
    unowned.delete(key);
    pending.push(entry);
  }
  pending.sort((a, b) => compareIds(a.id, b.id));
  return { name, seenAt, activeAt, pending };
}

function distinctNames(from: PayloadReader, named: readonly { readonly name: Buffer }[], what: string): void {
  if (new Set(named.map(({ name }) => name.toString('latin1'))).size !== named.length)
    from.fail(`two ${what}s of one name`);
}
