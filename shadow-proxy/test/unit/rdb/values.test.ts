/** Any value, written and read again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeDump, encodeDump, type StreamId, type Value } from '../../../src/copy/rdb/transcode.js';

/** Raise it for a long search: `RDB_RUNS=1000`. */
const runs = Number(process.env.RDB_RUNS ?? 40);

/** Plain objects, which `deepEqual` wants. */
const record: typeof fc.record = (model: object, options?: object) =>
  fc.record(model as never, { noNullPrototype: true, ...options }) as never;
const octets = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));
const u64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const i64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const id = record({ ms: u64, seq: u64 });
const name = (item: Buffer): string => item.toString('latin1');
const order = (a: { id: StreamId }, b: { id: StreamId }): number =>
  (a.id.ms - b.id.ms || a.id.seq - b.id.seq) > 0n ? 1 : -1;
const idName = (item: { id: StreamId }): string => `${item.id.ms}-${item.id.seq}`;
const distinctBy = { minLength: 1, maxLength: 40, size: 'max' } as const;

const pending = fc.uniqueArray(record({ id, deliveredAt: i64, deliveries: u64 }), { selector: idName, maxLength: 6 });
const consumer = record({ name: octets, seenAt: i64, activeAt: i64 });
/** Every pending entry has one owner. */
const consumers = pending.chain((all) =>
  fc
    .uniqueArray(consumer, { selector: (of) => name(of.name), minLength: all.length > 0 ? 1 : 0, maxLength: 3 })
    .map((some) => some.map((of, i) => ({ ...of, pending: all.filter((_, j) => j % some.length === i).sort(order) }))),
);
const group = record({
  name: octets,
  lastId: id,
  entriesRead: fc.option(fc.bigInt({ min: 0n, max: 2n ** 64n - 2n })),
  consumers,
});
const groups = fc.uniqueArray(group, { selector: (of) => name(of.name), maxLength: 3 });
const pair = fc.tuple(fc.oneof(fc.constant(Buffer.from('f')), octets), octets);
const entry = record({ id, fields: fc.array(pair, { minLength: 1, maxLength: 3 }).map((of) => of.flat()) });
const entries = fc.uniqueArray(entry, { selector: idName, maxLength: 250, size: 'max' }).map((all) => all.sort(order));
const counters = record({ entriesAdded: u64, maxDeletedId: id });
const hashField = record(
  { field: octets, value: octets, expireAt: fc.integer({ min: 1, max: 2 ** 48 - 1 }) },
  { requiredKeys: ['field', 'value'] },
);
const zsetMember = record({ member: octets, score: fc.double({ noNaN: true }) });

const value: fc.Arbitrary<Value> = fc.oneof(
  octets.map((bytes): Value => ({ type: 'string', bytes })),
  fc.array(octets, distinctBy).map((items): Value => ({ type: 'list', items })),
  fc.uniqueArray(octets, { ...distinctBy, selector: name }).map((members): Value => ({ type: 'set', members })),
  fc
    .uniqueArray(hashField, { ...distinctBy, selector: (of) => name(of.field) })
    .map((fields): Value => ({ type: 'hash', fields })),
  fc
    .uniqueArray(zsetMember, { ...distinctBy, selector: (of) => name(of.member) })
    .map((members): Value => ({ type: 'zset', members })),
  record({ entries, lastId: id, counters, groups }).map((of): Value => ({ type: 'stream', ...of })),
);

test('any value survives RDB 12, streams with the whole range of their numbers', () => {
  fc.assert(
    fc.property(value, (original) => {
      const again = decodeDump(encodeDump(original, 12));
      assert.deepEqual(again.type === 'zset' ? { ...again, members: [...again.members].reverse() } : again, original);
    }),
    { numRuns: runs * 10, includeErrorInReport: true },
  );
});
