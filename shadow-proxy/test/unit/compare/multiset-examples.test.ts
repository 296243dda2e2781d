/** The same strings in another order, by example. What is left to the closer look answers false. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { haveSameStrings } from '../../../src/compare/multiset.js';
import { array, integer, map, nil, set, string, strings } from '../../integration/compare/frames.js';

const raw = (frame: string): Buffer => Buffer.from(frame, 'latin1');

test('the same strings equally often, in whatever order', () => {
  const [a, b] = [string('a'), string('b')];
  const rows: readonly (readonly [name: string, a: Buffer, b: Buffer, size: 1 | 2, same: boolean])[] = [
    ['another order', strings('a b c'), strings('c a b'), 1, true],
    ['another order of a set', set(a, b), set(b, a), 1, true],
    ['nothing', array(), array(), 1, true],
    ['nothing, as pairs', map(), map(), 2, true],
    ['empty strings', array(string(''), a), array(a, string('')), 1, true],
    ['one element another', strings('a b c'), strings('a b d'), 1, false],
    ['the first element another', strings('a b c'), strings('d b c'), 1, false],
    ['one more often', strings('a a b'), strings('a b b'), 1, false],
    ['as often', strings('a b a b'), strings('b b a a'), 1, true],
    ['fewer elements', strings('a b'), strings('a'), 1, false],
    ['fewer elements of as many bytes', strings('a b'), array(string('12345678')), 1, false],
    ['an element that begins like another', strings('ab a'), strings('aa b'), 1, false],
    [
      'bytes that look alike when run together',
      array(string('a$1:b'), string('c')),
      array(string('a'), string('$1:bc')),
      1,
      false,
    ],
    ['strings that hold frames', array(string('$1\r\na\r\n'), a), array(a, string('$1\r\na\r\n')), 1, true],
    ['long strings', array(string('x'.repeat(300)), a), array(a, string('x'.repeat(300))), 1, true],
    [
      'strings that differ at their end',
      array(string(`${'x'.repeat(99)}y`), a),
      array(a, string(`${'x'.repeat(99)}z`)),
      1,
      false,
    ],
    ['pairs in another order', strings('a 1 b 2'), strings('b 2 a 1'), 2, true],
    ['pairs that exchange their values', strings('a 1 b 2'), strings('a 2 b 1'), 2, false],
    ['names and values exchanged', strings('a b'), strings('b a'), 2, false],
    ['the same, as single strings', strings('a b'), strings('b a'), 1, true],
    ['pairs of a map', map(a, b, b, a), map(b, a, a, b), 2, true],
    ['pairs of a map that exchange their values', map(a, b, b, a), map(a, a, b, b), 2, false],
    ['a map, as single strings', map(a, b, b, a), map(b, a, a, b), 1, false],
    ['half a pair', strings('a b c'), strings('c a b'), 2, false],
    ['half a pair, equal', strings('a b c'), strings('a b c'), 2, false],
    ['another kind of aggregate', array(a), set(a), 1, false],
    ['push frames', raw('>2\r\n$1\r\na\r\n$1\r\nb\r\n'), raw('>2\r\n$1\r\nb\r\n$1\r\na\r\n'), 1, false],
    ['push frames, as pairs', raw('>2\r\n$1\r\na\r\n$1\r\nb\r\n'), raw('>2\r\n$1\r\na\r\n$1\r\nb\r\n'), 2, false],
    ['integers', array(integer(1), a), array(a, integer(1)), 1, false],
    ['integers at the end of the authority', array(a, b, integer(1)), array(b, a, integer(1)), 1, false],
    ['integers at the mirror alone', array(a, b), array(a, raw(':1000\r\n')), 1, false],
    ['nil among strings', array(nil, a), array(a, nil), 1, false],
    ['a list among strings', array(strings('a'), b), array(b, strings('a')), 1, false],
    ['an empty list among strings', array(array(), b), array(b, array()), 1, false],
    ['nil as a whole', nil, nil, 1, false],
    ['a string as a whole', a, b, 1, false],
    ['lengths of two digits', strings('abcdefghijkl m'), strings('m abcdefghijkl'), 1, true],
    ['a length with a sign', raw('*1\r\n$+1\r\na\r\n'), raw('*1\r\n$+1\r\na\r\n'), 1, false],
    ['a length with a letter', raw('*1\r\n$a\r\na\r\n'), raw('*1\r\n$a\r\na\r\n'), 1, false],
  ];
  for (const [name, a, b, size, same] of rows) {
    assert.equal(haveSameStrings(a, b, size), same, name);
    assert.equal(haveSameStrings(b, a, size), same, `${name}, with the sides exchanged`);
  }
});

/** The module as a process loads it: with no room yet but for a few elements, and hashes of this seed. */
async function fresh(t: TestContext, seed: number): Promise<typeof haveSameStrings> {
  t.mock.method(Math, 'random', () => seed);
  const again = `../../../src/compare/multiset.js?${performance.now()}`;
  return ((await import(again)) as { haveSameStrings: typeof haveSameStrings }).haveSameStrings;
}

