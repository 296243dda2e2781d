/** DUMP payloads: the format is the product's, in `copy/rdb`; what a server reads and writes of it is here. */
import { decodeDump, encodeDump, TranscodeError } from '../../../shadow-proxy/src/copy/rdb/transcode.js';
import { checkFooter, FOOTER, seal } from '../../../shadow-proxy/src/copy/rdb/footer.js';
import { KEYDB_EXTRA } from '../../../shadow-proxy/src/copy/rdb/types.js';
import type { Value as Dumped } from '../../../shadow-proxy/src/copy/rdb/value.js';
import { Refusal } from './reply.js';
import { SortedSet } from './sorted-set.js';
import type { Engine } from './state.js';
import { formatId, pendingInOrder, Stream, ZERO_ID, type Consumer, type Group } from './stream.js';
import type { Entry, Type, Values } from './values.js';

/** The RDB version that each writes, and reads at the most. */
const VERSION: Record<Engine, number> = { redis: 10, keydb: 9 };

const bytesOf = (text: string): Buffer => Buffer.from(text, 'latin1');
const textOf = (bytes: Buffer): string => bytes.toString('latin1');

export function dump(entry: Entry, engine: Engine): string {
  const payload = encodeDump(dumped(entry), VERSION[engine]);
  return textOf(engine === 'redis' ? payload : withExtra(payload));
}

/** KeyDB adds a time stamp of its own between value and footer. */
function withExtra(payload: Buffer): Buffer {
  const end = payload.length - FOOTER;
  const extra = Buffer.concat([KEYDB_EXTRA, Buffer.from([1]), bytesOf('0')]);
  const bytes = Buffer.concat([payload.subarray(0, end), extra, Buffer.alloc(FOOTER)]);
  return seal(bytes, end + extra.length, VERSION.keydb);
}

/** @throws {Refusal} where the server refuses the payload */
export function restored(text: string, engine: Engine): { type: Type; value: Values[Type] } {
  const payload = bytesOf(text);
  try {
    if (checkFooter(payload) > VERSION[engine]) throw new Refusal(WRONG_PAYLOAD);
  } catch (error) {
    if (error instanceof TranscodeError) throw new Refusal(WRONG_PAYLOAD);
    throw error;
  }
  try {
    return valueOf(decodeDump(payload));
  } catch (error) {
    if (error instanceof TranscodeError) throw new Refusal('ERR Bad data format');
    throw error;
  }
}

const WRONG_PAYLOAD = 'ERR DUMP payload version or checksum are wrong';

function dumped({ type, value }: Entry): Dumped {
  switch (type) {
    case 'string':
      return { type, bytes: bytesOf(value as string) };
    case 'list':
      return { type, items: (value as string[]).map(bytesOf) };
    case 'set':
      return { type, members: Array.from(value as Set<string>, bytesOf) };
    case 'hash':
      return {
        type,
        fields: Array.from(value as Map<string, string>, ([field, held]) => ({
          field: bytesOf(field),
          value: bytesOf(held),
        })),
      };
    case 'zset':
      return {
        type,
        members: (value as SortedSet).ordered().map(({ member, score }) => ({ member: bytesOf(member), score })),
      };
    case 'stream':
      return dumpedStream(value as Stream);
  }
}

function dumpedStream(stream: Stream): Dumped {
  return {
    type: 'stream',
    entries: stream.entries.map(({ id, fields }) => ({ id, fields: fields.map(bytesOf) })),
    lastId: stream.lastId,
    counters: { entriesAdded: BigInt(stream.entriesAdded), maxDeletedId: stream.maxDeletedId },
    groups: [...stream.groups.values()].map((group) => ({
      name: bytesOf(group.name),
      lastId: group.lastId,
      entriesRead: group.entriesRead === null ? null : BigInt(group.entriesRead),
      consumers: [...group.consumers.values()].map((consumer) => ({
        name: bytesOf(consumer.name),
        seenAt: BigInt(consumer.seenAt),
        activeAt: null,
        pending: pendingInOrder(consumer.pending).map(({ id, deliveredAt, deliveries }) => ({
          id,
          deliveredAt: BigInt(deliveredAt),
          deliveries: BigInt(deliveries),
        })),
      })),
    })),
  };
}

function valueOf(from: Dumped): { type: Type; value: Values[Type] } {
  switch (from.type) {
    case 'string':
      return { type: 'string', value: textOf(from.bytes) };
    case 'list':
      return { type: 'list', value: from.items.map(textOf) };
    case 'set':
      return { type: 'set', value: new Set(from.members.map(textOf)) };
    case 'hash':
      return {
        type: 'hash',
        value: new Map(from.fields.map(({ field, value }) => [textOf(field), textOf(value)])),
      };
    case 'zset':
      return {
        type: 'zset',
        value: new SortedSet(from.members.map(({ member, score }) => [textOf(member), score] as const)),
      };
    case 'stream':
      return { type: 'stream', value: streamOf(from) };
  }
}

function streamOf(from: Extract<Dumped, { type: 'stream' }>): Stream {
  const stream = new Stream();
  stream.entries = from.entries.map(({ id, fields }) => ({ id, fields: fields.map(textOf) }));
  stream.lastId = from.lastId;
  stream.entriesAdded = from.counters === null ? from.entries.length : Number(from.counters.entriesAdded);
  stream.maxDeletedId = from.counters?.maxDeletedId ?? ZERO_ID;
  for (const each of from.groups) {
    const name = textOf(each.name);
    const group: Group = {
      name,
      lastId: each.lastId,
      entriesRead: each.entriesRead === null ? null : Number(each.entriesRead),
      consumers: new Map(),
      pending: new Map(),
    };
    for (const { name: bytes, seenAt, pending } of each.consumers) {
      const consumer: Consumer = { name: textOf(bytes), seenAt: Number(seenAt), pending: new Map() };
      group.consumers.set(consumer.name, consumer);
      for (const { id, deliveredAt, deliveries } of pending) {
        const entry = { id, consumer, deliveredAt: Number(deliveredAt), deliveries: Number(deliveries) };
        consumer.pending.set(formatId(id), entry);
        group.pending.set(formatId(id), entry);
      }
    }
    stream.groups.set(name, group);
  }
  return stream;
}

/** A value of its own, for COPY. */
export function copyOf<T extends Type>(entry: Entry<T>): Values[T] {
  const { type, value } = entry as Entry;
  const copy = type === 'string' ? value : valueOf(dumped({ type, value, expireAt: -1 } as Entry)).value;
  return copy as Values[T];
}
