/** Damaged payloads: each is refused with what is wrong and the byte at which it shows. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeDump, transcode, TranscodeError } from '../../../src/copy/rdb/transcode.js';
import { seal } from '../../integration/rdb/seal.js';

type Bytes = readonly number[];

const sized = (content: Bytes): Bytes => [content.length, ...content];
const u32 = (value: number): Bytes => [...Buffer.from(Uint32Array.of(value).buffer)];
const id = (ms: number, seq = 0): Bytes => [0, 0, 0, 0, 0, 0, 0, ms, 0, 0, 0, 0, 0, 0, 0, seq];

/** A listpack of these elements, each of less than 127 bytes; what it claims may be wrong. */
function listpack(elements: readonly Bytes[], claims: { size?: number; count?: number; end?: Bytes } = {}): Bytes {
  const body = elements.flatMap((element) => [...element, element.length]);
  const { size = body.length + 7, count = elements.length, end = [255] } = claims;
  return sized([...u32(size), count & 255, count >> 8, ...body, ...end]);
}

/** A ziplist of small numbers; what it claims may be wrong. */
function ziplist(numbers: Bytes, claims: { size?: number; count?: number; tail?: number; end?: Bytes } = {}): Bytes {
  const body = numbers.flatMap((number, i) => [i === 0 ? 0 : 2, 0xf1 + number]);
  const { size = body.length + 11, count = numbers.length, end = [255] } = claims;
  const { tail = 10 + Math.max(0, body.length - 2) } = claims;
  return sized([...u32(size), ...u32(tail), count & 255, count >> 8, ...body, ...end]);
}

const intset = (width: number, count: number, ...numbers: Bytes): Bytes => {
  return sized([...u32(width), ...u32(count), ...numbers]);
};
const ONE = [1];
const [a, b] = [
  [0x81, 97],
  [0x81, 98],
];

/** A stream of one node whose elements, after its ID 5-0, are these small numbers. */
const node = (...elements: Bytes): Bytes => [16, ...id(5), ...listpack(elements.map((each) => [each]))];
/** Of entries: how many are live, and how many deleted; no common field. */
const entries = (live: number, deleted: number, ...elements: Bytes): Bytes => node(live, deleted, 0, 0, ...elements);
/** Flags, difference of the ID, no fields, four elements. */
const entry = (flags: number, seq: number, elements = 4): Bytes => [flags, 0, seq, 0, elements];
const group = (name: number, pending: readonly Bytes[], consumers: readonly Bytes[]): Bytes => [
  ...[1, name, 5, 0, pending.length, ...pending.flat()],
  ...[consumers.length, ...consumers.flat()],
];
const nack = (ms: number): Bytes => [...id(ms), 0, 0, 0, 0, 0, 0, 0, 0, 1];
const consumer = (name: number, ...owned: readonly Bytes[]): Bytes => {
  return [1, name, 0, 0, 0, 0, 0, 0, 0, 0, owned.length, ...owned.flat()];
};
const stream = (nodes: readonly Bytes[], length: number, groups: readonly Bytes[] = []): Bytes => {
  return [15, nodes.length, ...nodes.flat(), length, 9, 0, groups.length, ...groups.flat()];
};