test('many elements, each in another place', async (t) => {
  for (const [name, element] of [
    ['that differ at their end', (i: number) => `member:${i}`],
    ['that differ at their beginning', (i: number) => `${i}:member`],
    ['that differ in length', (i: number) => 'x'.repeat(i)],
    ['of which many are equal', (i: number) => String(i % 7)],
  ] as const) {
    const same = await fresh(t, 0.3);
    const members = Array.from({ length: 500 }, (_, i) => string(element(i)));
    const changed = members.with(250, string(element(250).replace(/.$/, '!')));
    assert.ok(same(array(...members), array(...members.toReversed()), 1), name);
    assert.ok(!same(array(...members), array(...changed), 1), `one changed of those ${name}`);
    const pairs = members.map((member, i) => Buffer.concat([member, string(`${i}`)]));
    const asMap = (parts: readonly Buffer[]): Buffer => Buffer.concat([raw(`%${parts.length}\r\n`), ...parts]);
    assert.ok(same(asMap(pairs), asMap(pairs.toReversed()), 2), `pairs ${name}`);
  }
});

/** Strings of equal length: each pair has one hash after those before it, with the seed 0.3. */
// cspell:disable
const COLLIDING = [
  ['zzbmqmhz', 'bnsrplyg'],
  ['gwqwbghj', 'nijomlyg'],
  ['hkfnnmla', 'yselimnf'],
  ['sjfyuyoq', 'ugkwndjl'],
  ['shkmwwyj', 'vdtrfsni'],
  ['gsjklhsf', 'cwcoghaz'],
  ['imlpuzjp', 'xsxurlin'],
  ['ecajevpe', 'yznahavt'],
] as const;
// cspell:enable
/** The first of the 256 strings that have one hash. */
const colliding = (count: number): Buffer[] =>
  Array.from({ length: count }, (_, i) => string(COLLIDING.map((pair, bit) => pair[(i >> bit) & 1]).join('')));

test('elements with the same hash are distinguished by their bytes', async (t) => {
  const sameStrings = await fresh(t, 0.3);
  const [a, b, c] = colliding(3);
  for (const [name, x, y, same] of [
    ['another order', [a, b, c], [c, a, b], true],
    ['another element', [a, b], [a, c], false],
    ['one more often', [a, a, b], [a, b, b], false],
    ['none of them', [a, a], [b, b], false],
  ] as const) {
    assert.equal(sameStrings(array(...x), array(...y), 1), same, name);
  }
});

test('many elements of one hash are left to the closer look: 64 comparisons, and 8 for each element, are tried', async (t) => {
  const sameStrings = await fresh(t, 0.3);
  const same = (elements: readonly Buffer[]): boolean =>
    sameStrings(array(...elements), array(...elements.toReversed()), 1);
  // As many as 24 · 23 comparisons are made, half of them for each side.
  const [first, ...others] = colliding(24);
  const repeated = (times: number): Buffer[] => Array.from({ length: times }, () => first);
  assert.ok(same([...repeated(38), ...others]));
  assert.ok(!same([...repeated(37), ...others]));
  assert.ok(!same(colliding(256)));
  // Under another seed, their hashes differ.
  const otherSeed = await fresh(t, 0.6);
  assert.ok(otherSeed(array(...colliding(256)), array(...colliding(256).toReversed()), 1));
});
