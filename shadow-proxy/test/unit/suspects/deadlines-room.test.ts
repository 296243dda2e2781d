/** The table of deadlines at its limits: what it notes for each key, when it makes room, and what it keeps then. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Deadlines, hashOfKey } from '../../../src/suspects/deadlines.js';

/** Of the first table, which is made room in when three quarters of it are used. */
const FIRST = 768;

/** Deadlines before `oldest` are past; `looked` counts how often room was made. */
function table(): { deadlines: Deadlines; past: { oldest: number; looked: number } } {
  const past = { oldest: 0, looked: 0 };
  const deadlines = new Deadlines(() => {
    past.looked++;
    return past.oldest;
  });
  return { deadlines, past };
}

test('what is done to keys leaves each with its own span', () => {
  type Span = readonly [from: number, to: number];
  /** Of a span from 500 to 510. */
  const ENDS: readonly Span[] = [
    [500, 500],
    [510, 510],
  ];
  const BESIDE: readonly Span[] = [
    [0, 499],
    [511, 999],
  ];
  const forgotten = (of: Deadlines): void => (of.note(1, 5, 6), of.forget(1));
  const cases: readonly (readonly [
    what: string,
    act: (of: Deadlines) => void,
    key: number,
    inside: readonly Span[],
    outside: readonly Span[],
  ])[] = [
    ['nothing', () => undefined, 1, [], [[0, 9_000]]],
    ['a note', (of) => of.note(1, 500, 510), 1, [...ENDS, [0, 500], [510, 999]], BESIDE],
    ['a note that ends before it begins', (of) => of.note(1, 500, 490), 1, [[500, 500]], [[501, 999]]],
    ['a note of parts of a ms', (of) => of.note(1, 500, 500.5), 1, [[500.5, 600]], [[500.8, 600]]],
    ['widening an unknown key', (of) => of.widen(1, 500, 510), 1, ENDS, BESIDE],
    ['widening a forgotten key', (of) => (forgotten(of), of.widen(1, 500, 510)), 1, ENDS, BESIDE],
    ['widening to both sides', (of) => (of.note(1, 503, 504), of.widen(1, 500, 510)), 1, ENDS, BESIDE],
    ['widening within', (of) => (of.note(1, 500, 510), of.widen(1, 503, 504)), 1, ENDS, BESIDE],
    ['forgetting an unknown key', (of) => of.forget(1), 1, [], [[0, 9_000]]],
    ['copying an unknown key', (of) => of.copy(1, 2), 2, [], [[0, 9_000]]],
    ['copying', (of) => (of.note(1, 500, 510), of.copy(1, 2)), 2, ENDS, BESIDE],
    ['copying a forgotten key', (of) => (forgotten(of), of.note(2, 500, 510), of.copy(1, 2)), 2, ENDS, BESIDE],
  ];
  for (const [what, act, key, inside, outside] of cases) {
    const { deadlines } = table();
    const other = 77;
    act(deadlines);
    if (what !== 'a note of parts of a ms') deadlines.note(other, 9_000, 9_001);
    const within = (spans: readonly Span[]): readonly boolean[] =>
      spans.map(([from, to]) => deadlines.within(key, from, to));
    assert.deepEqual([what, within(inside)], [what, inside.map(() => true)]);
    assert.deepEqual([what, within(outside)], [what, outside.map(() => false)]);
  }
});

test('the last moment of any key stays, whatever is noted or forgotten after it', () => {
  const { deadlines } = table();
  deadlines.note(1, 500, 510);
  deadlines.note(2, 100, 110);
  deadlines.forget(1);
  deadlines.copy(1, 3);
  assert.deepEqual([deadlines.any(510), deadlines.any(511)], [true, false]);
});

test('room is made for the first key that finds three quarters used, however often the others are noted', () => {
  const { deadlines, past } = table();
  for (let round = 0; round < 3; round++) for (let key = 1; key <= FIRST; key++) deadlines.note(key, key, key);
  assert.equal(past.looked, 0);
  deadlines.note(FIRST + 1, 1, 1);
  assert.deepEqual([past.looked, deadlines.forgotten], [1, 0]);
});

test('the table doubles when more than half of it is still ahead, and drops what is past without counting it', () => {
  const cases: readonly (readonly [past: number, used: number])[] = [
    [0, 2 * FIRST],
    [FIRST - 513, 2 * FIRST],
    [FIRST - 512, FIRST],
    [FIRST, FIRST],
  ];
  for (const [expired, room] of cases) {
    const { deadlines, past } = table();
    past.oldest = 1_000;
    for (let key = 1; key <= FIRST; key++) {
      const end = key <= expired ? 999 : 1_000;
      deadlines.note(key, end - 10, end);
    }
    // What is kept, and those until room is made again.
    const fits = room - (FIRST - expired);
    for (let key = FIRST + 1; key <= FIRST + fits; key++) deadlines.note(key, 2_000, 2_000);
    assert.deepEqual([expired, past.looked, deadlines.forgotten], [expired, 1, 0]);
    const known = Array.from({ length: FIRST }, (_, i) => deadlines.within(i + 1, 0, 2_000));
    assert.deepEqual(
      known,
      known.map((_, i) => i >= expired),
    );
    deadlines.note(9_999, 2_000, 2_000);
    assert.deepEqual([expired, past.looked], [expired, 2]);
  }
});

test('at its bound it keeps what comes first, as many as half of it holds, and counts the others', () => {
  const { deadlines, past } = table();
  const full = (1 << 19) * 0.75;
  // The later ones come first in the table.
  const at = (key: number): number => full - key;
  for (let key = 1; key <= full; key++) deadlines.note(key, at(key), at(key));
  assert.equal(deadlines.forgotten, 0);
  past.looked = 0;
  deadlines.note(full + 1, 5, 5);
  assert.equal(past.looked, 1);
  const forgotten = Array.from({ length: full }, (_, i) => i + 1).filter(
    (key) => !deadlines.within(key, at(key), at(key)),
  );
  // A third of all, to the 64 that a sample stands for.
  assert.deepEqual([deadlines.forgotten, forgotten.length], [131_009, 131_009]);
  assert.equal(forgotten.at(-1), forgotten.length, 'those farthest ahead');
});

test('a key is hashed with its database and the part of the buffer that it is', () => {
  const cases: readonly (readonly [db: number, key: string, hash: number])[] = [
    [0, '', 4_542_716_992_070_027],
    [1, '', 1_096_748_059_632_011],
    [0, 'k', 8_375_560_381_422_786],
    [15, 'key:1', 6_143_637_051_208_013],
    [0, 'a longer key, with more than one word', 6_139_493_467_983_102],
  ];
  for (const [db, key, hash] of cases) {
    assert.equal(hashOfKey(db, Buffer.from(key)), hash, `${db} ${key}`);
    assert.equal(hashOfKey(db, Buffer.from(`<<${key}>`), 2, 2 + key.length), hash, `${db} ${key}, within`);
  }
});
