/** What is written, byte for byte, at the limits of each form. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Crc64 } from '../../../src/copy/rdb/crc64.js';
import { ListpackWriter } from '../../../src/copy/rdb/listpack.js';
import { decodeDump, encodeDump, openString, transcode, type StreamValue } from '../../../src/copy/rdb/transcode.js';
import { PayloadWriter } from '../../../src/copy/rdb/payload-writer.js';
import { seal } from '../../integration/rdb/seal.js';

const FOOTER = 10;
/** The first bytes as hex, and how many are in all. */
const shown = (bytes: Buffer, first: number): string => `${bytes.toString('hex', 0, first)} of ${bytes.length}`;
const content = (writer: PayloadWriter): Buffer => writer.finish(9).subarray(0, -FOOTER);

test('a length takes as few bytes as it can', () => {
  const cases: readonly (readonly [length: bigint, hex: string])[] = [
    [0n, '00'],
    [63n, '3f'],
    [64n, '4040'],
    [16_383n, '7fff'],
    [16_384n, '8000004000'],
    [2n ** 32n - 1n, '80ffffffff'],
    [2n ** 32n, '810000000100000000'],
    [2n ** 53n, '810020000000000000'],
  ];
  for (const [length, hex] of cases) {
    const [short, long] = [new PayloadWriter(), new PayloadWriter(1)];
    short.length(Number(length));
    long.length64(length);
    assert.deepEqual([content(short).toString('hex'), content(long).toString('hex')], [hex, hex]);
  }
  const most = new PayloadWriter();
  most.length64(2n ** 64n - 1n);
  assert.equal(content(most).toString('hex'), '81ffffffffffffffff');
});

test('an element of a listpack takes as few bytes as it can, and its length at its back', () => {
  const cases: readonly (readonly [element: bigint | number, hex: string])[] = [
    [0n, '0001'],
    [127n, '7f01'],
    [128n, 'f1800003'],
    [-1n, 'f1ffff03'],
    [32_767n, 'f1ff7f03'],
    [-32_768n, 'f1008003'],
    [32_768n, 'f4008000000000000009'],
    [-32_769n, 'f4ff7fffffffffffff09'],
    [2n ** 63n - 1n, 'f4ffffffffffffff7f09'],
    // Strings of so many x.
    [0, '8001'],
    [1, '817802'],
    [63, `bf${'78'.repeat(63)}40`],
    [64, `e040${'78'.repeat(64)}42`],
    [125, `e07d${'78'.repeat(125)}7f`],
    [126, `e07e${'78'.repeat(126)}0180`],
    [4095, `efff${'78'.repeat(4095)}2081`],
    [4096, `f000100000${'78'.repeat(4096)}2085`],
    [16_377, `f0f93f0000${'78'.repeat(16_377)}7ffe`],
    [16_378, `f0fa3f0000${'78'.repeat(16_378)}00ffff`],
  ];
  for (const [element, hex] of cases) {
    const pack = new ListpackWriter();
    if (typeof element === 'bigint') pack.integer(element);
    else pack.string(Buffer.alloc(element, 'x'));
    const bytes = pack.finish();
    assert.equal(pack.size, bytes.length);
    const size = Buffer.from(Uint32Array.of(bytes.length).buffer).toString('hex');
    assert.equal(bytes.toString('hex'), `${size}0100${hex}ff`, String(element));
    const set = new PayloadWriter();
    set.u8(20);
    set.string(bytes);
    const text = typeof element === 'bigint' ? String(element) : 'x'.repeat(element);
    assert.deepEqual(decodeDump(set.finish(12)), { type: 'set', members: [Buffer.from(text)] });
  }
});

test('a length at the back of an element may use all its bits, as of Valkey 9.1', () => {
  for (const [length, back] of [
    [16_377, '7ffe'],
    [16_378, '7fff'],
    [16_379, '018080'],
    [2_097_146, '7fffff'],
    [2_097_147, '01808080'],
  ] as const) {
    const pack = new ListpackWriter(true);
    pack.string(Buffer.alloc(length, 'x'));
    const bytes = pack.finish();
    assert.equal(bytes.toString('hex', 6 + 5 + length), `${back}ff`);
    const set = new PayloadWriter();
    set.u8(20);
    set.string(bytes);
    assert.deepEqual(decodeDump(set.finish(80)), { type: 'set', members: [Buffer.alloc(length, 'x')] });
  }
});

