/** What Redis 8.6 to 8.10 write: by the payloads of an 8.6, and of later ones by their format. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isLastingString } from '../../../src/copy/key/copy-commands.js';
import { ListpackWriter } from '../../../src/copy/rdb/listpack.js';
import { decodeDump, openString, transcode, TranscodeError } from '../../../src/copy/rdb/transcode.js';
import { REFUSED } from '../../../src/copy/rdb/types.js';
import type { HashValue, StreamValue } from '../../../src/copy/rdb/value.js';
import { fixtures } from '../../integration/rdb/fixtures/redis-8.6.js';
import { seal } from '../../integration/rdb/seal.js';

const refusalOf = (payload: Buffer, version = 9): string => {
  try {
    transcode(payload, version);
  } catch (error) {
    if (error instanceof TranscodeError) return `${error.code} ${error.message}`;
    throw error;
  }
  return 'none';
};
const text = (bytes: string): number[] => [bytes.length, ...Buffer.from(bytes, 'latin1')];
const packed = (...elements: readonly (string | number)[]): number[] => {
  const pack = new ListpackWriter();
  for (const element of elements)
    if (typeof element === 'number') pack.integer(BigInt(element));
    else pack.string(Buffer.from(element));
  const bytes = pack.finish();
  return [bytes.length, ...bytes];
};
const fieldsOf = (payload: Buffer): string[][] =>
  (decodeDump(payload) as HashValue).fields.map(({ field, value }) => [String(field), String(value)]);

test('a plain string is read whatever the RDB version says, and nothing else of a version that is not known', () => {
  for (const version of [13, 14, 15, 16, 99, 4_000]) {
    const payload = seal([0, ...text('value')], version);
    assert.equal(String(openString(payload)), 'value', String(version));
    assert.deepEqual(decodeDump(transcode(payload, 9)), { type: 'string', bytes: Buffer.from('value') });
    assert.ok(isLastingString({ payload, life: { state: 'persistent' } } as Parameters<typeof isLastingString>[0]));
  }
  assert.match(
    refusalOf(seal([2, 1, ...text('member')], 16)),
    /^VERSION RDB version 16, known are 6 to 15, and of Valk/,
  );
  assert.match(refusalOf(seal([0, ...text('value')], 5)), /^VERSION RDB version 5/);
});

test('a stream of Redis 8.6 keeps its entries and groups; the IDs of its producers are left out', () => {
  const { payload } = fixtures.find(({ name }) => name === 'stream of idempotent producers')!;
  const bytes = Buffer.from(payload, 'base64');
  assert.deepEqual([bytes[0], bytes.readUInt16LE(bytes.length - 10)], [26, 13]);
  const { entries, counters, groups } = decodeDump(bytes) as StreamValue;
  assert.deepEqual(
    entries.map(({ id, fields }) => [`${id.ms}-${id.seq}`, ...fields.map(String)]),
    [
      ['5-0', 'field', '1', 'other', 'value'],
      ['6-0', 'field', '2'],
    ],
  );
  assert.equal(counters!.entriesAdded, 2n);
  assert.equal(groups[0].consumers[0].pending.length, 1);
  for (const version of [9, 10, 11, 12]) {
    const again = decodeDump(transcode(bytes, version)) as StreamValue;
    assert.deepEqual(again.entries, entries, String(version));
    assert.equal(transcode(bytes, version)[0], [15, 19, 21, 21][version - 9]);
  }
});

/** Without entries: no node, length, last ID, first ID, deleted ID, added; then groups; then producers. */
const ID = [0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0];
const TIME = [1, 0, 0, 0, 0, 0, 0, 0];
const PRODUCERS = [60, 50, 1, ...text('producer'), 1, ...text('message'), 5, 0, 1, 0];
const stream = (type: number, ...groups: readonly number[][]): number[] => [
  ...[type, 0, 0, 5, 0, 0, 0, 0, 0, 1],
  ...[groups.length, ...groups.flat()],
  ...PRODUCERS,
];
const group = (released: readonly number[]): number[] => [
  ...[...text('g'), 5, 0, 1, 1, ...ID, ...TIME, 1],
  ...(released.length > 0 ? [0] : [1, ...text('c'), ...TIME, ...TIME, 1, ...ID]),
  ...[released.length / ID.length, ...released],
];

