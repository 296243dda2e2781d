import { TranscodeError } from './error.js';
import { ListpackWriter } from './listpack.js';
import { SINCE, WRITTEN } from './types.js';
import type { StreamEntry, StreamGroup, StreamId, StreamValue } from './value.js';
import { idBytes, type PayloadWriter } from './payload-writer.js';

/** The limits of a node, as servers have them by default. */
const [NODE_ENTRIES, NODE_BYTES] = [100, 4096];
/** What an entry takes beside its fields, at the least. */
const ENTRY_BYTES = 8;
const SAME_FIELDS = 2n;
const UNKNOWN_COUNT = 2n ** 64n - 1n;
const ZERO: StreamId = { ms: 0n, seq: 0n };

/**
 * Writes a stream in the newest form that the version has and the value can fill. Counters that are not known are
 * left to the target, which estimates them when they are absent.
 */
export function writeStream(to: PayloadWriter, value: StreamValue, version: number, fullBacklengths: boolean): void {
  const { counters } = value;
  const released = value.groups.reduce((sum, group) => sum + (group.released ?? 0), 0);
  if (released > 0)
    throw new TranscodeError(
      'TARGET',
      `${released} pending entries that XNACK has released, which RDB ${version} cannot hold: let consumers claim them (XCLAIM), and the key is copied`,
      0,
      'stream',
    );
  const generation = !counters || version < SINCE.streamCounters ? 1 : version < SINCE.activeTime ? 2 : 3;
  to.u8([WRITTEN.stream, WRITTEN.stream2, WRITTEN.stream3][generation - 1]);
  const nodes = splitNodes(value.entries);
  to.length(nodes.length);
  for (const node of nodes) {
    to.string(idBytes(node[0].id));
    to.string(encodeNode(node, fullBacklengths));
  }
  to.length(value.entries.length);
  to.id(value.lastId);
  if (counters && generation >= 2) {
    to.id(value.entries[0]?.id ?? ZERO);
    to.id(counters.maxDeletedId);
    to.length64(counters.entriesAdded);
  }
  to.length(value.groups.length);
  for (const group of value.groups) writeGroup(to, group, generation);
}

/**
 * A node names its common fields once, so it takes more entries the longer the names are: the nodes together are
 * never much larger than the entries were in the payload.
 */
function splitNodes(entries: readonly StreamEntry[]): StreamEntry[][] {
  const nodes: StreamEntry[][] = [];
  let [node, size, names]: [StreamEntry[], number, number] = [[], 0, 0];
  for (const entry of entries) {
    if (node.length === 0 || (size >= names && (node.length >= NODE_ENTRIES || size >= NODE_BYTES))) {
      nodes.push((node = []));
      [size, names] = [0, bytesOf(entry.fields, 0)];
    }
    node.push(entry);
    size += ENTRY_BYTES + bytesOf(entry.fields, 1) + (sameFields(entry, node[0]) ? 0 : bytesOf(entry.fields, 0));
  }
  return nodes;
}

/** The bytes of the names (`parity` 0) or values (1) in a list of both. */
function bytesOf(fields: readonly Buffer[], parity: 0 | 1): number {
  let sum = 0;
  for (let i = parity; i < fields.length; i += 2) sum += fields[i].length;
  return sum;
}

function sameFields({ fields }: StreamEntry, { fields: common }: StreamEntry): boolean {
  return fields.length === common.length && fields.every((field, i) => i % 2 === 1 || field.equals(common[i]));
}

/** The layout is described at `readNode`. The first entry lends its ID and its fields to the node. */
function encodeNode(entries: readonly StreamEntry[], fullBacklengths: boolean): Buffer {
  const [first] = entries;
  const { id: master, fields: common } = first;
  const pack = new ListpackWriter(fullBacklengths);
  pack.integer(BigInt(entries.length));
  pack.integer(0n);
  pack.integer(BigInt(common.length / 2));
  for (let i = 0; i < common.length; i += 2) pack.string(common[i]);
  pack.integer(0n);
  for (const entry of entries) {
    const { id, fields } = entry;
    const same = sameFields(entry, first);
    const count = fields.length / 2;
    pack.integer(same ? SAME_FIELDS : 0n);
    pack.integer(BigInt.asIntN(64, id.ms - master.ms));
    pack.integer(BigInt.asIntN(64, id.seq - master.seq));
    if (!same) pack.integer(BigInt(count));
    for (let i = 0; i < fields.length; i++) if (!same || i % 2 === 1) pack.string(fields[i]);
    pack.integer(BigInt(same ? 3 + count : 4 + 2 * count));
  }
  return pack.finish();
}

function writeGroup(to: PayloadWriter, group: StreamGroup, generation: 1 | 2 | 3): void {
  to.string(group.name);
  to.id(group.lastId);
  if (generation >= 2) to.length64(group.entriesRead ?? UNKNOWN_COUNT);
  const pending = group.consumers
    .flatMap((consumer) => consumer.pending)
    .map((entry) => ({ ...entry, raw: idBytes(entry.id) }));
  pending.sort((a, b) => a.raw.compare(b.raw));
  to.length(pending.length);
  for (const { raw, deliveredAt, deliveries } of pending) {
    to.raw(raw);
    to.int64(deliveredAt);
    to.length64(deliveries);
  }
  to.length(group.consumers.length);
  for (const consumer of group.consumers) {
    to.string(consumer.name);
    to.int64(consumer.seenAt);
    // Redis 7.2 does the same with payloads of its predecessors.
    if (generation >= 3) to.int64(consumer.activeAt ?? consumer.seenAt);
    to.length(consumer.pending.length);
    for (const { id } of consumer.pending) to.rawId(id);
  }
}