test('a stream of Valkey reaches another server in the form of that', () => {
  const value: StreamValue = {
    type: 'stream',
    entries: [{ id: { ms: 1n, seq: 1n }, fields: [Buffer.from('f'), Buffer.alloc(16_378, 'x')] }],
    lastId: { ms: 1n, seq: 1n },
    counters: { maxDeletedId: { ms: 0n, seq: 0n }, entriesAdded: 1n },
    groups: [],
  };
  const [redis, valkey] = [encodeDump(value, 11), encodeDump(value, 11, true)];
  assert.notDeepEqual(redis, valkey);
  const ofValkey = seal(valkey.subarray(0, -FOOTER), 80);
  assert.deepEqual(transcode(ofValkey, 11), redis);
  assert.deepEqual(transcode(ofValkey, 11, 80, true), valkey);
  assert.deepEqual(transcode(redis, 11, 11, true), valkey);
});

test('a listpack of more elements than can be counted does not tell how many', () => {
  const pack = new ListpackWriter();
  for (let i = 0; i < 65_535; i++) pack.integer(1n);
  assert.equal(shown(pack.finish(), 6), '05000200ffff of 131077');
});

test('scores are text before RDB 8, and 8 bytes from then on', () => {
  const member = (score: number): Parameters<typeof encodeDump>[0] => {
    return { type: 'zset', members: [{ member: Buffer.from('a'), score }] };
  };
  const cases: readonly (readonly [score: number, text: string, binary: string])[] = [
    [1.5, '03312e35', '000000000000f83f'],
    [0, '0130', '0000000000000000'],
    [-0, '022d30', '0000000000000080'],
    [Infinity, 'fe', '000000000000f07f'],
    [-Infinity, 'ff', '000000000000f0ff'],
  ];
  for (const [score, text, binary] of cases) {
    for (const version of [6, 7, 8, 9]) {
      const bytes = encodeDump(member(score), version);
      const hex = version < 8 ? `03010161${text}` : `05010161${binary}`;
      assert.equal(bytes.toString('hex', 0, bytes.length - FOOTER), hex, `${score} in RDB ${version}`);
      assert.deepEqual(decodeDump(bytes), member(score));
    }
  }
});

const id = (ms: number, seq = 0): { ms: bigint; seq: bigint } => ({ ms: BigInt(ms), seq: BigInt(seq) });
const stream = (more: Partial<StreamValue>): StreamValue => {
  return { type: 'stream', entries: [], lastId: id(9), counters: null, groups: [], ...more };
};
const entry = (ms: number, ...fields: string[]): StreamValue['entries'][number] => {
  return { id: id(ms), fields: fields.map((field) => Buffer.from(field)) };
};

test('a stream is written in the newest form that the version has and its counters fill', () => {
  const counters = { entriesAdded: 7n, maxDeletedId: id(3, 4) };
  const consumer = { name: Buffer.from('c'), seenAt: 1n, activeAt: 2n, pending: [] };
  const group = { name: Buffer.from('g'), lastId: id(5), entriesRead: 6n, consumers: [consumer] };
  const value = stream({ counters, groups: [group] });
  const before7 = { ...group, entriesRead: null, consumers: [{ ...consumer, activeAt: null }] };
  const before72 = { ...group, consumers: [{ ...consumer, activeAt: null }] };
  const seenAsActive = { ...group, consumers: [{ ...consumer, activeAt: 1n }] };
  const cases: readonly (readonly [version: number, wrote: StreamValue, type: number, read: StreamValue])[] = [
    [9, value, 15, stream({ groups: [before7] })],
    [10, value, 19, stream({ counters, groups: [before72] })],
    [11, value, 21, value],
    [12, value, 21, value],
    [9, stream({}), 15, stream({})],
    [12, stream({}), 15, stream({})],
    [12, stream({ groups: [before7] }), 15, stream({ groups: [before7] })],
    [12, stream({ counters, groups: [before72] }), 21, stream({ counters, groups: [seenAsActive] })],
  ];
  for (const [version, wrote, type, read] of cases) {
    const bytes = encodeDump(wrote, version);
    assert.deepEqual([version, bytes[0], decodeDump(bytes)], [version, type, read]);
  }
  assert.throws(() => encodeDump(stream({}), 8), /RDB 8 has no streams/);
});