test('a stream of Redis 8.8 is copied where XNACK has released none of its pending entries, else refused by name', () => {
  const owned = decodeDump(seal(stream(27, group([])), 14)) as StreamValue;
  assert.equal(owned.groups[0].consumers[0].pending.length, 1);
  assert.equal(owned.groups[0].released, undefined);
  assert.equal(refusalOf(seal(stream(27, group([])), 14)), 'none');
  const released = seal(stream(27, group(ID)), 14);
  assert.equal((decodeDump(released) as StreamValue).groups[0].released, 1);
  assert.match(
    refusalOf(released),
    /^TARGET stream: 1 pending entries that XNACK has released, which RDB 9 cannot hold: let consumers claim them/,
  );
  const another = ID.with(7, 6);
  assert.match(refusalOf(seal(stream(27, group(another)), 14)), /CORRUPT.*entry 6-0, which no consumer owns, is not/);
  assert.match(refusalOf(seal(stream(26), 12)), /^CORRUPT.*type 26, which RDB 12 does not have/);
});

test('a compact hash of Redis 8.10 becomes a plain one', () => {
  const [names, values] = [packed('field1', 'field2'), packed(7, 'one', 2)];
  const plain = [2, ...text('field1'), ...text('field2')];
  const forms = {
    'listpack, names packed': [29, 0, ...names, ...values],
    'listpack, names plain': [29, 1, ...plain, ...values],
    'array, names plain': [31, 1, ...plain, ...text('one'), 0xc0, 2],
    'array, names packed': [31, 0, ...names, ...text('one'), 0xc0, 2],
  };
  const expected = [
    ['field1', 'one'],
    ['field2', '2'],
  ];
  for (const [name, content] of Object.entries(forms)) {
    const payload = seal(content, 15);
    assert.deepEqual(fieldsOf(payload), expected, name);
    const copy = transcode(payload, 9);
    assert.equal(copy[0], 4, name);
    assert.deepEqual(fieldsOf(copy), expected, name);
  }
});

test('a compact hash that is damaged is refused with what is wrong', () => {
  // Payloads of Redis' own tests of RESTORE, with a right checksum.
  const names = [...Buffer.from('17170000000200866669656c6431078666 69656c643207ff'.replace(' ', ''), 'hex')];
  const cases: readonly (readonly [content: readonly number[], message: RegExp])[] = [
    [[29, 0, ...names, ...packed(0, 1)], /CORRUPT.*1 values for a template of 2 fields/],
    [[29, 0, ...names, ...packed()], /listpack that ends too early/],
    [[29, 0, ...names, ...packed('x', 1, 2)], /listpack element that should be a number/],
    [[29, 0, ...packed(), ...packed(0)], /CORRUPT.*no elements/],
    [[31, 1, 0, ...text('one')], /CORRUPT/],
    [[29, 2, ...names, ...packed(0, 1, 2)], /names of a template in unknown form 2/],
    [[29, 0, ...packed('a', 'a'), ...packed(0, 1, 2)], /the same element twice/],
  ];
  for (const [content, message] of cases) assert.match(refusalOf(seal(content, 15)), message);
});

test('what KeyDB has no type for is refused by name; of Valkey the same numbers are not known', () => {
  for (const [type, what] of REFUSED) {
    assert.ok(refusalOf(seal([type, 1, 1], 15)).startsWith(`TYPE ${what}`), what);
    assert.match(refusalOf(seal([type, 1, 1], 80)), /^TYPE unknown type/);
  }
  assert.match(refusalOf(seal([26, 1, 1], 80)), /^TYPE type 26 of Valkey, which is not known/);
});
