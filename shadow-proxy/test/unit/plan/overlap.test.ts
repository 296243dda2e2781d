/** Which patterns of keys overlap, cover or exclude each other. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { patternIncludes, patternProblem, patternsCover, patternsOverlap } from '../../../src/plan/overlap.js';
import { compileGlob } from '../../../src/route/glob.js';

for (const [a, b, expected] of [
  ['session:*', 'session:*', true],
  ['session:*', 'rl:*', false],
  ['*', 'rl:*', true],
  ['*:eu', 'rl:*', true],
  ['a*b', 'b*a', false],
  ['a*', '*b', true],
  ['a?', 'ab', true],
  ['a?', 'a', false],
  ['[ab]x', '[bc]x', true],
  ['[^a]x', 'ax', false],
  ['[a-c]', '[d-f]', false],
  ['\\*', 'x', false],
  ['\\*', '*', true],
  ['*a*', '*b*', true],
  ['', '*', true],
  ['', '?', false],
  ['é*', 'é', true],
] as const) {
  test(`${JSON.stringify(a)} and ${JSON.stringify(b)} ${expected ? 'have keys in common' : 'have none'}`, () => {
    assert.equal(patternsOverlap(a, b), expected);
    assert.equal(patternsOverlap(b, a), expected);
  });
}

/** Every key of up to six letters: enough for patterns of up to three elements each. */
const KEYS = [''];
for (let length = 1, last = KEYS; length <= 6; length++) {
  last = last.flatMap((key) => [`${key}a`, `${key}b`, `${key}c`]);
  KEYS.push(...last);
}

const BYTES = KEYS.map((key) => Buffer.from(key));
const known = new Map<string, ReadonlySet<string>>();
/** The keys that the pattern matches, found once for each pattern. */
function keysOf(pattern: string): ReadonlySet<string> {
  let keys = known.get(pattern);
  if (keys === undefined) {
    const matches = compileGlob(pattern);
    keys = new Set(KEYS.filter((_, i) => matches(BYTES[i], 0, BYTES[i].length)));
    known.set(pattern, keys);
  }
  return keys;
}

const element = fc.constantFrom('a', 'b', '*', '?', '[ab]', '[^a]', '[a-b]', '\\a');
const pattern = fc.array(element, { maxLength: 3 }).map((parts) => parts.join(''));

test('agrees with what the patterns match, for all short patterns', () => {
  fc.assert(
    fc.property(pattern, pattern, (a, b) => {
      const [ofA, ofB] = [keysOf(a), keysOf(b)];
      const common = KEYS.some((key) => ofA.has(key) && ofB.has(key));
      assert.equal(patternsOverlap(a, b), common, `${a} and ${b}`);
    }),
    { numRuns: 2_000 },
  );
});

test('a pattern that includes another matches all of its keys', () => {
  let including = 0;
  fc.assert(
    fc.property(pattern, pattern, (outer, inner) => {
      if (!patternIncludes(outer, inner)) return;
      including++;
      for (const key of keysOf(inner)) assert.ok(keysOf(outer).has(key), `${outer} lacks ${key} of ${inner}`);
    }),
    { numRuns: 2_000 },
  );
  assert.ok(including > 100);
  assert.ok(
    patternIncludes('session:*', 'session:vip:*') &&
      patternIncludes('*', '[a]') &&
      !patternIncludes('session:vip:*', 'session:*'),
  );
});

for (const [outers, inner, expected] of [
  [['*'], 'rl:*', true],
  [['session:*'], 'session:eu:*', true],
  [['session:eu:*'], 'session:*', false],
  [['a*', '[^a]*', ''], '*', true],
  [['a*', '[^a]*'], '*', false],
  [['*:eu', '*:us'], 'x:[eu][us]', false],
  [['?', '??*', ''], '*', true],
  [[], 'a', false],
] as const) {
  test(`${JSON.stringify(outers)} ${expected ? 'cover' : 'do not cover'} ${JSON.stringify(inner)}`, () => {
    assert.equal(patternsCover(outers, inner), expected);
  });
}

test('what covers a pattern matches all of its keys, for all short patterns', () => {
  let covered = 0;
  fc.assert(
    fc.property(fc.array(pattern, { maxLength: 3 }), pattern, (outers, inner) => {
      const keys = [...keysOf(inner)];
      if (keys.length === 0) return;
      const all = keys.every((key) => outers.some((outer) => keysOf(outer).has(key)));
      if (all) covered++;
      assert.equal(patternsCover(outers, inner), all, `${outers.join(' ')} and ${inner}`);
    }),
    { numRuns: 2_000 },
  );
  assert.ok(covered > 50, `${covered}`);
});

test('a pattern that cannot mean what it says is named', () => {
  for (const bad of ['a[b', '[', 'x[^', 'a[]b', 'a[^]', 'a[b\\]', 'a\\'])
    assert.notEqual(patternProblem(bad), null, bad);
  for (const good of ['*', 'a[b]', 'a\\[b', '[a-z]', '[^x]?', 'a]b', '[\\]]', '\\\\'])
    assert.equal(patternProblem(good), null, good);
});