test('a node of a stream takes 100 entries or 4 KiB, and more where its names are longer than its entries', () => {
  const many = (count: number, of: (i: number) => string[]): StreamValue =>
    stream({ entries: Array.from({ length: count }, (_, i) => entry(i + 1, ...of(i))) });
  const cases: readonly (readonly [what: string, value: StreamValue, nodes: number])[] = [
    ['none', many(0, () => []), 0],
    ['100 small ones', many(100, () => ['f', 'v']), 1],
    ['101 small ones', many(101, () => ['f', 'v']), 2],
    ['two of 4 KiB together', many(2, () => ['f', 'v'.repeat(2040)]), 1],
    ['a third behind 4 KiB', many(3, () => ['f', 'v'.repeat(2040)]), 2],
    ['a third behind a byte less', many(3, (i) => ['f', 'v'.repeat(2040 - i)]), 1],
    ['other names, which count', many(3, (i) => [`f${i}${'x'.repeat(2039)}`, 'v']), 1],
    ['other names, as long as they are', many(4, (i) => [`${i}${'x'.repeat(2039)}`, 'v']), 2],
    ['names longer than 4 KiB', many(101, () => ['f'.repeat(5000), 'v']), 1],
    ['names of 900 bytes, in 100 entries', many(101, () => ['f'.repeat(900), 'v']), 2],
    ['names of 901 bytes, in 100 entries', many(101, () => ['f'.repeat(901), 'v']), 1],
    ['another number of names', many(101, (i) => (i % 2 ? ['f', 'v'] : ['f', 'v', 'g', 'w'])), 2],
  ];
  for (const [what, value, nodes] of cases) {
    const bytes = encodeDump(value, 9);
    assert.deepEqual([what, bytes[1]], [what, nodes]);
    assert.deepEqual(decodeDump(bytes), value);
  }
});

test('entries with the names of the first one do not repeat them', () => {
  const size = (...second: string[]): number =>
    encodeDump(stream({ entries: [entry(1, 'name', 'v'), entry(2, ...second)] }), 9).length;
  assert.deepEqual([size('name', 'w'), size('nome', 'w'), size('name', 'w', 'x', 'y')], [77, 85, 91]);
});

test('pending entries are written in the order of their IDs, whichever consumer owns them', () => {
  const pending = (...all: number[]): { id: { ms: bigint; seq: bigint }; deliveredAt: bigint; deliveries: bigint }[] =>
    all.map((ms) => ({ id: id(ms, 1), deliveredAt: BigInt(ms * 10), deliveries: 2n }));
  const consumer = (name: string, ...all: number[]): StreamValue['groups'][number]['consumers'][number] => {
    return { name: Buffer.from(name), seenAt: 1n, activeAt: null, pending: pending(...all) };
  };
  const group = { name: Buffer.from('g'), lastId: id(5), entriesRead: null };
  const value = stream({ groups: [{ ...group, consumers: [consumer('a', 1, 7), consumer('b', 3)] }] });
  const bytes = encodeDump(value, 9);
  assert.deepEqual(decodeDump(bytes), value);
  const order = [1, 3, 7].map((ms) => bytes.indexOf(Buffer.from([0, ms, 0, 0, 0, 0, 0, 0, 0, 1, ms * 10])));
  assert.deepEqual(
    order,
    [...order].sort((a, b) => a - b),
  );
  assert.equal(order.includes(-1), false);
  const of = (...all: number[]): StreamValue => stream({ groups: [{ ...group, consumers: [consumer('a', ...all)] }] });
  assert.deepEqual(decodeDump(encodeDump(of(7, 1), 9)), of(1, 7));
});

test('a string is read alone, and null is said of anything else', () => {
  assert.deepEqual(openString(seal([0, 1, 65])), Buffer.from('A'));
  assert.equal(openString(seal([1, 1, 1, 65])), null);
  assert.throws(() => openString(seal([0, 1, 65, 66])), /1 bytes after the value/);
});

test('what KeyDB writes behind a value is read past', () => {
  const name = Buffer.from('mvcc-tstamp');
  const extra = [250, name.length, ...name, 1, 49];
  assert.deepEqual(decodeDump(seal([0, 1, 65, ...extra, ...extra])), { type: 'string', bytes: Buffer.from('A') });
});

test('a checksum differs for each byte that differs, at any place', () => {
  const bytes = Buffer.alloc(24);
  const sum = (): string => {
    const { high, low } = new Crc64().update(bytes, 0, bytes.length);
    return `${high} ${low}`;
  };
  const seen = new Set([sum()]);
  for (let at = 0; at < bytes.length; at++) {
    bytes[at] = 0xff;
    seen.add(sum());
    bytes[at] = 0;
  }
  assert.equal(seen.size, bytes.length + 1);
});