const SOUND = 'nothing is wrong';
const CASES: readonly (readonly [what: string, content: Bytes, message: string])[] = [
  [
    'a listpack shorter than its header',
    [16, ...sized([6, 0, 0, 0, 0, 0])],
    'CORRUPT hash (listpack): listpack shorter than its header, at byte 2',
  ],
  ['an empty listpack', [16, ...listpack([])], 'CORRUPT hash (listpack): no elements, at byte 9'],
  [
    'a listpack that claims more bytes',
    [16, ...listpack([a, b], { size: 14 })],
    'CORRUPT hash (listpack): listpack that claims 14 of 13 bytes, at byte 6',
  ],
  [
    'a listpack that claims fewer bytes',
    [16, ...listpack([a, b], { size: 12 })],
    'CORRUPT hash (listpack): listpack that claims 12 of 13 bytes, at byte 6',
  ],
  [
    'a listpack that claims more elements',
    [16, ...listpack([a, b], { count: 3 })],
    'CORRUPT hash (listpack): listpack of 2 elements that claims 3, at byte 14',
  ],
  [
    'a listpack that claims fewer elements',
    [16, ...listpack([a, b], { count: 1 })],
    'CORRUPT hash (listpack): listpack of 2 elements that claims 1, at byte 14',
  ],
  ['a listpack that does not know its count', [16, ...listpack([a, b], { count: 65535 })], SOUND],
  [
    'a listpack without an end',
    [16, ...listpack([a, b], { end: [1] })],
    'CORRUPT hash (listpack): listpack without its end, at byte 14',
  ],
  [
    'a listpack with bytes behind its end',
    [16, ...listpack([a, b], { end: [255, 255], size: 15 })],
    'CORRUPT hash (listpack): listpack that claims 15 of 14 bytes, at byte 6',
  ],
  [
    'a listpack element with a wrong length at its back',
    [16, ...sized([...u32(11), 1, 0, 0x81, 97, 3, 255, 0])],
    'CORRUPT hash (listpack): listpack element with a wrong length at its back, at byte 11',
  ],
  [
    'a listpack element of no known kind',
    [16, ...listpack([a, [0xf5]])],
    'CORRUPT hash (listpack): 0xf5 where a listpack element should begin, at byte 12',
  ],
  [
    'a listpack whose string goes past its end',
    [16, ...listpack([a, [0x89, 98]])],
    'TRUNCATED hash (listpack): 9 bytes wanted where 3 are left, at byte 12',
  ],
  [
    'a hash of three elements in a listpack',
    [16, ...listpack([a, b, ONE])],
    'CORRUPT hash (listpack): 3 elements that are no whole fields, at byte 17',
  ],
  [
    'a hash with a field twice',
    [16, ...listpack([a, b, a, ONE])],
    'CORRUPT hash (listpack): the same element twice, at byte 20',
  ],
  [
    'a set with a number twice, once as text',
    [20, ...listpack([ONE, [0x81, 49]])],
    'CORRUPT set (listpack): the same element twice, at byte 14',
  ],
  [
    'a ziplist shorter than its header',
    [10, ...sized([...u32(10), ...u32(10), 0, 0])],
    'CORRUPT list (ziplist): ziplist shorter than its header, at byte 2',
  ],
  ['an empty ziplist', [10, ...ziplist([])], 'CORRUPT list (ziplist): no elements, at byte 13'],
  ['a ziplist of two numbers', [10, ...ziplist([1, 2])], SOUND],
  [
    'a ziplist that claims more bytes',
    [10, ...ziplist([1, 2], { size: 16 })],
    'CORRUPT list (ziplist): ziplist that claims 16 of 15 bytes, at byte 6',
  ],
  [
    'a ziplist that claims more elements',
    [10, ...ziplist([1, 2], { count: 3 })],
    'CORRUPT list (ziplist): ziplist of 2 elements that claims 3, at byte 16',
  ],
  [
    'a ziplist that claims fewer elements',
    [10, ...ziplist([1, 2], { count: 1 })],
    'CORRUPT list (ziplist): ziplist of 2 elements that claims 1, at byte 16',
  ],
  ['a ziplist that does not know its count', [10, ...ziplist([1, 2], { count: 65535 })], SOUND],
  [
    'a ziplist with another last element',
    [10, ...ziplist([1, 2], { tail: 10 })],
    'CORRUPT list (ziplist): ziplist whose last element is at 12, not at 10, at byte 16',
  ],
  [
    'a ziplist without an end',
    [10, ...ziplist([1, 2], { end: [1] })],
    'CORRUPT list (ziplist): ziplist without its end, at byte 16',
  ],
  [
    'a ziplist with bytes behind its end',
    [10, ...ziplist([1, 2], { end: [255, 255], size: 16 })],
    'CORRUPT list (ziplist): ziplist without its end, at byte 16',
  ],
  [
    'a ziplist element with a wrong length before it',
    [10, ...sized([...u32(15), ...u32(12), 2, 0, 0, 0xf2, 3, 0xf2, 255])],
    'CORRUPT list (ziplist): ziplist element with a wrong length of the one before it, at byte 15',
  ],
  [
    'a ziplist whose first element has one before it',
    [10, ...sized([...u32(13), ...u32(10), 1, 0, 2, 0xf2, 255])],
    'CORRUPT list (ziplist): ziplist element with a wrong length of the one before it, at byte 13',
  ],
  [
    'a ziplist element of no known kind',
    [10, ...sized([...u32(13), ...u32(10), 1, 0, 0, 0x81, 255])],
    'CORRUPT list (ziplist): 0x81 where a ziplist element should begin, at byte 14',
  ],
  [
    'a sorted set in a ziplist, a member without a score',
    [12, ...ziplist([1, 2, 3])],
    'CORRUPT zset (ziplist): member without a score, at byte 19',
  ],
  [
    'a sorted set in a ziplist out of order',
    [12, ...ziplist([1, 9, 2, 8])],
    'CORRUPT zset (ziplist): members out of the order of their scores, at byte 21',
  ],
  [
    'a sorted set in a ziplist, members of one score out of order',
    [12, ...ziplist([2, 8, 1, 8])],
    'CORRUPT zset (ziplist): members out of the order of their scores, at byte 21',
  ],
  [
    'a sorted set with a member twice',
    [12, ...ziplist([1, 8, 1, 9])],
    'CORRUPT zset (ziplist): the same element twice, at byte 21',
  ],
  [
    'an intset shorter than its header',
    [11, ...sized([2, 0, 0, 0, 1, 0, 0])],
    'CORRUPT set (intset): intset shorter than its header, at byte 2',
  ],
  [
    'an intset with numbers of 3 bytes',
    [11, ...intset(3, 1, 1, 0, 0)],
    'CORRUPT set (intset): intset with numbers of 3 bytes, at byte 6',
  ],
  [
    'an intset that claims more numbers',
    [11, ...intset(2, 2, 1, 0)],
    'CORRUPT set (intset): intset of 2 bytes that claims 2 numbers, at byte 10',
  ],
  ['an empty intset', [11, ...intset(2, 0)], 'CORRUPT set (intset): no elements, at byte 10'],
  [
    'an intset with a number twice',
    [11, ...intset(2, 2, 1, 0, 1, 0)],
    'CORRUPT set (intset): intset that is not ascending, at byte 14',
  ],
  [
    'an intset that descends',
    [11, ...intset(4, 2, 2, 0, 0, 0, 1, 0, 0, 0)],
    'CORRUPT set (intset): intset that is not ascending, at byte 18',
  ],
  [
    'a zipmap without an end',
    [9, ...sized([1, 1, 97, 1, 0, 98, 1])],
    'CORRUPT hash (zipmap): zipmap without its end, at byte 8',
  ],
  [
    'a zipmap with bytes behind its end',
    [9, ...sized([1, 1, 97, 1, 0, 98, 255, 255])],
    'CORRUPT hash (zipmap): zipmap without its end, at byte 8',
  ],
  [
    'a zipmap whose last field has no value',
    [9, ...sized([1, 1, 97, 255])],
    'CORRUPT hash (zipmap): zipmap whose last field has no value, at byte 5',
  ],
  [
    'a zipmap whose length takes 5 bytes where 1 is enough (CVE-2026-25243)',
    [9, ...sized([1, 254, 1, 0, 0, 0, 97, 1, 0, 98, 255])],
    'CORRUPT hash (zipmap): zipmap that writes the length 1 in 5 bytes, at byte 8',
  ],
  [
    'a zipmap that claims more fields',
    [9, ...sized([2, 1, 97, 1, 0, 98, 255])],
    'CORRUPT hash (zipmap): zipmap of 1 fields that claims 2, at byte 8',
  ],
  [
    'a zipmap that ends within a field',
    [9, ...sized([1, 1, 97, 255, 255])],
    'CORRUPT hash (zipmap): zipmap without its end, at byte 5',
  ],
  ['an empty zipmap', [9, ...sized([0, 255])], 'CORRUPT hash (zipmap): no elements, at byte 4'],
  ['a quicklist without nodes', [14, 0], 'CORRUPT list (quicklist): no elements, at byte 2'],
  [
    'a quicklist that claims more nodes than there are bytes',
    [14, 9, 1],
    'CORRUPT list (quicklist): 9 elements announced where 1 bytes are left, at byte 2',
  ],
  [
    'a node of a quicklist of an unknown kind',
    [18, 1, 3, 0],
    'CORRUPT list (quicklist 2): quicklist node of unknown kind 3, at byte 3',
  ],
  [
    'a quicklist whose second listpack is damaged',
    [18, 2, 2, ...listpack([a]), 2, ...listpack([b], { count: 2 })],
    'CORRUPT list (quicklist 2): listpack of 1 elements that claims 2, at byte 25',
  ],
  [
    'a string longer than the payload',
    [0, 2, 65],
    'TRUNCATED string (plain): 2 bytes wanted where 1 are left, at byte 2',
  ],
  ['a string of which there is no length', [0], 'TRUNCATED a payload of 11 bytes, at byte 0'],
  [
    'a string with a kind of length that does not exist',
    [0, 0x82, 1],
    'CORRUPT string (plain): 0x82 where a length should be, at byte 2',
  ],
  [
    'a length of 14 bits that is cut',
    [0, 0x41],
    'TRUNCATED string (plain): 1 bytes wanted where 0 are left, at byte 2',
  ],
  [
    'a length of 32 bits that is cut',
    [0, 0x80, 0, 0, 0],
    'TRUNCATED string (plain): 4 bytes wanted where 3 are left, at byte 2',
  ],
  [
    'a length of 64 bits that is cut',
    [0, 0x81, 0, 0, 0, 0, 0, 0, 0],
    'TRUNCATED string (plain): 8 bytes wanted where 7 are left, at byte 2',
  ],
  [
    'a number of 16 bits that is cut',
    [0, 0xc1, 1],
    'TRUNCATED string (plain): 2 bytes wanted where 1 are left, at byte 2',
  ],
  [
    'a compressed string that copies what is not there',
    [0, 0xc3, 2, 3, 0x20, 0],
    'CORRUPT string (plain): compressed string of 3 bytes that is not LZF, at byte 6',
  ],
  [
    'a compressed string that ends within a copy',
    [0, 0xc3, 1, 3, 0x20],
    'CORRUPT string (plain): compressed string of 3 bytes that is not LZF, at byte 5',
  ],
  [
    'a compressed string that ends within its bytes',
    [0, 0xc3, 2, 3, 2, 65],
    'CORRUPT string (plain): compressed string of 3 bytes that is not LZF, at byte 6',
  ],
  [
    'a compressed string that claims another length',
    [0, 0xc3, 2, 2, 0, 65],
    'CORRUPT string (plain): compressed string of 2 bytes that inflates to 1, at byte 6',
  ],
  [
    'a compressed listpack that is damaged',
    [16, 0xc3, 8, 7, 6, 7, 0, 0, 0, 1, 0, 255],
    'CORRUPT hash (listpack): listpack of 0 elements that claims 1, at byte 1',
  ],
  ['bytes behind the value', [0, 1, 65, 7, 7], 'CORRUPT string (plain): 2 bytes after the value, at byte 4'],
  [
    'an extra of an unknown name',
    [0, 1, 65, 250, 1, 66, 1, 67],
    'TYPE string (plain): unknown extra "B" after the value, at byte 6',
  ],
  [
    'a set that claims more members than there are bytes',
    [2, 3, 1, 97],
    'CORRUPT set (plain): 3 elements announced where 2 bytes are left, at byte 2',
  ],
  [
    'a hash that claims more fields than there are bytes',
    [4, 2, 1, 97, 1],
    'CORRUPT hash (plain): 2 elements announced where 3 bytes are left, at byte 2',
  ],
  [
    'an expiry of a field that is no number',
    [25, 0, 0, 0, 0, 0, 0, 0, 0, ...listpack([a, b, [0x82, 45, 49]])],
    'CORRUPT hash (listpack with expiry): field that expires at "-1", at byte 27',
  ],
  [
    'an expiry of a field beyond 48 bits',
    [25, 0, 0, 0, 0, 0, 0, 0, 0, ...listpack([a, b, [0xf4, 0, 0, 0, 0, 0, 0, 1, 0]])],
    'CORRUPT hash (listpack with expiry): field that expires at 281474976710656, at byte 33',
  ],
  [
    'a hash whose fields expire, two elements',
    [25, 0, 0, 0, 0, 0, 0, 0, 0, ...listpack([a, b])],
    'CORRUPT hash (listpack with expiry): 2 elements that are no whole fields, at byte 23',
  ],
  [
    'a score in text that is none',
    [3, 1, 1, 97, 3, 49, 101, 120],
    'CORRUPT zset (text scores): score "1ex", at byte 8',
  ],
  [
    'a score in text that is not a number',
    [3, 1, 1, 97, 253],
    'CORRUPT zset (text scores): score that is not a number, at byte 5',
  ],
  ['a stream of no nodes', [15, 0, 0, 9, 0, 0], SOUND],
  ['a stream of an entry', stream([entries(1, 0, ...entry(0, 1))], 1), SOUND],
  ['a stream that claims another number of entries', stream([entries(1, 0, ...entry(0, 1))], 2), SOUND],
  ['a stream node that claims more live entries', stream([entries(2, 0, ...entry(0, 1))], 1), SOUND],
  ['a stream node that claims more deleted entries', stream([entries(1, 1, ...entry(0, 1))], 1), SOUND],
  ['a stream node of a deleted entry that counts it as live', stream([entries(1, 0, ...entry(1, 1))], 1), SOUND],
  [
    'a stream entry with unknown flags',
    stream([entries(1, 0, ...entry(4, 1))], 1),
    'CORRUPT stream (listpacks): stream entry with unknown flags 4, at byte 44',
  ],
  [
    'a stream entry with a wrong number of elements',
    stream([entries(1, 0, ...entry(0, 1, 5))], 1),
    'CORRUPT stream (listpacks): stream entry with a wrong number of elements, at byte 44',
  ],
  [
    'a stream entry after one of the same ID',
    stream([entries(2, 0, ...entry(0, 1), ...entry(0, 1))], 2),
    'CORRUPT stream (listpacks): stream entry 5-1 after 5-1, at byte 54',
  ],
  [
    'a stream entry that claims more fields than there are bytes',
    stream([entries(1, 0, 0, 0, 1, 100, 4)], 1),
    'CORRUPT stream (listpacks): stream entry that claims 100 fields, at byte 42',
  ],
  [
    'a stream node whose common fields do not end',
    stream([node(1, 0, 0, 1, ...entry(0, 1))], 1),
    'CORRUPT stream (listpacks): stream node whose common fields do not end, at byte 34',
  ],
  [
    'a stream node after one of the same ID',
    stream([entries(0, 0), entries(0, 0)], 0),
    'CORRUPT stream (listpacks): stream node 5-0 after 5-0, at byte 52',
  ],
  [
    'a stream node before an entry of the one before it',
    stream([entries(1, 0, ...entry(0, 9)), [16, ...id(5, 8), ...listpack([])]], 1),
    'CORRUPT stream (listpacks): stream node 5-8 after 5-9, at byte 62',
  ],
  [
    'a stream node with an ID of 17 bytes',
    [15, 1, 17, ...id(5), 0, ...listpack([ONE]), 0, 0, 0, 0],
    'CORRUPT stream (listpacks): stream node whose ID is not of 16 bytes, at byte 20',
  ],
  [
    'a stream node with an ID of 15 bytes',
    [15, 1, 15, ...id(5).slice(1), ...listpack([ONE]), 0, 0, 0, 0],
    'TRUNCATED stream (listpacks): 16 bytes wanted where 15 are left, at byte 3',
  ],
  [
    'a stream node that claims a text of live entries',
    stream([[16, ...id(5), ...listpack([a, [0], [0], [0]])]], 0),
    'CORRUPT stream (listpacks): listpack element that should be a number of 64 bits, at byte 29',
  ],
  [
    'two groups of one name',
    stream([], 0, [group(97, [], []), group(97, [], [])]),
    'CORRUPT stream (listpacks): two groups of one name, at byte 18',
  ],
  [
    'two consumers of one name',
    stream([], 0, [group(97, [], [consumer(98), consumer(98)])]),
    'CORRUPT stream (listpacks): two consumers of one name, at byte 34',
  ],
  [
    'an entry that is pending twice',
    stream([], 0, [group(97, [nack(1), nack(1)], [consumer(98, id(1))])]),
    'CORRUPT stream (listpacks): entry 1-0 pending twice, at byte 52',
  ],
  [
    'a pending entry that nobody owns',
    stream([], 0, [group(97, [nack(1), nack(2)], [consumer(98, id(1))])]),
    'CORRUPT stream (listpacks): 1 pending entries that no consumer owns, at byte 89',
  ],
  [
    'an entry that two consumers own',
    stream([], 0, [group(97, [nack(1)], [consumer(98, id(1)), consumer(99, id(1))])]),
    'CORRUPT stream (listpacks): entry 1-0, which a consumer owns, is not pending or owned by another, at byte 91',
  ],
  [
    'a consumer of an entry that is not pending',
    stream([], 0, [group(97, [], [consumer(98, id(3, 4))])]),
    'CORRUPT stream (listpacks): entry 3-4, which a consumer owns, is not pending or owned by another, at byte 39',
  ],
  [
    'a group that claims more than there is',
    [15, 0, 0, 9, 0, 2, 1, 97],
    'CORRUPT stream (listpacks): 2 elements announced where 2 bytes are left, at byte 6',
  ],
  ['a list of two', [10, ...ziplist([0, 12])], SOUND],
];

function found(work: () => unknown): string {
  try {
    work();
    return SOUND;
  } catch (error) {
    const message = error instanceof TranscodeError ? `${error.code} ${error.message}` : String(error);
    return message.replace(/ of the DUMP payload \(\w+\)$/, '');
  }
}

test('a damaged payload is refused with what is wrong, and where; one that only looks odd is read', () => {
  for (const [what, content, message] of CASES) {
    const payload = seal(content, 12);
    const decoded = found(() => decodeDump(payload));
    assert.deepEqual([what, decoded], [what, message]);
    const repacked = found(() => transcode(payload, 9));
    assert.deepEqual([what, repacked], [what, message]);
  }
});
